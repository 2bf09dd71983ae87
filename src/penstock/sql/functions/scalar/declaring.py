"""The short way to write an entry of the table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.sql.functions.model import ScalarFunction, Signature, SparkForm
from penstock.sql.functions.signatures import signature


def scalar(
    category: str,
    name: str,
    description: str,
    *signatures: str | Signature,
    python: Callable[..., Any],
    spark: SparkForm | None = None,
    strict: bool = True,
    aliases: tuple[str, ...] = (),
) -> ScalarFunction:
    return ScalarFunction(
        name=name,
        aliases=aliases,
        category=category,
        description=description,
        signatures=tuple(signature(each) if isinstance(each, str) else each for each in signatures),
        python=python,
        spark=spark,
        strict=strict,
    )
