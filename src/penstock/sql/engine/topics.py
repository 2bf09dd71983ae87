"""The cluster's topics, as statements need them: facts before a decision, creation and deletion after it."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from penstock import (
    Admin,
    AdminErrors,
    IsolationLevel,
    KafkaError,
    NewTopic,
    OffsetSpec,
    TopicAlreadyExists,
    TopicPartition,
    UnknownTopicOrPartition,
)
from penstock.client.admin.topic_descriptions import TopicDescription
from penstock.sql.engine.new_topics import NewTopicRequest, TopicFacts
from penstock.sql.errors import EngineError
from penstock.sql.kafka import KafkaAccess


class Topics:
    """Made on first use, so that an engine can be built while the cluster is still away."""

    def __init__(self, kafka: KafkaAccess) -> None:
        self._kafka = kafka
        self._client: Admin | None = None
        self._lock = threading.Lock()

    @property
    def admin(self) -> Admin:
        with self._lock:
            if self._client is None:
                self._client = Admin(self._kafka.admin_config("admin"))
            return self._client

    def close(self) -> None:
        if self._client is not None:
            self._client.close()

    def facts(self, names: Iterable[str], timeout_ms: float | None = None) -> dict[str, TopicFacts]:
        """Of those topics that exist."""
        described = self.describe(names, timeout_ms)
        return {
            name: TopicFacts(partitions=len(topic.partitions), replicas=topic.replication_factor)
            for name, topic in described.items()
        }

    def describe(self, names: Iterable[str], timeout_ms: float | None = None) -> dict[str, TopicDescription]:
        wanted = sorted(set(names))
        if not wanted:
            return {}
        try:
            found = self.admin.describe_topics(wanted, timeout_ms=timeout_ms)
        except AdminErrors as errors:
            _raise_unless_missing(errors.failures.values())
            found = errors.successes
        except KafkaError as error:
            _raise_unless_missing([error])
            found = {}
        return {str(name): topic for name, topic in found.items()}

    def ends(self, names: Iterable[str]) -> dict[str, dict[int, int]]:
        """Behind the last committed record of each partition, of those topics that exist."""
        described = self.describe(names)
        if not described:
            return {}
        partitions = [
            TopicPartition(name, each.partition) for name, topic in described.items() for each in topic.partitions
        ]
        try:
            listed = self.admin.list_offsets(
                dict.fromkeys(partitions, OffsetSpec.LATEST), isolation_level=IsolationLevel.READ_COMMITTED
            )
        except KafkaError as error:
            raise EngineError(f"The ends of {', '.join(sorted(described))} could not be asked for: {error}") from None
        ends: dict[str, dict[int, int]] = {}
        for partition, end in listed.items():
            ends.setdefault(partition.topic, {})[partition.partition] = end.offset
        return ends

    def names(self) -> list[str]:
        return sorted(self.admin.list_topics(include_internal=True))

    def create(self, request: NewTopicRequest) -> None:
        """One that somebody else made meanwhile will do."""
        topic = NewTopic(
            name=request.name,
            num_partitions=request.partitions,
            replication_factor=request.replicas,
            configs=dict(request.configs),
        )
        try:
            self.admin.create_topics([topic])
        except TopicAlreadyExists:
            pass
        except KafkaError as error:
            raise EngineError(f"The topic '{request.name}' could not be created: {error}") from None

    def delete(self, name: str) -> None:
        try:
            self.admin.delete_topics([name])
        except UnknownTopicOrPartition:
            pass
        except KafkaError as error:
            raise EngineError(
                f"Could not delete the corresponding kafka topic: {name}. {error}",
                hint="The source is dropped. Delete the topic with penstock topic delete.",
            ) from None


def _raise_unless_missing(errors: Iterable[KafkaError]) -> None:
    for error in errors:
        if not isinstance(error, UnknownTopicOrPartition):
            raise EngineError(f"Failed to describe topics: {error}") from None
