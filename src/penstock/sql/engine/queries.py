"""Queries somebody waits for: pull (what is there now), push (what comes), and PRINT (what a topic holds)."""

from __future__ import annotations

import contextlib
import dataclasses
import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from penstock import ClientClosed, UnknownTopicOrPartition
from penstock.client.core.loop_thread import LoopThread
from penstock.sql.catalog.catalog import Catalog, Source
from penstock.sql.engine.chains import Chain, is_simple, result_columns
from penstock.sql.engine.printing import TopicPrinter
from penstock.sql.engine.pull import pull_stream, pull_table
from penstock.sql.engine.push import PushReader
from penstock.sql.engine.reading import no_topic, remedy
from penstock.sql.engine.rows import IteratedRows, Row, RowQueue, Rows
from penstock.sql.engine.starts import with_starts
from penstock.sql.engine.topic_follower import end_followers
from penstock.sql.engine.topics import Topics
from penstock.sql.errors import NotFoundError, NotSupportedError, SemanticError, SqlError
from penstock.sql.functions.registry import FunctionRegistry
from penstock.sql.kafka import KafkaAccess
from penstock.sql.plan.nodes import QueryPlan, SourceNode
from penstock.sql.plan.planner import plan_query
from penstock.sql.schema import WINDOW_COLUMNS
from penstock.sql.statements import ParsedStatement, PrintTopic, SelectStatement
from penstock.sql.stores.stores import OpenTable, Stores
from penstock.sql.types import STRING, SqlType

_START_TIMEOUT_S = 60.0


class TooManyQueriesError(SqlError):
    """The server answers no more push queries for now."""

    code = 40003


class TransientRunner(Protocol):
    """Runs a plan without a sink on Spark, and gives its rows to a queue. Returns what stops it."""

    def run_transient(self, plan: QueryPlan, queue: RowQueue) -> Callable[[], None]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningQuery:
    """`kind` PRINT: each row has one column, a line of text."""

    query_id: str
    kind: Literal["PUSH", "PULL", "PRINT"]
    columns: tuple[tuple[str, SqlType], ...]
    rows: Rows
    warnings: tuple[str, ...] = ()
    key_columns: frozenset[str] = frozenset()
    """Those of the columns that are keys: only rows that are pulled from a table have any."""
    plan: QueryPlan | None = None
    on_close: Callable[[], None] = field(default=lambda: None)

    def take(self, count_max: int = 1_000, timeout_s: float = 1.0) -> list[Row] | None:
        return self.rows.take(count_max, timeout_s)

    def close(self) -> None:
        self.rows.close()
        self.on_close()


