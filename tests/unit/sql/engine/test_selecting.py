"""Which part of a table a predicate asks for."""

from __future__ import annotations

import pytest

from penstock.sql.engine.selecting import selection_of
from penstock.sql.functions.registry import FunctionRegistry
from penstock.sql.parser import parse_expression
from penstock.sql.plan.nodes import SourceNode
from penstock.sql.schema import ColumnSchema, Format, Schema, WindowedKey
from penstock.sql.stores.table_store import Bounds, Selection
from penstock.sql.types import BIGINT, STRING, Decimal, SqlType


def source(*types: SqlType) -> SourceNode:
    return SourceNode(
        name="T",
        kind="TABLE",
        topic="t",
        schema=Schema(
            key=tuple(ColumnSchema(f"K{index}" if len(types) > 1 else "K", each) for index, each in enumerate(types)),
            value=(ColumnSchema("V", BIGINT),),
        ),
        key_format=Format("JSON"),
        value_format=Format("JSON"),
        windowed=WindowedKey("TUMBLING", 10),
    )


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("v > 3", Selection()),
        ("k = 'a'", Selection(keys=(("a",),))),
        ("'a' = k AND v = 1", Selection(keys=(("a",),))),
        ("k = 'a' OR k = 'b'", Selection()),
        ("k IN ('a', 'b')", Selection(keys=(("a",), ("b",)))),
        ("k IN ('a', 'b') AND k = 'b'", Selection(keys=(("b",),))),
        ("k NOT IN ('a')", Selection()),
        ("k = 'a' AND k = 'b'", Selection(keys=())),
        ("k >= 'b' AND k < 'd'", Selection(key_bounds=Bounds("b", "d"))),
        ("'b' < k", Selection(key_bounds=Bounds("b", None))),
        ("k BETWEEN 'b' AND 'c'", Selection(key_bounds=Bounds("b", "c"))),
        ("k = v", Selection()),
        ("k = CONCAT('a', 'b')", Selection(keys=(("ab",),))),
        ("k = 'a' AND WINDOWSTART >= 5 AND 20 > WINDOWSTART", Selection(keys=(("a",),), window_start=Bounds(5, 20))),
        ("WINDOWEND = 10", Selection(window_end=Bounds(10, 10))),
        ("NOT (k = 'a')", Selection()),
    ],
)
def test_conditions_joined_by_and_narrow(where: str, expected: Selection) -> None:
    assert selection_of(parse_expression(where), source(STRING), FunctionRegistry.builtin()) == expected


def test_no_predicate_asks_for_everything() -> None:
    assert selection_of(None, source(STRING), FunctionRegistry.builtin()) == Selection()


def test_all_columns_of_a_key_are_needed_to_find_it() -> None:
    functions = FunctionRegistry.builtin()
    one = selection_of(parse_expression("k0 = 'a'"), source(STRING, BIGINT), functions)
    both = selection_of(parse_expression("k0 = 'a' AND k1 IN (1, 2)"), source(STRING, BIGINT), functions)
    assert one == Selection()
    assert both == Selection(keys=(("a", 1), ("a", 2)))


@pytest.mark.parametrize(
    ("key", "where"),
    [(BIGINT, "k = 1.5"), (Decimal(4, 2), "k = 1"), (BIGINT, "k < 2.5"), (STRING, "k = NULL"), (BIGINT, "k = true")],
)
def test_values_that_the_index_compares_differently_do_not_narrow(key: SqlType, where: str) -> None:
    assert selection_of(parse_expression(where), source(key), FunctionRegistry.builtin()) == Selection()
