"""Every case of the data files as Spark SQL text, in batches: as written, and with its literals in columns.

The second way keeps Spark from computing everything while it plans, and takes the paths for values that come with the
data: patterns, units and formats that are not known beforehand.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException

from penstock.sql.errors import SemanticError
from penstock.sql.expressions import nodes
from penstock.sql.expressions.nodes import Call, Expression, Lambda, NullLiteral
from penstock.sql.expressions.spark_sql import python_functions, to_spark_sql
from penstock.sql.expressions.spark_types import quoted, spark_type
from penstock.sql.expressions.typing import infer
from penstock.sql.expressions.walk import transform
from penstock.sql.formats.python_values import to_python
from penstock.sql.functions.model import ScalarFunction
from penstock.sql.spark.operators.expressions import _register
from penstock.sql.spark.worker_log import WorkerLog
from penstock.sql.types import NULL, SqlType
from tests.sql.functions.case_files import FOLDER, FUNCTIONS, Case, all_cases, read_cases, same

pytestmark = pytest.mark.filterwarnings("ignore:It is preferred to specify type hints:UserWarning")

UNTOLD = WorkerLog(client={}, topic=None, logger="processing.test")

FILES = sorted(FOLDER.glob("*.test"))
BATCH_SIZE = 25

_LITERALS = (
    nodes.BooleanLiteral,
    nodes.IntegerLiteral,
    nodes.DecimalLiteral,
    nodes.DoubleLiteral,
    nodes.StringLiteral,
)


@dataclass(frozen=True, slots=True)
class Trial:
    """An expression to run, with the columns it needs: name to literal."""

    case: Case
    expression: Expression
    literals: dict[str, Expression]
    expected: Any

    @property
    def columns(self) -> dict[str, SqlType]:
        return {name: infer(literal, {}, FUNCTIONS) for name, literal in self.literals.items()}

    @property
    def type(self) -> SqlType:
        return infer(self.expression, self.columns, FUNCTIONS)

    @property
    def text(self) -> str:
        return to_spark_sql(self.expression, self.columns, FUNCTIONS)

    def __str__(self) -> str:
        return f"{self.case.place} {'with columns' if self.literals else 'as written'}: {self.case.text}"


def as_written(case: Case) -> Trial:
    return Trial(case, case.expression, {}, case.value)


def with_columns(case: Case) -> Trial | None:
    """None when the literals are needed: some bend further than columns do."""
    prefix = "".join(character if character.isalnum() else "_" for character in case.place)
    literals: dict[str, Expression] = {}

    def replace(node: Expression) -> Expression:
        if not isinstance(node, _LITERALS):
            return node
        name = f"{prefix}_{len(literals)}"
        literals[name] = node
        return nodes.Column(name)

    expression = transform(case.expression, replace)
    trial = Trial(case, expression, literals, case.value)
    try:
        return trial if literals and trial.type == infer(case.expression, {}, FUNCTIONS) and trial.text else None
    except SemanticError:
        return None


def null_trials() -> Iterator[Trial]:
    """Strict functions with a null in each place."""
    cases = [case for case in all_cases() if case.refused is None]
    for function in FUNCTIONS.all():
        case = next((case for case in cases if case.function == function.name), None)
        if isinstance(function, ScalarFunction) and function.strict and case is not None:
            yield from _with_nulls(case)


def _with_nulls(case: Case) -> Iterator[Trial]:
    call = case.expression
    assert isinstance(call, Call)
    for index, argument in enumerate(call.arguments):
        if not isinstance(argument, Lambda):
            arguments = (*call.arguments[:index], NullLiteral(), *call.arguments[index + 1 :])
            yield Trial(case, Call(call.name, arguments), {}, None)


def run(spark: Any, trials: list[Trial]) -> list[str]:
    """What went wrong. A batch that fails as a whole is repeated one by one, to find whose fault it is."""
    try:
        return _run_together(spark, trials)
    except PySparkException as error:
        if len(trials) == 1:
            return [f"{trials[0]} raised {str(error).splitlines()[0]} for {trials[0].text}"]
        return [problem for trial in trials for problem in run(spark, [trial])]


def _run_together(spark: Any, trials: list[Trial]) -> list[str]:
    for trial in trials:
        for use in python_functions(trial.expression, trial.columns, FUNCTIONS):
            _register(spark, use, UNTOLD)
    literals = {name: literal for trial in trials for name, literal in trial.literals.items()}
    frame = spark.range(1)
    if literals:
        columns = [f"{to_spark_sql(each, {}, FUNCTIONS)} as {quoted(name)}" for name, each in literals.items()]
        frame = spark.sql(f"select {', '.join(columns)}").localCheckpoint()
    result = frame.selectExpr(*(f"{trial.text} as `{index}`" for index, trial in enumerate(trials)))
    types = [field.dataType.simpleString() for field in result.schema.fields]
    row = result.toArrow().combine_chunks()
    problems = []
    for index, trial in enumerate(trials):
        if trial.type == NULL:
            continue
        (actual,) = to_python(row.column(index).combine_chunks(), trial.type)
        if not same(actual, trial.expected, trial.case.tolerance):
            problems.append(f"{trial} gives {actual!r}, not {trial.expected!r}: {trial.text}")
        if types[index] != spark_type(trial.type).replace("`", ""):
            problems.append(f"{trial} has the type {types[index]}, not {spark_type(trial.type)}")
    return problems


def run_all(spark: Any, trials: list[Trial]) -> None:
    problems: list[str] = []
    for start in range(0, len(trials), BATCH_SIZE):
        problems += run(spark, trials[start : start + BATCH_SIZE])
    assert not problems, "\n".join([f"{len(problems)} of {len(trials)}:", *problems])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_cases_as_written(spark: Any, path: Path) -> None:
    run_all(spark, [as_written(case) for case in read_cases(path) if case.refused is None])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_cases_with_values_in_columns(spark: Any, path: Path) -> None:
    trials = [with_columns(case) for case in read_cases(path) if case.refused is None]
    run_all(spark, [trial for trial in trials if trial is not None])


def test_a_null_argument_makes_a_strict_function_null(spark: Any) -> None:
    run_all(spark, list(null_trials()))
