"""Offsets committed and read back by every client that lets its user do so, without being a member of the group."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import aiokafka
import confluent_kafka
import kafka
from kafka.structs import OffsetAndMetadata

from tests.compat.clients.base import JsonClient
from tests.compat.clients.registry import CLIENTS

TIMEOUT_S = 40.0


class Commit(NamedTuple):
    offset: int
    metadata: str = ""


def as_committed_by(client: str, commit: Commit) -> Commit:
    """A commit as a client sends it."""
    match client:
        case "kafkajs":
            return Commit(commit.offset)
        case "confluent-kafka":
            # It sends the end mark of its C string along.
            return Commit(commit.offset, commit.metadata + "\0")
        case _:
            return commit


class Committer(Protocol):
    def commit(self, bootstrap: str, group: str, topic: str, commits: Mapping[int, Commit]) -> None:
        """Commits by partition."""

    def committed(self, bootstrap: str, group: str, topic: str, partition: int) -> Commit | None:
        """The last commit, None when there is none."""


class ByProgram:
    """A client in another language."""

    def __init__(self, client: JsonClient) -> None:
        self._client = client

    def commit(self, bootstrap: str, group: str, topic: str, commits: Mapping[int, Commit]) -> None:
        offsets = {str(partition): list(one) for partition, one in commits.items()}
        self._client.call(op="commit", bootstrap=bootstrap, group=group, topic=topic, offsets=offsets)

    def committed(self, bootstrap: str, group: str, topic: str, partition: int) -> Commit | None:
        found = self._client.call(op="committed", bootstrap=bootstrap, group=group, topic=topic, partition=partition)
        return Commit(found["offset"], found["metadata"] or "") if found else None


class ByConfluent:
    def _consumer(self, bootstrap: str, group: str) -> confluent_kafka.Consumer:
        return confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": group})

    def commit(self, bootstrap: str, group: str, topic: str, commits: Mapping[int, Commit]) -> None:
        consumer = self._consumer(bootstrap, group)
        offsets = [
            confluent_kafka.TopicPartition(topic, partition, one.offset, one.metadata)
            for partition, one in commits.items()
        ]
        done = consumer.commit(offsets=offsets, asynchronous=False)
        consumer.close()
        assert all(one.error is None for one in done or ()), done

    def committed(self, bootstrap: str, group: str, topic: str, partition: int) -> Commit | None:
        consumer = self._consumer(bootstrap, group)
        (found,) = consumer.committed([confluent_kafka.TopicPartition(topic, partition)], timeout=TIMEOUT_S)
        consumer.close()
        assert found.error is None, found.error
        return Commit(found.offset, found.metadata or "") if found.offset >= 0 else None


class ByAioKafka:
    def commit(self, bootstrap: str, group: str, topic: str, commits: Mapping[int, Commit]) -> None:
        places = {aiokafka.TopicPartition(topic, partition): tuple(one) for partition, one in commits.items()}

        async def run(consumer: Any) -> None:
            await consumer.commit(places)

        self._run(bootstrap, group, list(places), run)

    def committed(self, bootstrap: str, group: str, topic: str, partition: int) -> Commit | None:
        place = aiokafka.TopicPartition(topic, partition)

        async def run(consumer: Any) -> Commit | None:
            # Its public call gives the offset alone.
            found = await consumer._coordinator.fetch_committed_offsets([place])
            return Commit(found[place].offset, found[place].metadata) if place in found else None

        return self._run(bootstrap, group, [place], run)

    def _run(self, bootstrap: str, group: str, places: list[Any], use: Any) -> Any:
        async def run() -> Any:
            consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=bootstrap, group_id=group, enable_auto_commit=False)
            await consumer.start()
            try:
                consumer.assign(places)
                return await use(consumer)
            finally:
                await consumer.stop()

        return asyncio.run(asyncio.wait_for(run(), TIMEOUT_S))


class ByKafkaPython:
    def _consumer(self, bootstrap: str, group: str) -> Any:
        return kafka.KafkaConsumer(bootstrap_servers=bootstrap, group_id=group, enable_auto_commit=False)

    def commit(self, bootstrap: str, group: str, topic: str, commits: Mapping[int, Commit]) -> None:
        consumer = self._consumer(bootstrap, group)
        offsets = {
            kafka.TopicPartition(topic, partition): OffsetAndMetadata(one.offset, one.metadata, -1)
            for partition, one in commits.items()
        }
        consumer.assign(list(offsets))
        consumer.commit(offsets)
        consumer.close()

    def committed(self, bootstrap: str, group: str, topic: str, partition: int) -> Commit | None:
        consumer = self._consumer(bootstrap, group)
        found = consumer.committed(kafka.TopicPartition(topic, partition), metadata=True)
        consumer.close()
        return Commit(found.offset, found.metadata) if found else None


COMMITTERS: dict[str, Committer] = {
    "confluent-kafka": ByConfluent(),
    "aiokafka": ByAioKafka(),
    "kafka-python": ByKafkaPython(),
    **{
        name: ByProgram(client)
        for name in ("java", "franz-go", "sarama", "kafkajs")
        if isinstance(client := CLIENTS[name], JsonClient)
    },
}
