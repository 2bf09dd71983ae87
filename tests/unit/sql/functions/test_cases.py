"""Every case of the data files through the interpreter."""

from __future__ import annotations

import pytest

from penstock.sql.errors import SemanticError
from penstock.sql.expressions.evaluation import compile_expression
from penstock.sql.expressions.nodes import Call, Lambda, NullLiteral
from penstock.sql.functions.model import ScalarFunction
from tests.sql.functions.case_files import FUNCTIONS, Case, all_cases, same, type_of

CASES = all_cases()
SCALARS = [function for function in FUNCTIONS.all() if isinstance(function, ScalarFunction)]


@pytest.mark.parametrize("case", [pytest.param(case, id=case.place) for case in CASES])
def test_case(case: Case) -> None:
    if case.refused is not None:
        with pytest.raises(SemanticError) as refusal:
            type_of(case.expression)
        assert case.refused in str(refusal.value)
        return
    if case.type is not None:
        assert type_of(case.expression) == case.type
    actual = compile_expression(case.expression, {}, FUNCTIONS)({})
    assert same(actual, case.value, case.tolerance), f"{case.text} gives {actual!r}, not {case.expected}"


@pytest.mark.parametrize("function", SCALARS, ids=lambda function: function.name)
def test_every_function_has_cases(function: ScalarFunction) -> None:
    assert any(case.function == function.name for case in CASES) or function.name in ("RANDOM",)


@pytest.mark.parametrize("function", [each for each in SCALARS if each.strict], ids=lambda function: function.name)
def test_a_null_argument_makes_a_strict_function_null(function: ScalarFunction) -> None:
    case = next((case for case in CASES if case.function == function.name and case.refused is None), None)
    if case is None:
        return
    call = case.expression
    assert isinstance(call, Call)
    for index, argument in enumerate(call.arguments):
        if not isinstance(argument, Lambda):
            arguments = (*call.arguments[:index], NullLiteral(), *call.arguments[index + 1 :])
            assert compile_expression(Call(call.name, arguments), {}, FUNCTIONS)({}) is None
