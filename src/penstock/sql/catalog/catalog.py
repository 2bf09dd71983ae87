"""What the statements so far have made: sources, types and persistent queries.

A catalog is a value. Every change gives a new one, so that a statement is tried on a copy that may be thrown away, and
all servers that replay the same commands hold the same catalog.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, TypeVar

import msgspec

from penstock.sql.plan.nodes import QueryPlan, SourceNode
from penstock.sql.plan.walk import source_names
from penstock.sql.schema import Format, Kind, Schema, TimestampColumn, WindowedKey
from penstock.sql.types import SqlType

Value = TypeVar("Value")

QueryState = Literal["RUNNING", "PAUSED"]


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A stream or table over a topic. `query_id` is the query that makes it (CREATE ... AS SELECT), if one does."""

    name: str
    kind: Kind
    topic: str
    schema: Schema
    key_format: Format
    value_format: Format
    windowed: WindowedKey | None = None
    timestamp: TimestampColumn | None = None
    read_only: bool = False
    statement: str = ""
    query_id: str | None = None

    def node(self, prefix: str = "") -> SourceNode:
        """The plan node that reads this source."""
        return SourceNode(
            name=self.name,
            kind=self.kind,
            topic=self.topic,
            schema=self.schema,
            key_format=self.key_format,
            value_format=self.value_format,
            prefix=prefix,
            timestamp=self.timestamp,
            windowed=self.windowed,
        )


class PersistentQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A query that runs until it is terminated. `state` is what was asked of it, not how it fares."""

    plan: QueryPlan
    state: QueryState = "RUNNING"

    @property
    def query_id(self) -> str:
        return self.plan.query_id

    @property
    def sink_name(self) -> str:
        """A persistent query always has a sink."""
        return self.plan.sink.name if self.plan.sink else ""

    @property
    def source_names(self) -> tuple[str, ...]:
        return source_names(self.plan.root)


class Catalog(msgspec.Struct, frozen=True, kw_only=True):
    """Treat the mappings as read-only; the `with_` and `without_` methods copy."""

    sources: Mapping[str, Source] = {}
    types: Mapping[str, SqlType] = {}
    queries: Mapping[str, PersistentQuery] = {}

    def with_source(self, source: Source) -> Catalog:
        return msgspec.structs.replace(self, sources={**self.sources, source.name: source})

    def without_source(self, name: str) -> Catalog:
        return msgspec.structs.replace(self, sources=_without(self.sources, name))

    def with_type(self, name: str, sql_type: SqlType) -> Catalog:
        return msgspec.structs.replace(self, types={**self.types, name: sql_type})

    def without_type(self, name: str) -> Catalog:
        return msgspec.structs.replace(self, types=_without(self.types, name))

    def with_query(self, query: PersistentQuery) -> Catalog:
        return msgspec.structs.replace(self, queries={**self.queries, query.query_id: query})

    def without_query(self, query_id: str) -> Catalog:
        return msgspec.structs.replace(self, queries=_without(self.queries, query_id))

    def with_state(self, query_ids: Iterable[str], state: QueryState) -> Catalog:
        changed = {query_id: msgspec.structs.replace(self.queries[query_id], state=state) for query_id in query_ids}
        return msgspec.structs.replace(self, queries={**self.queries, **changed})

    def readers(self, name: str) -> tuple[PersistentQuery, ...]:
        """The queries that read a source."""
        return tuple(query for query in self.queries.values() if name in query.source_names)

    def writers(self, name: str) -> tuple[PersistentQuery, ...]:
        """The queries that write into a source."""
        return tuple(query for query in self.queries.values() if query.sink_name == name)

    def of_kind(self, kind: Kind) -> tuple[Source, ...]:
        """All streams or all tables, by name."""
        return tuple(self.sources[name] for name in sorted(self.sources) if self.sources[name].kind == kind)


def _without(mapping: Mapping[str, Value], key: str) -> dict[str, Value]:
    return {name: value for name, value in mapping.items() if name != key}
