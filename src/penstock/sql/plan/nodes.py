"""The nodes of a plan.

A node describes rows. Streams: one row per record. Tables: one row per change; a change that deletes is marked, which
the runner carries in a column of its own. Every row has its columns by name, ROWTIME, and below the first stateful node
ROWPARTITION and ROWOFFSET; windowed rows have WINDOWSTART and WINDOWEND (milliseconds).

Names: `SourceNode.prefix` is put before every column of that source (pseudo columns too), so that the sides of a join
never collide: `O_ID`, `U_ROWTIME`. All expressions are resolved against the columns of the node's input.
A join gives the columns of both sides plus its own ROWTIME (the larger of both; the stream's for stream-table joins).
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from penstock.sql.expressions.nodes import Expression, NamedExpression
from penstock.sql.schema import Format, Kind, Schema, TimestampColumn, WindowedKey, WindowType
from penstock.sql.types import SqlType

PLAN_VERSION = 1

JoinKind = Literal["INNER", "LEFT", "RIGHT", "FULL"]
Emit = Literal["CHANGES", "FINAL"]


class Node(msgspec.Struct, frozen=True, tag_field="node", tag=True, kw_only=True):
    """What all nodes share: the tag that names them in JSON."""


class SourceNode(Node, frozen=True, kw_only=True):
    """Reads a topic. For a table, records without a value delete their key.

    Of a stream they are no rows, unless `keeps_empty`: then they are marked like deletions and go into the result as
    records without a value.
    """

    name: str
    kind: Kind
    topic: str
    schema: Schema
    key_format: Format
    value_format: Format
    prefix: str = ""
    timestamp: TimestampColumn | None = None
    windowed: WindowedKey | None = None
    keeps_empty: bool = False

    @property
    def marks_deletions(self) -> bool:
        """Whether rows say that their record had no value."""
        return self.kind == "TABLE" or self.keeps_empty


class FilterNode(Node, frozen=True, kw_only=True):
    """For a table a row that does not match becomes a deletion of its key."""

    input: PlanNode
    predicate: Expression


class ProjectNode(Node, frozen=True, kw_only=True):
    """Names the key and value columns anew. ROWTIME and window columns pass through."""

    input: PlanNode
    key: tuple[NamedExpression, ...]
    value: tuple[NamedExpression, ...]


class FlatMapNode(Node, frozen=True, kw_only=True):
    """Table functions, zipped: one row per element of the longest; each adds the column it is named by."""

    input: PlanNode
    functions: tuple[NamedExpression, ...]


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """`size_ms` is the gap for SESSION; `advance_ms` is set for HOPPING only."""

    type: WindowType
    size_ms: int
    advance_ms: int | None = None
    grace_ms: int = 24 * 60 * 60 * 1000
    retention_ms: int | None = None


class Aggregation(msgspec.Struct, frozen=True, kw_only=True):
    """One aggregate call; `type` is its result. Literal arguments (the k of TOPK) stay among the arguments."""

    name: str
    function: str
    arguments: tuple[Expression, ...]
    type: SqlType


class AggregateNode(Node, frozen=True, kw_only=True):
    """Groups by `key`; gives the key columns, one column per aggregation, ROWTIME (the largest), the window's bounds.

    On a table (`input` is one) each change first takes back what the row gave before.
    `having` refers to the key and aggregation columns: a row that stops matching becomes a deletion in a table, and
    nothing in a stream.
    """

    input: PlanNode
    key: tuple[NamedExpression, ...]
    aggregations: tuple[Aggregation, ...]
    window: Window | None = None
    having: Expression | None = None
    emit: Emit = "CHANGES"


class StreamStreamJoinNode(Node, frozen=True, kw_only=True):
    """Rows of both sides whose keys are equal and whose times lie within: left - before <= right <= left + after.

    `grace_ms` None: none was written.
    """

    left: PlanNode
    right: PlanNode
    kind: JoinKind
    left_key: Expression
    right_key: Expression
    before_ms: int
    after_ms: int
    grace_ms: int | None = None


class StreamTableJoinNode(Node, frozen=True, kw_only=True):
    """Each row of the stream with the row the table has for it now. `table` is read by its primary key."""

    stream: PlanNode
    table: SourceNode
    kind: Literal["INNER", "LEFT"]
    stream_key: Expression


class TableTableJoinNode(Node, frozen=True, kw_only=True):
    """Two tables on their primary keys; a change of either side changes the result.

    `left` may be another TableTableJoinNode (n-way). `key_type` is the type both keys have.
    """

    left: PlanNode
    right: PlanNode
    kind: JoinKind
    left_key: Expression
    right_key: Expression


PlanNode = (
    SourceNode
    | FilterNode
    | ProjectNode
    | FlatMapNode
    | AggregateNode
    | StreamStreamJoinNode
    | StreamTableJoinNode
    | TableTableJoinNode
)


class Sink(msgspec.Struct, frozen=True, kw_only=True):
    """Where the result goes. `timestamp` takes the records' time from a column of the result."""

    name: str
    kind: Kind
    topic: str
    schema: Schema
    key_format: Format
    value_format: Format
    windowed: WindowedKey | None = None
    timestamp: TimestampColumn | None = None


class QueryPlan(msgspec.Struct, frozen=True, kw_only=True):
    """One query. `sink` is None for a push or pull query, whose rows go to the one who asked: `columns` are then the
    names as selected, in order, each a column of `schema` or one of ROWTIME, WINDOWSTART, WINDOWEND.

    `properties` are the engine's settings the query was made with (`auto.offset.reset`, shuffle partitions ...).
    `starts` are offsets by topic and partition, for a query that reads what comes after its statement: whenever Spark
    gets to start it, and however often, it begins there.
    """

    query_id: str
    text: str
    kind: Kind
    root: PlanNode
    schema: Schema
    sink: Sink | None = None
    windowed: WindowedKey | None = None
    emit: Emit = "CHANGES"
    limit: int | None = None
    columns: tuple[str, ...] = ()
    properties: dict[str, Any] = {}
    starts: dict[str, dict[int, int]] = {}
    version: int = PLAN_VERSION


_DECODER = msgspec.json.Decoder(QueryPlan)
"""Made here, once: two threads that are the first to decode a recursive type crash msgspec."""


def to_json(plan: QueryPlan) -> bytes:
    return msgspec.json.encode(plan)


def from_json(data: bytes) -> QueryPlan:
    return _DECODER.decode(data)
