"""Expressions of a plan in Spark: their text, and the Python functions the text calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.functions import arrow_udf

from penstock.sql.expressions.nodes import Expression
from penstock.sql.expressions.spark_sql import PythonFunctionUse, python_functions, to_spark_sql, to_spark_sql_as
from penstock.sql.expressions.spark_types import spark_type
from penstock.sql.expressions.typing import infer
from penstock.sql.formats.python_values import to_python
from penstock.sql.spark.operators.context import Query
from penstock.sql.spark.values import arrow_array
from penstock.sql.spark.worker_log import Failures, WorkerLog
from penstock.sql.types import SqlType

Columns = Mapping[str, SqlType]

_arrow_udf: Any = arrow_udf  # its annotations know no functions of any number of columns


def type_of(query: Query, expression: Expression, columns: Columns) -> SqlType:
    return infer(expression, columns, query.context.functions)


def spark_text(query: Query, expression: Expression, columns: Columns, target: SqlType | None = None) -> str:
    """The text of an expression, turned into `target` if that is given. What it calls is registered after this."""
    functions = query.context.functions
    for use in python_functions(expression, columns, functions):
        _register(query.context.spark, use, query.context.log)
    if target is None:
        return to_spark_sql(expression, columns, functions)
    return to_spark_sql_as(expression, target, columns, functions)


def _register(spark: SparkSession, use: PythonFunctionUse, log: WorkerLog) -> None:
    result = spark_type(use.return_type)
    # Without arguments there is no column that tells how many values to give.
    function = _arrow_udf(_on_columns(use, log), result) if use.argument_types else sf.udf(_alone(use, log), result)
    spark.udf.register(use.name, function)


def _on_columns(use: PythonFunctionUse, log: WorkerLog) -> Callable[..., pa.Array]:
    """The function on whole Arrow columns. Row by row inside: the rule book knows single values."""
    types, result = use.argument_types, use.return_type

    def call(*columns: pa.Array) -> pa.Array:
        values: Any = zip(*map(to_python, columns, types), strict=True)
        return arrow_array(_computed(use, values, log), result)

    return call


def _alone(use: PythonFunctionUse, log: WorkerLog) -> Callable[[], Any]:
    return lambda: _computed(use, [()], log)[0]


def _computed(use: PythonFunctionUse, rows: Iterable[tuple[Any, ...]], log: WorkerLog) -> list[Any]:
    """The function's value for each row. Failures are told once all are computed."""
    failures = Failures()

    def value(row: tuple[Any, ...]) -> Any:
        return use.function(lambda reason: failures.add(reason, row), *row)

    values = [value(row) for row in rows]
    if failures.told:
        log.tell_failures(failures)
    return values
