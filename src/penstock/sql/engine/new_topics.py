"""Topics that statements ask for: whether they must be made, and how.

Streams keep their records for a time; tables keep the last value of each key, windowed tables for a time too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.sql.catalog.catalog import Source
from penstock.sql.catalog.properties import SourceProperties
from penstock.sql.errors import SemanticError
from penstock.sql.plan.nodes import AggregateNode, QueryPlan
from penstock.sql.plan.walk import nodes, source_nodes


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicFacts:
    partitions: int
    replicas: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopicRequest:
    """`replicas` None: as the cluster does by default."""

    name: str
    partitions: int
    replicas: int | None
    configs: Mapping[str, str] = field(default_factory=dict)


def topic_for_source(
    source: Source, properties: SourceProperties, topics: Mapping[str, TopicFacts]
) -> NewTopicRequest | None:
    """The topic of CREATE STREAM or TABLE, if there is none yet: only with PARTITIONS is it made."""
    compacted = source.kind == "TABLE"
    _check_retention(properties, compacted=compacted and source.windowed is None)
    if source.topic in topics:
        _check_existing(source.topic, properties, topics[source.topic])
        return None
    if properties.partitions is None:
        raise SemanticError(
            f"Topic '{source.topic}' does not exist. If you want to create a new topic for the stream/table please "
            "re-run the statement providing the required 'PARTITIONS' configuration in the WITH clause (and optionally "
            f"'REPLICAS'). For example: CREATE {source.kind} {source.name} (...) WITH (KAFKA_TOPIC='{source.topic}', "
            f"PARTITIONS=2, VALUE_FORMAT='{source.value_format.name}');"
        )
    return NewTopicRequest(
        name=source.topic,
        partitions=properties.partitions,
        replicas=properties.replicas,
        configs=_configs("compact" if compacted else "delete", properties.retention_ms),
    )


def topic_for_query(
    plan: QueryPlan, properties: SourceProperties, topics: Mapping[str, TopicFacts]
) -> NewTopicRequest | None:
    """The topic of CREATE ... AS SELECT, if there is none yet: with as many partitions as the left-most source."""
    assert plan.sink is not None, "a persistent query has a sink"
    policy = _policy(plan)
    _check_retention(properties, compacted=policy == "compact")
    origin = source_nodes(plan.root)[0].topic
    if origin not in topics:
        raise SemanticError(
            f"Topic '{origin}' does not exist, from which the query reads.",
            hint="Create the topic, or drop its source.",
        )
    if plan.sink.topic in topics:
        _check_existing(plan.sink.topic, properties, topics[plan.sink.topic])
        return None
    return NewTopicRequest(
        name=plan.sink.topic,
        partitions=properties.partitions or topics[origin].partitions,
        replicas=properties.replicas or topics[origin].replicas,
        configs=_configs(policy, _retention_ms(plan, properties)),
    )


def _policy(plan: QueryPlan) -> str:
    if plan.kind == "STREAM":
        return "delete"
    return "compact,delete" if plan.windowed else "compact"


def _retention_ms(plan: QueryPlan, properties: SourceProperties) -> int | None:
    """The longer of RETENTION_MS and the window's RETENTION."""
    windows = [node.window for node in nodes(plan.root) if isinstance(node, AggregateNode) and node.window]
    wanted = [properties.retention_ms, *(window.retention_ms for window in windows)]
    return max((each for each in wanted if each is not None), default=None)


def _configs(policy: str, retention_ms: int | None) -> dict[str, str]:
    retention = {} if retention_ms is None or policy == "compact" else {"retention.ms": str(retention_ms)}
    return {"cleanup.policy": policy, **retention}


def _check_retention(properties: SourceProperties, *, compacted: bool) -> None:
    if compacted and properties.retention_ms is not None:
        raise SemanticError(
            "Invalid config variable in the WITH clause: RETENTION_MS. Non-windowed tables do not support retention."
        )


def _check_existing(name: str, properties: SourceProperties, facts: TopicFacts) -> None:
    asked, has = [], []
    if properties.partitions not in (None, facts.partitions):
        asked.append(f"{properties.partitions} partitions")
        has.append(f"{facts.partitions}")
    if properties.replicas not in (None, facts.replicas):
        asked.append(f"{properties.replicas} replication factor")
        has.append(f"{facts.replicas}")
    if asked:
        wanted = " and ".join(f"{one} (topic has {other})" for one, other in zip(asked, has, strict=True))
        raise SemanticError(
            f"A Kafka topic with the name '{name}' already exists, with different partition/replica configuration than "
            f"required. KSQL expects {wanted}.",
            hint="Leave out PARTITIONS and REPLICAS to use the topic as it is.",
        )
