"""What comes before an aggregation: the key, the arguments, and the time as plain columns.

Everything else is left behind here. Rows that have a null in their key belong to no group and are dropped.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as sf

from penstock.sql.errors import SemanticError
from penstock.sql.expressions.evaluation import compile_as
from penstock.sql.expressions.nodes import Expression
from penstock.sql.expressions.spark_types import quoted
from penstock.sql.expressions.walk import columns_of
from penstock.sql.functions.model import AggregateFunction
from penstock.sql.plan.nodes import AggregateNode, Aggregation, Window
from penstock.sql.schema import ROWTIME, WINDOW_COLUMNS
from penstock.sql.spark.operators.context import Query
from penstock.sql.spark.operators.expressions import spark_text, type_of
from penstock.sql.spark.operators.rows import Rows, column
from penstock.sql.types import BIGINT, SqlType

_PRIMARY = "__PRIMARY_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """`name` is the column that holds it; None for one that is the same for all rows, whose `value` is known."""

    text: str
    type: SqlType
    name: str | None = None
    value: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """An aggregation whose arguments are columns."""

    name: str
    type: SqlType
    function: AggregateFunction
    arguments: tuple[Argument, ...]

    @property
    def texts(self) -> list[str]:
        return [argument.text for argument in self.arguments]

    @property
    def types(self) -> list[SqlType]:
        return [argument.type for argument in self.arguments]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """`rows` have the columns `keys`, those of the arguments, and for a table `primary`, which identifies its rows."""

    rows: Rows
    keys: dict[str, SqlType]
    aggregates: tuple[Aggregate, ...]
    primary: tuple[str, ...]

    @property
    def argument_names(self) -> list[str]:
        return [each.name for aggregate in self.aggregates for each in aggregate.arguments if each.name is not None]

    def result_columns(self, window: Window | None) -> dict[str, SqlType]:
        """What expressions above the aggregation may name."""
        own = {**self.keys, **{each.name: each.type for each in self.aggregates}, ROWTIME: BIGINT}
        return own if window is None else {**own, **WINDOW_COLUMNS}


def grouping_of(query: Query, node: AggregateNode, rows: Rows) -> Grouping:
    keys = {each.name: type_of(query, each.expression, rows.columns) for each in node.key}
    selected = [sf.expr(spark_text(query, each.expression, rows.columns)).alias(each.name) for each in node.key]
    aggregates = []
    for index, aggregation in enumerate(node.aggregations):
        aggregate, columns = _aggregate(query, aggregation, rows, f"__ARGUMENT_{index}")
        aggregates.append(aggregate)
        selected += columns
    primary = _primary_columns(rows)
    carried, after = rows.carried()
    frame = rows.frame.select(*selected, *primary.values(), *carried)
    if rows.kind == "STREAM" and keys:
        frame = frame.where(no_null_text(keys))
    return Grouping(
        rows=replace(after, frame=frame, columns=keys),
        keys=keys,
        aggregates=tuple(aggregates),
        primary=tuple(primary),
    )


def no_null_text(names: dict[str, SqlType]) -> str:
    return " AND ".join(f"{quoted(name)} IS NOT NULL" for name in names)


def _primary_columns(rows: Rows) -> dict[str, Column]:
    if rows.kind == "STREAM":
        return {}
    names = (*rows.key, *(rows.window or ()))
    return {f"{_PRIMARY}{index}": column(name).alias(f"{_PRIMARY}{index}") for index, name in enumerate(names)}


def _aggregate(query: Query, aggregation: Aggregation, rows: Rows, prefix: str) -> tuple[Aggregate, list[Column]]:
    function = query.context.functions.aggregate(aggregation.function)
    if function is None:
        raise SemanticError(f"There is no aggregate function '{aggregation.function}'.", hint="See SHOW FUNCTIONS.")
    given = [type_of(query, each, rows.columns) for each in aggregation.arguments]
    wanted = query.context.functions.resolve(aggregation.function, given).argument_types
    arguments, columns = [], []
    for index, (expression, sql_type) in enumerate(zip(aggregation.arguments, wanted, strict=True)):
        argument, selected = _argument(query, expression, sql_type, rows, f"{prefix}_{index}")
        arguments.append(argument)
        columns += selected
    made = Aggregate(name=aggregation.name, type=aggregation.type, function=function, arguments=tuple(arguments))
    return made, columns


def _argument(
    query: Query, expression: Expression, sql_type: SqlType, rows: Rows, name: str
) -> tuple[Argument, list[Column]]:
    text = spark_text(query, expression, rows.columns, sql_type)
    if not columns_of(expression):
        value = compile_as(expression, sql_type, {}, query.context.functions)({})
        return Argument(text=text, type=sql_type, value=value), []
    return Argument(text=quoted(name), type=sql_type, name=name), [sf.expr(text).alias(name)]
