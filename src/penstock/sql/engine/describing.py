"""DESCRIBE and EXPLAIN: what is known of a source or a query."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock import KafkaError, OffsetSpec, TopicPartition
from penstock.sql.catalog.catalog import Catalog, PersistentQuery, Source
from penstock.sql.engine.entities import Entity, fields_of, known_state, running_query
from penstock.sql.engine.ports import QueryRunner, QueryStatus
from penstock.sql.engine.topics import Topics
from penstock.sql.errors import SqlError
from penstock.sql.kafka import query_group
from penstock.sql.plan.explain import explain
from penstock.sql.plan.nodes import QueryPlan
from penstock.sql.plan.walk import source_names


class Descriptions:
    def __init__(self, runner: QueryRunner, topics: Topics, service_id: str) -> None:
        self._runner = runner
        self._topics = topics
        self._service_id = service_id

    def running(self, query: PersistentQuery) -> Entity:
        return running_query(query, self._runner.status(query.query_id))

    def source(self, source: Source, catalog: Catalog, *, extended: bool) -> Entity:
        readers, writers = catalog.readers(source.name), catalog.writers(source.name)
        described = {
            "name": source.name,
            "windowType": source.windowed.type if source.windowed else None,
            "readQueries": [self.running(query) for query in readers],
            "writeQueries": [self.running(query) for query in writers],
            "fields": fields_of(source.schema),
            "type": source.kind,
            "timestamp": source.timestamp.column if source.timestamp else "",
            "statistics": "",
            "errorStats": "",
            "extended": extended,
            "keyFormat": source.key_format.name,
            "valueFormat": source.value_format.name,
            "topic": source.topic,
            "partitions": 0,
            "replication": 0,
            "statement": source.statement,
            "queryOffsetSummaries": [],
            "sourceConstraints": [],
            "clusterStatistics": [],
            "clusterErrorStats": [],
        }
        return described | self._more(source, readers, writers) if extended else described

    def query(self, plan: QueryPlan, query: PersistentQuery | None, overridden: Mapping[str, Any]) -> Entity:
        """`query` None: the plan of a statement that does not run."""
        status = self._runner.status(plan.query_id) if query is not None else None
        state = running_query(query, status)["state"] if query is not None else "UNKNOWN"
        return {
            "id": plan.query_id,
            "statementText": plan.text,
            "windowType": plan.windowed.type if plan.windowed else None,
            "fields": fields_of(plan.schema),
            "sources": list(source_names(plan.root)),
            "sinks": [plan.sink.name] if plan.sink else [],
            "topology": self._physical(plan),
            "executionPlan": explain(plan),
            "overriddenProperties": dict(overridden),
            "ksqlHostQueryStatus": {self._service_id: known_state(state)} if query is not None else {},
            "queryType": "PERSISTENT" if plan.sink else "PUSH",
            "queryErrors": _errors(status),
            "tasksMetadata": [],
            "consumerGroupId": query_group(self._service_id, plan.query_id) if query is not None else "",
            "state": state,
        }

    def _physical(self, plan: QueryPlan) -> str:
        try:
            return self._runner.physical_plan(plan)
        except SqlError as error:
            return str(error)

    def _more(
        self, source: Source, readers: tuple[PersistentQuery, ...], writers: tuple[PersistentQuery, ...]
    ) -> Entity:
        facts = self._topics.facts([source.topic]).get(source.topic)
        return {
            "partitions": facts.partitions if facts else 0,
            "replication": facts.replicas if facts else 0,
            "statistics": _lines(self._statistics(query) for query in (*writers, *readers)),
            "errorStats": _lines(self._last_error(query) for query in (*writers, *readers)),
            "queryOffsetSummaries": [self._offsets(query, source) for query in readers],
        }

    def _statistics(self, query: PersistentQuery) -> str:
        status = self._runner.status(query.query_id)
        if status is None:
            return ""
        lag = "unknown" if status.lag is None else str(status.lag)
        return (
            f"{query.query_id}: messages-per-sec: {status.input_rate:.2f}  total-messages: {status.output_rows}  "
            f"lag: {lag}  restarts: {status.restarts}"
        )

    def _last_error(self, query: PersistentQuery) -> str:
        status = self._runner.status(query.query_id)
        return f"{query.query_id}: {status.last_error}" if status is not None and status.last_error else ""

    def _offsets(self, query: PersistentQuery, source: Source) -> Entity:
        group = query_group(self._service_id, query.query_id)
        return {"groupId": group, "topicSummaries": [{"kafkaTopic": source.topic, "offsets": self._lag(group, source)}]}

    def _lag(self, group: str, source: Source) -> list[Entity]:
        """Best effort: a group that never committed, or a cluster that does not answer, has no offsets to show."""
        try:
            committed = self._topics.admin.list_group_offsets([group])[group]
            ends = self._topics.admin.list_offsets(dict.fromkeys(_partitions(self._topics, source), OffsetSpec.LATEST))
        except (KafkaError, KeyError):
            return []
        return [
            {
                "partition": partition.partition,
                "logStartOffset": 0,
                "logEndOffset": ends[partition].offset,
                "consumerOffset": found.offset if (found := committed.get(partition)) else 0,
            }
            for partition in sorted(ends)
        ]


def _partitions(topics: Topics, source: Source) -> list[TopicPartition]:
    facts = topics.facts([source.topic])
    return [TopicPartition(source.topic, number) for number in range(facts[source.topic].partitions)]


def _lines(texts: Any) -> str:
    return "\n".join(text for text in texts if text)


def _errors(status: QueryStatus | None) -> list[Entity]:
    if status is None or status.last_error is None:
        return []
    return [{"timestamp": status.last_error_time_ms, "errorMessage": status.last_error, "type": "UNKNOWN"}]
