"""Transactions by every client that has them, one call for several transactions of one transactional id."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

import aiokafka
import confluent_kafka
import kafka
from kafka.structs import OffsetAndMetadata

from tests.compat.clients.base import JsonClient
from tests.compat.clients.registry import CLIENTS
from tests.compat.committing import Commit
from tests.support.java import shared_peer

TIMEOUT_S = 30.0
COMMIT, ABORT = "commit", "abort"


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """Values for a partition, commits of a group on the same topic, and how it ends."""

    values: Sequence[str]
    end: str = COMMIT
    partition: int = 0
    group: str = ""
    offsets: dict[int, Commit] = field(default_factory=dict)


class Transactor(Protocol):
    # Whether it can commit offsets without being a member of their group.
    commits_offsets: bool

    def run(self, bootstrap: str, topic: str, transactional_id: str, transactions: Sequence[Transaction]) -> None:
        """The transactions one after the other; a refusal raises."""


class ByProgram:
    """A client in another language."""

    def __init__(self, client: JsonClient, *, commits_offsets: bool) -> None:
        self._client = client
        self.commits_offsets = commits_offsets

    def run(self, bootstrap: str, topic: str, transactional_id: str, transactions: Sequence[Transaction]) -> None:
        wanted = [asdict(one) for one in transactions]
        self._client.call(
            op="transact", bootstrap=bootstrap, topic=topic, transactional_id=transactional_id, transactions=wanted
        )


class ByJava:
    commits_offsets = True

    def run(self, bootstrap: str, topic: str, transactional_id: str, transactions: Sequence[Transaction]) -> None:
        peer = shared_peer()
        peer.call(op="transactions_open", bootstrap=bootstrap, name=topic, transactional_id=transactional_id)
        try:
            for one in transactions:
                wanted = {name: value for name, value in asdict(one).items() if value or name == "values"}
                peer.call(op="transactions_run", name=topic, topic=topic, **wanted)
        finally:
            peer.call(op="transactions_close", name=topic)


class ByConfluent:
    commits_offsets = True

    def run(self, bootstrap: str, topic: str, transactional_id: str, transactions: Sequence[Transaction]) -> None:
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": bootstrap, "transactional.id": transactional_id, "transaction.timeout.ms": 20_000}
        )
        producer.init_transactions(TIMEOUT_S)
        for one in transactions:
            self.one(producer, bootstrap, topic, one)

    def one(self, producer: confluent_kafka.Producer, bootstrap: str, topic: str, wanted: Transaction) -> None:
        producer.begin_transaction()
        for value in wanted.values:
            producer.produce(topic, value.encode(), partition=wanted.partition)
        producer.flush(TIMEOUT_S)
        if wanted.offsets:
            consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": wanted.group})
            places = [
                confluent_kafka.TopicPartition(topic, partition, commit.offset, commit.metadata)
                for partition, commit in wanted.offsets.items()
            ]
            producer.send_offsets_to_transaction(places, consumer.consumer_group_metadata(), TIMEOUT_S)
            consumer.close()
        if wanted.end == COMMIT:
            producer.commit_transaction(TIMEOUT_S)
        else:
            producer.abort_transaction(TIMEOUT_S)


class ByAioKafka:
    commits_offsets = True

    def run(self, bootstrap: str, topic: str, transactional_id: str, transactions: Sequence[Transaction]) -> None:
        async def run() -> None:
            async with aiokafka.AIOKafkaProducer(
                bootstrap_servers=bootstrap, transactional_id=transactional_id, transaction_timeout_ms=20_000
            ) as producer:
                for one in transactions:
                    await self._one(producer, topic, one)

        asyncio.run(asyncio.wait_for(run(), TIMEOUT_S))

    async def _one(self, producer: Any, topic: str, wanted: Transaction) -> None:
        await producer.begin_transaction()
        for value in wanted.values:
            await producer.send_and_wait(topic, value.encode(), partition=wanted.partition)
        if wanted.offsets:
            places = {aiokafka.TopicPartition(topic, one): tuple(commit) for one, commit in wanted.offsets.items()}
            await producer.send_offsets_to_transaction(places, wanted.group)
        await (producer.commit_transaction() if wanted.end == COMMIT else producer.abort_transaction())


class ByKafkaPython:
    commits_offsets = True

    def run(self, bootstrap: str, topic: str, transactional_id: str, transactions: Sequence[Transaction]) -> None:
        producer = kafka.KafkaProducer(
            bootstrap_servers=bootstrap, transactional_id=transactional_id, transaction_timeout_ms=20_000
        )
        try:
            producer.init_transactions()
            for one in transactions:
                self._one(producer, topic, one)
        finally:
            producer.close(timeout=5)

    def _one(self, producer: Any, topic: str, wanted: Transaction) -> None:
        producer.begin_transaction()
        sent = [producer.send(topic, value.encode(), partition=wanted.partition) for value in wanted.values]
        producer.flush(TIMEOUT_S)
        for future in sent:
            future.get(TIMEOUT_S)
        if wanted.offsets:
            places = {
                kafka.TopicPartition(topic, one): OffsetAndMetadata(commit.offset, commit.metadata, -1)
                for one, commit in wanted.offsets.items()
            }
            producer.send_offsets_to_transaction(places, wanted.group)
        if wanted.end == COMMIT:
            producer.commit_transaction()
        else:
            producer.abort_transaction()


def _program(name: str, *, commits_offsets: bool) -> ByProgram:
    client = CLIENTS[name]
    assert isinstance(client, JsonClient)
    return ByProgram(client, commits_offsets=commits_offsets)


TRANSACTORS: dict[str, Transactor] = {
    "confluent-kafka": ByConfluent(),
    "aiokafka": ByAioKafka(),
    "kafka-python": ByKafkaPython(),
    "java": ByJava(),
    # franz-go commits offsets only as the member which read the records.
    "franz-go": _program("franz-go", commits_offsets=False),
    "sarama": _program("sarama", commits_offsets=True),
    "kafkajs": _program("kafkajs", commits_offsets=True),
}
