"""Cases of aggregate functions: a call, the values of the rows in order, the result.

Expected results follow ksqlDB's documentation and tests. The cases over a table have rows that are taken back: their
values stand in `taken_back`.
"""

from __future__ import annotations

import datetime
import decimal
import math
from dataclasses import dataclass, field
from typing import Any

from penstock.sql.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INTEGER,
    STRING,
    TIMESTAMP,
    Array,
    Decimal,
    Field,
    SqlType,
    Struct,
)

D = decimal.Decimal
A_MOMENT = datetime.datetime(2020, 1, 2, tzinfo=datetime.UTC)
A_DAY = datetime.timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateCase:
    """`rows` are the values of the columns X, Y, ... of each row, `columns` their types."""

    call: str
    columns: tuple[SqlType, ...]
    rows: list[tuple[Any, ...]]
    expected: Any
    taken_back: list[tuple[Any, ...]] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.call} of {self.rows}" + (f" without {self.taken_back}" if self.taken_back else "")


def one(call: str, kind: SqlType, values: list[Any], expected: Any, gone: list[Any] | None = None) -> AggregateCase:
    rows = [(value,) for value in values]
    taken = [(value,) for value in gone or []]
    return AggregateCase(call=call, columns=(kind,), rows=rows, expected=expected, taken_back=taken)


CASES = [
    one("COUNT(*)", INTEGER, [1, None, 3], 3),
    one("COUNT(X)", INTEGER, [1, None, 3], 2),
    one("COUNT(X)", STRING, [None], 0),
    one("COUNT_DISTINCT(X)", STRING, ["a", "b", "a", None, "c"], 3),
    one("COUNT_DISTINCT(X)", STRING, [None], 0),
    one("SUM(X)", INTEGER, [1, None, -3], -2),
    one("SUM(X)", INTEGER, [None], 0),
    one("SUM(X)", INTEGER, [2147483647, 1], -2147483648),
    one("SUM(X)", BIGINT, [5000000000, 1], 5000000001),
    one("SUM(X)", DOUBLE, [1.5, 2.25], 3.75),
    one("SUM(X)", Decimal(5, 2), [D("1.50"), D("2.25")], D("3.75")),
    one("AVG(X)", INTEGER, [1, 2, None], 1.5),
    one("AVG(X)", BIGINT, [None], 0.0),
    one("AVG(X)", Decimal(4, 1), [D("1.0"), D("2.0")], 1.5),
    one("MIN(X)", INTEGER, [3, None, -1], -1),
    one("MAX(X)", INTEGER, [3, None, -1], 3),
    one("MAX(X)", INTEGER, [None], None),
    one("MIN(X)", STRING, ["b", "a", "c"], "a"),
    one("MAX(X)", Decimal(4, 2), [D("1.25"), D("-7.00")], D("1.25")),
    one("MAX(X)", TIMESTAMP, [A_MOMENT, A_MOMENT + A_DAY, None], A_MOMENT + A_DAY),
    one("TOPK(X, 3)", INTEGER, [3, 1, None, 5, 4], [5, 4, 3]),
    one("TOPK(X, 3)", INTEGER, [3], [3]),
    one("TOPK(X, 2)", INTEGER, [5, 5, 1], [5, 5]),
    one("TOPK(X, 2)", STRING, ["a", "c", "b"], ["c", "b"]),
    AggregateCase(
        call="TOPK(X, Y, 2)",
        columns=(INTEGER, STRING),
        rows=[(1, "a"), (3, "b"), (None, "z"), (2, None)],
        expected=[{"sort_col": 3, "col0": "b"}, {"sort_col": 2, "col0": None}],
    ),
    AggregateCase(
        call="TOPK(X, Y, 2)",
        columns=(INTEGER, STRING),
        rows=[(5, "a"), (1, "z"), (5, "b"), (5, "c")],
        expected=[{"sort_col": 5, "col0": "a"}, {"sort_col": 5, "col0": "b"}],
    ),
    one("TOPKDISTINCT(X, 2)", INTEGER, [3, 5, 5, None, 4], [5, 4]),
    one("TOPKDISTINCT(X, 2)", INTEGER, [None, 1], [1]),
    one("COLLECT_LIST(X)", INTEGER, [3, None, 1, 3], [3, None, 1, 3]),
    one("COLLECT_LIST(X)", STRING, ["b", "a"], ["b", "a"]),
    one("COLLECT_SET(X)", STRING, ["b", "a", "b"], ["a", "b"]),
    one("COLLECT_SET(X)", INTEGER, [3, None, 3, None], [3, None]),
    one("COLLECT_SET(X)", Array(INTEGER), [[2], [1, 5], [2], None], [[1, 5], [2], None]),
    AggregateCase(
        call="COLLECT_SET(X)",
        columns=(Struct((Field("A", STRING), Field("B", INTEGER))),),
        rows=[({"A": "y", "B": 1},), ({"A": "x", "B": 2},), ({"A": "y", "B": 1},)],
        expected=[{"A": "x", "B": 2}, {"A": "y", "B": 1}],
    ),
    one("HISTOGRAM(X)", STRING, ["foo", "bar", "foo", None], {"foo": 2, "bar": 1}),
    one("EARLIEST_BY_OFFSET(X)", INTEGER, [None, 2, 3], 2),
    one("EARLIEST_BY_OFFSET(X, false)", INTEGER, [None, 2, 3], None),
    one("EARLIEST_BY_OFFSET(X, 2)", INTEGER, [None, 2, 3, 4], [2, 3]),
    one("EARLIEST_BY_OFFSET(X, 2, false)", INTEGER, [None, 2, 3], [None, 2]),
    one("LATEST_BY_OFFSET(X)", INTEGER, [1, 2, None], 2),
    one("LATEST_BY_OFFSET(X, true)", INTEGER, [1, 2, None], 2),
    one("LATEST_BY_OFFSET(X, false)", INTEGER, [1, 2, None], None),
    one("LATEST_BY_OFFSET(X, 2)", INTEGER, [1, 2, 3, None], [2, 3]),
    one("LATEST_BY_OFFSET(X, 2, false)", INTEGER, [1, 2, None], [2, None]),
    one("LATEST_BY_OFFSET(X)", BOOLEAN, [True, False], False),
    one("LATEST_BY_OFFSET(X)", INTEGER, [None], None),
    one("LATEST_BY_OFFSET(X, 2)", INTEGER, [None, None], []),
    one("EARLIEST_BY_OFFSET(X, 2)", STRING, [None], []),
    one("EARLIEST_BY_OFFSET(X, 2)", INTEGER, [None, 4], [4]),
    one("STDDEV_SAMP(X)", INTEGER, [1, 2, 3, 4, None], 1.6666666666666667),
    one("STDDEV_SAMP(X)", DOUBLE, [1.0], 0.0),
    one("STDDEV_SAMPLE(X)", BIGINT, [1, 5], 2.8284271247461903),
    one("STDDEV_SAMPLE(X)", DOUBLE, [None], 0.0),
    AggregateCase(
        call="CORRELATION(X, Y)",
        columns=(DOUBLE, DOUBLE),
        rows=[(1.0, 2.0), (2.0, 4.0), (None, 9.0), (3.0, 5.0)],
        expected=0.9819805060619659,
    ),
    AggregateCase(call="CORRELATION(X, Y)", columns=(INTEGER, INTEGER), rows=[(1, 1), (2, 0)], expected=-1.0),
    AggregateCase(call="CORRELATION(X, Y)", columns=(INTEGER, INTEGER), rows=[(1, 1)], expected=math.nan),
    AggregateCase(call="CORRELATION(X, Y)", columns=(INTEGER, INTEGER), rows=[(1, 1), (2, 1)], expected=math.nan),
]

