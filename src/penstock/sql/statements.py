"""Statements as data: what the parser gives and the engine does."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from penstock.sql.expressions.nodes import Expression
from penstock.sql.expressions.places import Places
from penstock.sql.plan.nodes import Emit, JoinKind, Window
from penstock.sql.schema import Kind
from penstock.sql.types import SqlType

Properties = dict[str, object]
"""WITH properties: upper-case names; values are str, int, bool or float as written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnDefinition:
    """`role` is None for a plain value column; `header` is the name in HEADER('name')."""

    name: str
    type: SqlType
    role: Literal["KEY", "PRIMARY KEY", "HEADERS", "HEADER"] | None = None
    header: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectItem:
    """`expression` is None for a star: `*`, or `source.*`. `struct_all`: `expression->*`. `alias` None: unnamed."""

    expression: Expression | None
    alias: str | None = None
    star_source: str | None = None
    struct_all: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    name: str
    alias: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Within:
    before_ms: int
    after_ms: int
    grace_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    kind: JoinKind
    relation: Relation
    condition: Expression
    within: Within | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A SELECT. `emit` is None for a pull query (or when the place of the query implies CHANGES).

    `grace_given`: the WINDOW clause had a GRACE PERIOD; without one EMIT FINAL waits for no late rows.
    """

    items: tuple[SelectItem, ...]
    source: Relation
    joins: tuple[Join, ...] = ()
    window: Window | None = None
    where: Expression | None = None
    group_by: tuple[Expression, ...] = ()
    partition_by: tuple[Expression, ...] = ()
    having: Expression | None = None
    emit: Emit | None = None
    limit: int | None = None
    grace_given: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSource:
    """`columns` is empty when the schema is to be looked up. `read_only`: CREATE SOURCE ..."""

    kind: Kind
    name: str
    columns: tuple[ColumnDefinition, ...]
    properties: Properties
    or_replace: bool = False
    if_not_exists: bool = False
    read_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateAsSelect:
    kind: Kind
    name: str
    query: Query
    properties: Properties = field(default_factory=dict)
    or_replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertSelect:
    """`properties` may hold QUERY_ID."""

    target: str
    query: Query
    properties: Properties = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertValues:
    """`columns` is empty when the values come in the order of the schema."""

    target: str
    columns: tuple[str, ...]
    values: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DropSource:
    kind: Kind
    name: str
    if_exists: bool = False
    delete_topic: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterSource:
    kind: Kind
    name: str
    columns: tuple[ColumnDefinition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateType:
    name: str
    type: SqlType
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DropType:
    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectStatement:
    """A query on its own: push with EMIT, pull without."""

    query: Query


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintTopic:
    topic: str
    from_beginning: bool = False
    interval: int = 1
    limit: int | None = None


ListedThing = Literal[
    "STREAMS", "TABLES", "TOPICS", "ALL TOPICS", "QUERIES", "FUNCTIONS", "TYPES", "PROPERTIES", "VARIABLES",
    "CONNECTORS", "SOURCE CONNECTORS", "SINK CONNECTORS", "CONNECTOR PLUGINS",
]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ListThings:
    """SHOW or LIST."""

    thing: ListedThing
    extended: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Describe:
    """DESCRIBE name; DESCRIBE FUNCTION name; DESCRIBE CONNECTOR name; DESCRIBE STREAMS; DESCRIBE TABLES."""

    what: Literal["SOURCE", "FUNCTION", "CONNECTOR", "STREAMS", "TABLES"]
    name: str | None = None
    extended: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Explain:
    """Of a running query by its id, or of a statement."""

    query_id: str | None = None
    statement: Statement | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlQuery:
    """TERMINATE, PAUSE, RESUME; `query_id` None: ALL."""

    action: Literal["TERMINATE", "PAUSE", "RESUME"]
    query_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetProperty:
    name: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsetProperty:
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterSystem:
    name: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DefineVariable:
    name: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UndefineVariable:
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunScript:
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Spool:
    """`path` None: SPOOL OFF."""

    path: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateConnector:
    direction: Literal["SOURCE", "SINK"]
    name: str
    properties: Properties
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DropConnector:
    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AssertTopic:
    name: str
    properties: Properties
    exists: bool = True
    timeout_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AssertSchema:
    subject: str | None
    schema_id: int | None
    exists: bool = True
    timeout_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AssertValues:
    """Of the test tool: the next row of a source is this one; `tombstone` for ASSERT NULL VALUES."""

    target: str
    columns: tuple[str, ...]
    values: tuple[Expression, ...]
    tombstone: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AssertSource:
    """Of the test tool: ASSERT STREAM/TABLE with the schema it must have."""

    source: CreateSource


Statement = (
    CreateSource | CreateAsSelect | InsertSelect | InsertValues | DropSource | AlterSource | CreateType | DropType
    | SelectStatement | PrintTopic | ListThings | Describe | Explain | ControlQuery | SetProperty | UnsetProperty
    | AlterSystem | DefineVariable | UndefineVariable | RunScript | Spool | CreateConnector | DropConnector
    | AssertTopic | AssertSchema | AssertValues | AssertSource
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedStatement:
    """A statement with the text it was written as (masked of nothing, without the semicolon) and where it began."""

    text: str
    statement: Statement
    line: int
    column: int
    places: Places = field(default_factory=Places, compare=False, repr=False)
