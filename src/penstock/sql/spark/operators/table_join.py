"""Table-table joins on primary keys, any number of tables at once.

The changes of all tables are put together and grouped by the key. Of each table the group remembers its last row; from
those the joined row is computed, or that there is none any more. The state is Spark's own aggregate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from penstock.sql.errors import NotSupportedError
from penstock.sql.expressions import nodes as expressions
from penstock.sql.expressions.nodes import Expression
from penstock.sql.expressions.spark_types import quoted
from penstock.sql.formats.decoding import DELETED
from penstock.sql.plan.nodes import PlanNode, TableTableJoinNode
from penstock.sql.schema import ROWTIME
from penstock.sql.spark.operators.context import Query
from penstock.sql.spark.operators.expressions import spark_text
from penstock.sql.spark.operators.rows import Rows, column
from penstock.sql.types import BIGINT

_KEY = "__KEY"
_PLACE = "__PLACE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the joined tables. `name` is the column that holds its last row as a struct."""

    rows: Rows
    key: Expression
    name: str

    @property
    def present(self) -> str:
        return f"coalesce(NOT {self.name}.{DELETED}, false)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Presence:
    """When a joined row exists, and when each side (by name) is part of it: conditions as text."""

    condition: str
    sides: dict[str, str]


def table_join_rows(query: Query, node: TableTableJoinNode, rows_of: Callable[[PlanNode], Rows]) -> Rows:
    sides = {id(leaf): _side(rows_of(leaf), key, f"__SIDE_{index}") for index, (leaf, key) in enumerate(_leaves(node))}
    presence = _presence(node, sides)
    changes = [_changes(query, side) for side in sides.values()]
    together = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), changes)
    last = [sf.expr(f"max_by({side.name}, {side.name}.{_PLACE})").alias(side.name) for side in sides.values()]
    return _joined(query, list(sides.values()), presence, together.groupBy(_KEY).agg(*last))


def _leaves(node: TableTableJoinNode) -> Iterator[tuple[PlanNode, Expression]]:
    """The tables that are joined, each with its key, the left-most first."""
    if isinstance(node.left, TableTableJoinNode):
        yield from _leaves(node.left)
    else:
        yield node.left, node.left_key
    yield node.right, node.right_key


def _side(rows: Rows, key: Expression, name: str) -> Side:
    if rows.window is not None:
        raise NotSupportedError(
            "Windowed tables cannot be joined.",
            hint="Write the windowed table into a topic and read it as a stream, or join before the window.",
        )
    if not rows.order:
        raise NotSupportedError(
            "A table that this query computes cannot be joined with another table.",
            hint="Create it with CREATE TABLE AS SELECT first, and join the result.",
        )
    return Side(rows=rows, key=key, name=name)


def _presence(node: PlanNode, sides: dict[int, Side]) -> Presence:
    if not isinstance(node, TableTableJoinNode):
        side = sides[id(node)]
        return Presence(condition=side.present, sides={side.name: side.present})
    left, right = _presence(node.left, sides), _presence(node.right, sides)
    condition = {
        "INNER": f"({left.condition} AND {right.condition})",
        "LEFT": left.condition,
        "RIGHT": right.condition,
        "FULL": f"({left.condition} OR {right.condition})",
    }[node.kind]
    # A side shows only in rows that its own part of the join has: B of (A LEFT JOIN B) FULL JOIN C needs an A.
    seen = {
        name: part if part == branch.condition else f"({part} AND {branch.condition})"
        for branch in (left, right)
        for name, part in branch.sides.items()
    }
    return Presence(condition=condition, sides=seen)


def _changes(query: Query, side: Side) -> DataFrame:
    rows = side.rows
    deleted = sf.lit(False) if rows.deleted is None else column(rows.deleted)
    last: list[Column] = [
        *map(column, _used(query, side)),
        column(rows.rowtime).alias(f"__{ROWTIME}"),
        deleted.alias(DELETED),
        sf.expr(rows.place_text).alias(_PLACE),
    ]
    key = sf.expr(spark_text(query, side.key, rows.columns))
    return rows.frame.select(key.alias(_KEY), sf.struct(*last).alias(side.name))


def _used(query: Query, side: Side) -> list[str]:
    return [name for name in side.rows.columns if name in query.used_columns and not _is_key(side, name)]


def _is_key(side: Side, name: str) -> bool:
    return side.key == expressions.Column(name)


def _shown(side: Side, seen: str, name: str) -> Column:
    return sf.expr(f"CASE WHEN {seen} THEN {side.name}.{quoted(name)} END").alias(name)


def _joined(query: Query, sides: list[Side], presence: Presence, frame: DataFrame) -> Rows:
    selected, columns = [], {}
    for side in sides:
        seen = presence.sides[side.name]
        selected += [_shown(side, seen, name) for name in _used(query, side)]
        for name in side.rows.columns:
            columns[name] = side.rows.columns[name]
            if _is_key(side, name):
                # A deletion has its key under every name.
                selected.append(sf.expr(f"CASE WHEN {seen} OR NOT {presence.condition} THEN {_KEY} END").alias(name))
    times = [sf.expr(f"{side.name}.__{ROWTIME}") for side in sides]
    selected += [sf.greatest(*times).alias(ROWTIME), sf.expr(f"NOT {presence.condition}").alias(DELETED)]
    return Rows(
        frame=frame.select(*selected),
        kind="TABLE",
        columns={**columns, ROWTIME: BIGINT},
        key=tuple(side.key.name for side in sides[:1] if isinstance(side.key, expressions.Column)),
        deleted=DELETED,
    )
