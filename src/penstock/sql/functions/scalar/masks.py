"""MASK and its relatives: letters and digits hidden behind other characters.

The four optional characters stand for capital letters, small letters, digits and all else; a null leaves that kind as
it is.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from penstock.sql.expressions.spark_types import integer_value, literal_value
from penstock.sql.functions.model import ScalarFunction, SparkForm
from penstock.sql.functions.scalar.declaring import scalar
from penstock.sql.types import SqlType

_KINDS = {"Lu": 0, "Ll": 1, "Nd": 2}
_OTHER_KIND = 3
_DEFAULTS = ("X", "x", "n", "-")
_NULL = "cast(null as string)"

_MASKS = "upper STRING, lower STRING, digit STRING, other STRING"


def masked(text: str, masks: Sequence[str | None]) -> str:
    chosen = masks or _DEFAULTS
    if any(mask is not None and len(mask) != 1 for mask in chosen):
        raise ValueError("a mask must be one character")

    def replacement(character: str) -> str:
        mask = chosen[_KINDS.get(unicodedata.category(character), _OTHER_KIND)]
        return character if mask is None else mask

    return "".join(map(replacement, text))


def _spark_masked(text: str, masks: Sequence[str]) -> str | None:
    """Spark wants the masks to be written in the statement."""
    chosen = masks or [f"'{mask}'" for mask in _DEFAULTS]
    if not all(mask == _NULL or len(literal_value(mask) or "") == 1 for mask in chosen):
        return None
    return f"mask({text}, {', '.join(chosen)})"


def _mask(text: str | None, *masks: str | None) -> str | None:
    return None if text is None else masked(text, masks)


def _of_part(cut: Callable[[str, int], int], masks_left: bool) -> Callable[..., str | None]:
    """`cut` says where the text is divided; one side is masked, the other stays."""

    def apply(text: str | None, count: int | None, *masks: str | None) -> str | None:
        if text is None or count is None:
            return None
        if count < 0:
            raise ValueError("the number of characters must not be negative")
        place = cut(text, count)
        left, right = text[:place], text[place:]
        return masked(left, masks) + right if masks_left else left + masked(right, masks)

    return apply


def _spark_of_part(from_left: bool, masks_left: bool) -> Callable[[Sequence[str], Sequence[SqlType]], str | None]:
    def form(arguments: Sequence[str], _types: Sequence[SqlType]) -> str | None:
        text, count, *masks = arguments
        if (integer_value(count) or 0) < 0 or integer_value(count) is None:
            return None
        place = count if from_left else f"greatest(length({text}) - {count}, 0)"
        left, right = f"substring({text}, 1, {place})", f"substring({text}, {place} + 1)"
        hidden = _spark_masked(left if masks_left else right, masks)
        if hidden is None:
            return None
        return f"concat({hidden}, {right})" if masks_left else f"concat({left}, {hidden})"

    return form


def _from_left(text: str, count: int) -> int:
    return min(count, len(text))


def _from_right(text: str, count: int) -> int:
    return max(len(text) - count, 0)


def _masking(
    name: str, description: str, signature: str, python: Callable[..., Any], spark: SparkForm
) -> ScalarFunction:
    full = f"{signature}, {_MASKS} -> STRING"
    return scalar("STRING", name, description, f"{signature} -> STRING", full, python=python, spark=spark, strict=False)


_part = partial(_masking, signature="text STRING, count INTEGER")

FUNCTIONS = (
    _masking(
        "MASK",
        "The text with other characters for capital letters (X), small letters (x), digits (n) and all else (-), or "
        "those given; a null leaves that kind as it is.",
        "text STRING",
        _mask,
        lambda arguments, _types: _spark_masked(arguments[0], arguments[1:]),
    ),
    _part(
        "MASK_KEEP_LEFT",
        "Masks all but the first characters. See MASK.",
        python=_of_part(_from_left, False),
        spark=_spark_of_part(True, False),
    ),
    _part(
        "MASK_KEEP_RIGHT",
        "Masks all but the last characters. See MASK.",
        python=_of_part(_from_right, True),
        spark=_spark_of_part(False, True),
    ),
    _part(
        "MASK_LEFT",
        "Masks the first characters only. See MASK.",
        python=_of_part(_from_left, True),
        spark=_spark_of_part(True, True),
    ),
    _part(
        "MASK_RIGHT",
        "Masks the last characters only. See MASK.",
        python=_of_part(_from_right, False),
        spark=_spark_of_part(False, False),
    ),
)
