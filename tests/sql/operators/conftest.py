from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.sql.operators.bench import Bench

SOURCES = """
CREATE STREAM S (k STRING KEY, v INT, a ARRAY<INT>, m MAP<STRING, INT>, d DECIMAL(6, 2), at TIMESTAMP);
CREATE STREAM L (k STRING KEY, v INT);
CREATE STREAM R (k STRING KEY, w INT);
CREATE TABLE T (k STRING PRIMARY KEY, v INT, g STRING);
CREATE TABLE U (k STRING PRIMARY KEY, w INT);
CREATE TABLE X (k STRING PRIMARY KEY, z INT)
"""


@pytest.fixture
def bench(spark: Any, tmp_path: Path) -> Bench:
    made = Bench(spark, tmp_path)
    made.declare(SOURCES)
    return made


@pytest.fixture
def values() -> Callable[..., list[tuple[Any, ...]]]:
    """Rows as tuples of these columns, sorted: most results have no order."""

    def of(rows: list[dict[str, Any]], *names: str) -> list[tuple[Any, ...]]:
        return sorted((tuple(row[name] for name in names) for row in rows), key=repr)

    return of