class QueryService:
    """Opens queries and knows those that are open. `runner` runs the push queries that need Spark."""

    def __init__(
        self,
        catalog: Callable[[], Catalog],
        functions: FunctionRegistry,
        kafka: KafkaAccess,
        stores: Stores,
        runner: TransientRunner,
        push_queries_max: int = 100,
    ) -> None:
        self._catalog = catalog
        self._functions = functions
        self._kafka = kafka
        self._topics = Topics(kafka)
        self._stores = stores
        self._runner = runner
        self._push_queries_max = push_queries_max
        self._open: dict[str, RunningQuery] = {}
        self._lock = threading.Lock()
        self._thread = LoopThread("penstock-sql-push")

    def open(self, parsed: ParsedStatement, properties: Mapping[str, Any]) -> RunningQuery:
        try:
            return self._open_one(parsed, properties)
        except SqlError as error:
            parsed.places.tell(error)
            raise

    def _open_one(self, parsed: ParsedStatement, properties: Mapping[str, Any]) -> RunningQuery:
        match parsed.statement:
            case PrintTopic() as statement:
                return self._print(statement)
            case SelectStatement(query=query):
                push = query.emit is not None
                query_id = f"transient_{query.source.name}_{secrets.randbits(63)}"
                planned = plan_query(
                    query,
                    self._catalog(),
                    self._functions,
                    query_id=query_id,
                    text=f"{parsed.text};",
                    sink=None,
                    properties=dict(properties),
                )
                plan, warnings = planned.plan, tuple(planned.warnings)
                return self._push(plan, warnings) if push else self._pull(plan, warnings)
            case _:
                raise SemanticError("Only SELECT and PRINT give rows.", hint="Send other statements to /ksql.")

    def get(self, query_id: str) -> RunningQuery:
        query = self._open.get(query_id)
        if query is None:
            raise NotFoundError(f"No query with id {query_id} is open.")
        return query

    def close_one(self, query_id: str) -> bool:
        """Whether such a query was open; it is closed now. The case does not matter: TERMINATE takes ids unquoted."""
        found = [query for query in self.open_queries if query.query_id.upper() == query_id.upper()]
        for query in found:
            query.close()
        return bool(found)

    @property
    def open_queries(self) -> tuple[RunningQuery, ...]:
        with self._lock:
            return tuple(self._open.values())

    def push_plans(self) -> list[QueryPlan]:
        """Of the push queries that are open."""
        return [query.plan for query in self.open_queries if query.kind == "PUSH" and query.plan is not None]

    def close(self) -> None:
        for query in self.open_queries:
            query.close()
        with contextlib.suppress(ClientClosed):
            self._thread.run(end_followers())
        self._thread.close()
        self._topics.close()

    def _pull(self, plan: QueryPlan, warnings: tuple[str, ...]) -> RunningQuery:
        if not is_simple(plan.root):
            raise NotSupportedError(
                "A pull query reads one stream or table, without JOIN, GROUP BY, PARTITION BY, WINDOW or EXPLODE.",
                hint="Add EMIT CHANGES, or make a table with CREATE TABLE ... AS SELECT and pull from that.",
            )
        chain = Chain(plan, self._functions)
        if chain.source.kind == "TABLE":
            rows = pull_table(chain, self._table(chain.source), self._functions)
        else:
            rows = pull_stream(chain, self._kafka)
        running = self._running(plan, "PULL", IteratedRows(rows, plan.limit), warnings)
        return dataclasses.replace(running, key_columns=_key_columns(chain.source) & set(plan.columns))

    def _table(self, source: SourceNode) -> OpenTable:
        try:
            table = self._stores.open(self._source(source.name).node())
            table.wait_until_filled()
        except UnknownTopicOrPartition:
            raise no_topic(source.topic, remedy(source)) from None
        return table

    def _push(self, plan: QueryPlan, warnings: tuple[str, ...]) -> RunningQuery:
        queue = RowQueue(plan.limit)
        stop: Callable[[], None] = queue.end
        running = self._running(plan, "PUSH", queue, warnings, lambda: self._closed(plan.query_id, stop))
        self._opened(running)
        try:
            if is_simple(plan.root):
                PushReader(Chain(plan, self._functions), queue, self._kafka, plan.properties).start(
                    self._thread, _START_TIMEOUT_S
                )
            else:
                stop = self._runner.run_transient(with_starts(plan, self._topics), queue)
        except BaseException:
            running.close()
            raise
        return running

    def _opened(self, query: RunningQuery) -> None:
        """PRINT counts too: each keeps a thread of the server busy."""
        with self._lock:
            if len(self._open) >= self._push_queries_max:
                raise TooManyQueriesError(
                    f"{len(self._open)} push queries are open, and this server answers {self._push_queries_max}.",
                    hint="Close some, or raise ksql.max.push.queries.",
                )
            self._open[query.query_id] = query

    def _closed(self, query_id: str, stop: Callable[[], None]) -> None:
        with self._lock:
            self._open.pop(query_id, None)
        stop()

    def _print(self, statement: PrintTopic) -> RunningQuery:
        query_id = f"print_{statement.topic}_{secrets.randbits(63)}"
        queue = RowQueue()
        running = RunningQuery(
            query_id=query_id,
            kind="PRINT",
            columns=(("LINE", STRING),),
            rows=queue,
            on_close=lambda: self._closed(query_id, queue.end),
        )
        self._opened(running)
        try:
            TopicPrinter(statement, queue, self._kafka).start(self._thread, _START_TIMEOUT_S)
        except BaseException:
            running.close()
            raise
        return running

    def _running(
        self,
        plan: QueryPlan,
        kind: Literal["PUSH", "PULL"],
        rows: Rows,
        warnings: tuple[str, ...],
        on_close: Callable[[], None] = lambda: None,
    ) -> RunningQuery:
        columns = tuple(result_columns(plan).items())
        return RunningQuery(
            query_id=plan.query_id,
            kind=kind,
            columns=columns,
            rows=rows,
            warnings=warnings,
            plan=plan,
            on_close=on_close,
        )

    def _source(self, name: str) -> Source:
        return self._catalog().sources[name]


def _key_columns(source: SourceNode) -> frozenset[str]:
    """What is a key by its name in the rows of a table; with windows their bounds are part of it."""
    if source.kind != "TABLE":
        return frozenset()
    return frozenset(column.name for column in source.schema.key) | frozenset(WINDOW_COLUMNS)