OVER_TABLE = [
    one("COUNT(*)", INTEGER, [1, None, 3], 2, [3]),
    one("COUNT(*)", INTEGER, [1], 0, [1]),
    one("COUNT(X)", INTEGER, [1, None, 3], 1, [None, 3]),
    one("SUM(X)", INTEGER, [1, None, 3], 1, [3]),
    one("SUM(X)", INTEGER, [7], 0, [7]),
    one("SUM(X)", Decimal(4, 2), [D("1.25"), D("2.50")], D("2.50"), [D("1.25")]),
    one("AVG(X)", INTEGER, [1, 2, 9], 1.5, [9]),
    one("AVG(X)", INTEGER, [1], 0.0, [1]),
    one("COLLECT_LIST(X)", INTEGER, [1, None, 1], [None, 1], [1]),
    one("COLLECT_LIST(X)", STRING, ["a", None], ["a"], [None]),
    one("HISTOGRAM(X)", STRING, ["a", "a", "b", None], {"a": 1}, ["a", "b", None]),
    one("STDDEV_SAMP(X)", INTEGER, [1, 2, 3, 4, 100], 1.6666666666666667, [100]),
    one("STDDEV_SAMPLE(X)", INTEGER, [1, 5, 9], 2.8284271247461903, [9]),
    one("STDDEV_SAMPLE(X)", INTEGER, [1, 5], 0.0, [5]),
    AggregateCase(
        call="CORRELATION(X, Y)",
        columns=(INTEGER, INTEGER),
        rows=[(1, 1), (2, 0), (5, 7)],
        taken_back=[(5, 7)],
        expected=-1.0,
    ),
]
