"""Offsets outside of Kafka: in SQLite within the user's own transaction, in a real ZooKeeper, in a store of his own."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from penstock import Consumer, Producer
from penstock.base.types import TopicPartition
from penstock.client.consumer.consumer import AsyncConsumer
from penstock.client.consumer.offset_stores import (
    DbApiOffsetStore,
    KafkaOffsetStore,
    ZooKeeperOffsetStore,
    copy_offsets,
    offsets_after,
)
from penstock.client.core.types import OffsetAndMetadata
from penstock.client.errors import ClientError, InvalidState
from tests.clients.support import TopicMaker
from tests.clients.zookeeper import ZooKeeper

COUNT = 20


@pytest.fixture
def filled(bootstrap: str, topic: TopicMaker) -> str:
    """A topic with `COUNT` records in two partitions."""
    name = topic(partitions=2)
    with Producer(bootstrap_servers=bootstrap) as producer:
        for number in range(COUNT):
            producer.send(name, str(number), partition=number % 2)
        producer.flush(20)
    return name


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeper]:
    server = ZooKeeper(tmp_path_factory.mktemp("zookeeper"))
    try:
        server.start()
        yield server
    finally:
        server.kill()


def consumer_of(bootstrap: str, group: str, store: Any, **options: Any) -> Consumer:
    return Consumer(
        bootstrap_servers=bootstrap,
        group_id=group,
        offset_store=store,
        auto_offset_reset="earliest",
        fetch_max_wait_ms=50,
        **{"enable_auto_commit": False, **options},
    )


def take(consumer: Consumer, count: int) -> list[Any]:
    """At least `count` records, by single polls of few."""
    records: list[Any] = []
    for _ in range(300):
        records += consumer.poll(timeout_ms=100, max_records=3)
        if len(records) >= count:
            return records
    raise AssertionError(f"{len(records)} of {count} records came")


def test_sqlite_in_the_users_own_transaction(bootstrap: str, filled: str, tmp_path: Path) -> None:
    """Results and offsets are written together, so a failure between them leaves neither and nothing is doubled."""
    path = str(tmp_path / "shop.db")
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE results (value INTEGER)")
    store = DbApiOffsetStore(lambda: sqlite3.connect(path))
    store.create_table()

    def consume(until: int, fail_at: int | None) -> None:
        with consumer_of(bootstrap, "sqlite", store) as consumer:
            consumer.subscribe([filled])
            while database.execute("SELECT count(*) FROM results").fetchone()[0] < until:
                records = consumer.poll(timeout_ms=100, max_records=3)
                database.executemany("INSERT INTO results VALUES (?)", [(int(each.value),) for each in records])
                if fail_at is not None and any(int(each.value) >= fail_at for each in records):
                    database.rollback()
                    return
                store.save("sqlite", offsets_after(records), connection=database)
                database.commit()

    consume(COUNT, fail_at=9)
    written = database.execute("SELECT count(*) FROM results").fetchone()[0]
    assert written < COUNT
    consume(COUNT, fail_at=None)
    rows = [row[0] for row in database.execute("SELECT value FROM results ORDER BY value")]
    assert rows == list(range(COUNT))
    database.close()


def test_commits_of_the_consumer_go_to_the_store(bootstrap: str, filled: str, tmp_path: Path) -> None:
    path = str(tmp_path / "offsets.db")
    store = DbApiOffsetStore(lambda: sqlite3.connect(path))
    partitions = [TopicPartition(filled, number) for number in range(2)]
    with consumer_of(bootstrap, "commits", store) as consumer:
        consumer.subscribe([filled])
        first = take(consumer, 7)
        consumer.commit()
        committed = {tp: each.offset for tp, each in consumer.committed(partitions).items() if each is not None}
    assert sum(committed.values()) == len(first)
    assert {tp: each.offset for tp, each in store.load("commits", partitions).items()} == committed
    with consumer_of(bootstrap, "commits", store, enable_auto_commit=True) as consumer:
        consumer.assign(partitions)
        rest = take(consumer, COUNT - len(first))
    assert sorted(int(each.value) for each in [*first, *rest]) == list(range(COUNT))
    assert sum(each.offset for each in store.load("commits", partitions).values()) == COUNT, "closing commits"
    with KafkaOffsetStore(bootstrap_servers=bootstrap) as kafka:
        assert kafka.load("commits", partitions) == {}, "Kafka was not asked"


def test_connection_of_the_calling_thread(bootstrap: str, filled: str) -> None:
    """An open SQLite connection may be used in its own thread only, and that is where the store is called."""
    database = sqlite3.connect(":memory:")
    store = DbApiOffsetStore(database)
    with consumer_of(bootstrap, "thread", store) as consumer:
        consumer.subscribe([filled])
        records = take(consumer, COUNT)
        consumer.commit()
    assert sum(each.offset for each in store.load("thread", offsets_after(records)).values()) == COUNT
    database.close()


def test_zookeeper(bootstrap: str, filled: str, zookeeper: ZooKeeper, cluster_kind: str) -> None:
    group = f"zk-{cluster_kind}"
    partitions = [TopicPartition(filled, number) for number in range(2)]
    with ZooKeeperOffsetStore(zookeeper.hosts) as store:
        with consumer_of(bootstrap, group, store) as consumer:
            consumer.subscribe([filled])
            first = take(consumer, 8)
            consumer.commit()
        with consumer_of(bootstrap, group, store) as consumer:
            consumer.subscribe([filled])
            rest = take(consumer, COUNT - len(first))
        assert sorted(int(each.value) for each in [*first, *rest]) == list(range(COUNT))
        data, _ = store._client.get(f"/consumers/{group}/offsets/{filled}/0")
        assert int(data) == store.load(group, partitions)[partitions[0]].offset
        # Moving the group into Kafka, where it goes on.
        with KafkaOffsetStore(bootstrap_servers=bootstrap) as kafka:
            copied = copy_offsets(store, kafka, group, partitions)
            assert {tp: each.offset for tp, each in kafka.load(group, partitions).items()} == {
                tp: each.offset for tp, each in copied.items()
            }
        store._client.set(f"/consumers/{group}/offsets/{filled}/1", b"many")
        with pytest.raises(ClientError, match="no offset"):
            store.load(group, partitions)


def test_zookeeper_that_is_not_there() -> None:
    store = ZooKeeperOffsetStore("127.0.0.1:1", timeout_s=0.5)
    with pytest.raises(ClientError, match=r"127\.0\.0\.1:1"):
        store.load("g", [TopicPartition("t", 0)])


class OwnStore:
    """What a user may write: plain or coroutine functions on a dict."""

    def __init__(self) -> None:
        self.kept: dict[TopicPartition, OffsetAndMetadata] = {}
        self.fails = False

    async def load(self, group: str, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, Any]:
        return {each: self.kept[each] for each in partitions if each in self.kept}

    def save(self, group: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        if self.fails:
            raise OSError("the disk is full")
        self.kept.update(offsets)


def test_users_own_store_on_asyncio(bootstrap: str, filled: str) -> None:
    store = OwnStore()
    store.kept[TopicPartition(filled, 0)] = OffsetAndMetadata(5)

    async def test() -> None:
        options: dict[str, Any] = {"auto_offset_reset": "earliest", "enable_auto_commit": False}
        async with AsyncConsumer(
            bootstrap_servers=bootstrap, group_id="own", offset_store=store, **options
        ) as consumer:
            consumer.subscribe([filled])
            records: list[Any] = []
            while len(records) < COUNT - 5:
                records += await consumer.poll(timeout_ms=1_000)
            assert len(records) == COUNT - 5
            store.fails = True
            with pytest.raises(OSError, match="disk is full"):
                await consumer.commit()
            store.fails = False
            await consumer.commit()

    asyncio.run(asyncio.wait_for(test(), 30))
    assert {tp.partition: each.offset for tp, each in store.kept.items()} == {0: COUNT // 2, 1: COUNT // 2}


def test_a_store_that_fails_at_the_end_does_not_keep_the_member(bootstrap: str, filled: str) -> None:
    store = OwnStore()
    group = f"{filled}-broken"
    first = consumer_of(bootstrap, group, store, enable_auto_commit=True, session_timeout_ms=30_000)
    first.subscribe(filled)
    take(first, COUNT)
    store.fails = True
    with pytest.raises(OSError, match="disk is full"):
        first.close()
    with consumer_of(bootstrap, group, OwnStore()) as second:
        second.subscribe(filled)
        assert second.poll(timeout_ms=10_000), "the partitions are free at once"


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            None,
            "gave None: it is to give a dict of partition to OffsetAndMetadata, an empty one when it has no offsets",
        ),
        ({TopicPartition("t", 0): "5"}, "gave '5' as an offset: give OffsetAndMetadata, or a number"),
    ],
)
async def test_a_store_that_answers_in_another_form(answer: Any, message: str) -> None:
    class Odd(OwnStore):
        async def load(self, group: str, partitions: Iterable[TopicPartition]) -> Any:
            return answer

    async with AsyncConsumer(bootstrap_servers="127.0.0.1:1", group_id="g", offset_store=Odd()) as consumer:
        with pytest.raises(InvalidState, match=message):
            await consumer.committed([TopicPartition("t", 0)])


def test_kafka_store_as_marker_and_with_members(bootstrap: str, filled: str, topic: TopicMaker) -> None:
    group = topic.name()
    with consumer_of(bootstrap, group, KafkaOffsetStore()) as consumer:
        consumer.subscribe([filled])
        take(consumer, COUNT)
        consumer.commit()
        with KafkaOffsetStore(bootstrap_servers=bootstrap) as kafka:
            found = kafka.load(group, [TopicPartition(filled, number) for number in range(3)])
            assert sum(each.offset for each in found.values()) == COUNT
            with pytest.raises(InvalidState, match="has members"):
                kafka.save(group, found)
    with pytest.raises(InvalidState, match="bootstrap_servers"):
        KafkaOffsetStore().load("g", [TopicPartition(filled, 0)])
