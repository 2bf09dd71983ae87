"""Aggregate functions row by row, as sessions run them, and where they may be used."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from penstock.sql.errors import SemanticError
from penstock.sql.expressions.casting import fitter, null_safe
from penstock.sql.expressions.evaluation import compile_as
from penstock.sql.expressions.nodes import Call
from penstock.sql.expressions.typing import Types, infer
from penstock.sql.functions.model import AggregateFunction
from penstock.sql.parser import parse_expression
from penstock.sql.types import INTEGER, STRING
from tests.sql.functions.aggregate_cases import CASES, AggregateCase
from tests.sql.functions.case_files import FUNCTIONS, same

NAMES = ("X", "Y")
UNDOABLE = {"AVG", "COUNT", "SUM", "COLLECT_LIST", "HISTOGRAM", "CORRELATION", "STDDEV_SAMP", "STDDEV_SAMPLE"}


def aggregated(case: AggregateCase, cut: int | None) -> Any:
    """The result, with the rows before and after the cut aggregated apart and merged."""
    columns = dict(zip(NAMES, case.columns, strict=False))
    call = parse_expression(case.call)
    assert isinstance(call, Call)
    resolution = Types(columns, FUNCTIONS).resolution(call)
    function = resolution.function
    assert isinstance(function, AggregateFunction)
    arguments = [
        compile_as(argument, wanted, columns, FUNCTIONS)
        for argument, wanted in zip(call.arguments, resolution.argument_types, strict=True)
    ]
    states = [function.initial(), function.initial()]
    for index, values in enumerate(case.rows):
        side = 0 if cut is None or index < cut else 1
        row = dict(zip(NAMES, values, strict=False))
        states[side] = function.add(states[side], [argument(row) for argument in arguments], [index, 0, index])
    state = states[0] if cut is None else function.merge(*states)
    return null_safe(fitter(resolution.return_type))(function.result(state))


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("cut", [None, 0, 1, 2])
def test_rows_one_by_one(case: AggregateCase, cut: int | None) -> None:
    actual = aggregated(case, cut)
    assert same(actual, case.expected, 1e-12), f"{case} gives {actual!r}"


@pytest.mark.parametrize("name", ["COLLECT_LIST", "COLLECT_SET", "HISTOGRAM", "TOPK", "LATEST_BY_OFFSET"])
def test_a_result_does_not_change_when_more_rows_come(name: str) -> None:
    function = FUNCTIONS.aggregate(name)
    assert function is not None
    more: list[Any] = [] if name.startswith(("COLLECT", "HIST")) else [5]
    state = function.add(function.initial(), ["a", *more], [0, 0, 0])
    result = function.result(state)
    before = copy.deepcopy(result)
    function.add(state, ["b", *more], [1, 0, 1])
    assert result == before


def test_those_that_can_take_back_may_run_over_tables() -> None:
    aggregates = [function for function in FUNCTIONS.all() if isinstance(function, AggregateFunction)]
    assert {function.name for function in aggregates if function.undo} == UNDOABLE


def test_the_type_of_a_table_function_is_that_of_one_row() -> None:
    assert infer(parse_expression("EXPLODE(ARRAY[1])"), {}, FUNCTIONS) == INTEGER
    assert str(infer(parse_expression("CUBE_EXPLODE(ARRAY['a'])"), {}, FUNCTIONS)) == "ARRAY<STRING>"


@pytest.mark.parametrize(
    ("values", "rows"),
    [
        ([1, 2], [[None, None], [None, 2], [1, None], [1, 2]]),
        ([1, None], [[None, None], [1, None]]),
        ([], [[]]),
        (None, None),
    ],
)
def test_cube(values: list[int | None] | None, rows: list[list[int | None]] | None) -> None:
    cube = FUNCTIONS.table("CUBE_EXPLODE")
    assert cube is not None
    assert cube.python(values) == rows


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("SUM(X)", "Function 'SUM' does not accept parameters (STRING)."),
        ("AVG(true)", "does not accept parameters (BOOLEAN)"),
        ("TOPK(X, Y, 'three')", "The last argument of TOPK is how many to keep, an INTEGER, not STRING."),
        ("HISTOGRAM(Y)", "does not accept parameters (INTEGER)"),
    ],
)
def test_wrong_types_are_refused(call: str, message: str) -> None:
    with pytest.raises(SemanticError) as refusal:
        infer(parse_expression(call), {"X": STRING, "Y": INTEGER}, FUNCTIONS)
    assert message in str(refusal.value)
