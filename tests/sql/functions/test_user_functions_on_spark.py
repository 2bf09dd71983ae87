"""Functions of the user's inside Spark's Python workers, which have never seen their files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.sql.expressions.spark_sql import python_functions, to_spark_sql
from penstock.sql.functions.registry import FunctionRegistry
from penstock.sql.parser import parse_expression
from penstock.sql.spark.operators.expressions import _register
from penstock.sql.spark.worker_log import WorkerLog
from penstock.sql.types import INTEGER, STRING, Array, SqlType

pytestmark = pytest.mark.filterwarnings("ignore:It is preferred to specify type hints:UserWarning")

COLUMNS: dict[str, SqlType] = {"NAME": STRING, "SCORES": Array(INTEGER)}

UNTOLD = WorkerLog(client={}, topic=None, logger="processing.test")

FILE = """
from __future__ import annotations
from penstock.sql.functions.user import scalar

GREETING = "Hello"

def greeting_for(name: str) -> str:
    return f"{GREETING} {name}"

@scalar
def greet(name: str) -> str:
    return greeting_for(name)

@scalar
def grade(score: int) -> str:
    if score < 0:
        raise ValueError("no such score")
    return "good" if score > 5 else "bad"

@scalar
def spread(scores: list[int]) -> dict[str, int]:
    return {"least": min(scores), "most": max(scores)}
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("GREET(NAME)", ["Hello Ann", None]),
        ("UCASE(GREET(NAME))", ["HELLO ANN", None]),
        ("GRADE(SCORES[1])", ["bad", None]),
        ("TRANSFORM(SCORES, s => GRADE(s))", [["bad", "good"], [None]]),
        ("SPREAD(SCORES)['most']", [9, -1]),
    ],
)
def test_a_query_calls_them(spark: Any, tmp_path: Path, text: str, expected: list[Any]) -> None:
    (tmp_path / "greetings.py").write_text(FILE)
    functions = FunctionRegistry.builtin().with_user_functions(tmp_path)
    expression = parse_expression(text)
    for use in python_functions(expression, COLUMNS, functions):
        _register(spark, use, UNTOLD)
    table = pa.table({"NAME": ["Ann", None], "SCORES": pa.array([[1, 9], [-1]], pa.list_(pa.int32()))})
    result = spark.createDataFrame(table).selectExpr(f"{to_spark_sql(expression, COLUMNS, functions)} as RESULT")
    assert result.toArrow().column(0).to_pylist() == expected
