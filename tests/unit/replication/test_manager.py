"""The replica manager on real logs and a clock that tests move: lookups, appends, fetches, waiting, deletion."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.metrics import Metrics
from penstock.base.types import TopicPartition
from penstock.metadata.deltas import (
    BrokerRegistered,
    Delta,
    PartitionChanged,
    PartitionsAdded,
    TopicConfigChanged,
    TopicCreated,
    TopicDeleted,
)
from penstock.metadata.image import BrokerRegistration, ClusterImage, PartitionState, TopicState
from penstock.records.validation import ProduceRules
from penstock.replication.fetching import FetchIsolation, FetchPartition, FetchResult, release_results
from penstock.replication.manager import ReplicaManager
from penstock.replication.partition import ALL_ACKS, IsrProposal, Partition
from penstock.replication.settings import TopicSettings
from penstock.storage.config import LogConfig
from penstock.storage.log import Log
from tests.unit.replication.fakes import TOPIC_ID, VirtualWorld, batch, open_log, wanted

SINGLE = PartitionState(replicas=(0,), isr=(0,), leader=0)
PAIR = PartitionState(replicas=(0, 1), isr=(0, 1), leader=0)
SIZE = len(batch(b"x"))


class FolderOfLogs:
    """The log manager, as far as the replica manager knows it."""

    def __init__(self, directory: Path, world: VirtualWorld) -> None:
        self.directory = directory
        self.world = world
        self.logs: dict[TopicPartition, Log] = {}
        self.deleted: list[TopicPartition] = []
        self.fails = False

    def get(self, topic_partition: TopicPartition) -> Log | None:
        return self.logs.get(topic_partition)

    async def create(self, topic_partition: TopicPartition, topic_id: UUID, *, is_new: bool = True) -> Log:
        await asyncio.sleep(0)
        if self.fails:
            raise OSError(28, "No space left on device")
        topic, index = topic_partition
        self.logs[topic_partition] = open_log(self.directory / topic_id.hex, self.world, topic=topic, index=index)
        return self.logs[topic_partition]

    async def delete(self, topic_partition: TopicPartition) -> None:
        await asyncio.sleep(0)
        del self.logs[topic_partition]
        self.deleted.append(topic_partition)

    async def flush(self, log: Log) -> None:
        await asyncio.sleep(0)
        if self.fails:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "disk")
        if (plan := log.flush_plan()) is not None:
            log.flushed(plan())


class Bench:
    """A manager, the image it follows, and short words for what tests do with it."""

    def __init__(self, directory: Path, alter_isr: Callable[[IsrProposal], Awaitable[PartitionState]] | None) -> None:
        self.world = VirtualWorld()
        self.logs = FolderOfLogs(directory, self.world)
        self.metrics = Metrics()
        brokers = [BrokerRegistered(broker=BrokerRegistration(id=each, epoch=each + 10)) for each in range(3)]
        self.image = ClusterImage().apply(1, brokers)
        self.manager = ReplicaManager(
            0,
            self.logs,
            clock=self.world,
            tasks=self.world,
            metrics=self.metrics,
            settings_for=self.settings_for,
            lag_time_max_ms=10_000,
            alter_isr=alter_isr,
            parked_max=3,
        )

    @staticmethod
    def settings_for(topic: TopicState) -> TopicSettings:
        configs = topic.configs
        return TopicSettings(
            rules=ProduceRules(max_message_bytes=int(configs.get("max.message.bytes", "1048588"))),
            log=LogConfig(flush_messages=int(configs.get("flush.messages", str((1 << 63) - 1)))),
            min_insync_replicas=int(configs.get("min.insync.replicas", "1")),
        )

    async def change(self, *deltas: Delta) -> None:
        old, self.image = self.image, self.image.apply(self.image.version + 1, deltas)
        await self.manager.on_metadata(old, self.image, deltas)

    async def create(self, name: str, *states: PartitionState, topic_id: UUID = TOPIC_ID, **configs: str) -> None:
        settings = {key.replace("_", "."): value for key, value in configs.items()}
        await self.change(
            TopicCreated(topic=TopicState(name=name, id=topic_id, partitions=states or (SINGLE,), configs=settings))
        )

    async def set_state(self, state: PartitionState) -> None:
        await self.change(PartitionChanged(topic_id=TOPIC_ID, partition=0, state=state))

    def append(self, *values: bytes, topic: str = "t", index: int = 0, acks: int = 1, **options: Any) -> Any:
        partition = self.manager.partition(topic, index)
        return self.manager.append(partition, batch(*(values or (b"x",)), **options), acks, self.world.time_ms())

    def fetch(
        self,
        *requests: FetchPartition,
        min_bytes: int = 1,
        max_wait_ms: int = 500,
        max_bytes: int = 1 << 20,
        **more: Any,
    ) -> Any:
        return self.manager.fetch(
            requests,
            min_bytes=min_bytes,
            max_bytes=max_bytes,
            max_wait_ms=max_wait_ms,
            isolation=more.pop("isolation", FetchIsolation.HIGH_WATERMARK),
            **more,
        )

    @property
    def parked(self) -> int:
        return len(self.manager._fetches)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path, None)


def code_of(work: Callable[[], object]) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        work()
    return caught.value.code


def sizes(results: list[FetchResult]) -> list[int]:
    """The bytes of each partition; the records are let go."""
    found = [result.size for result in results]
    release_results(results)
    return found


async def error_of(future: asyncio.Future[Any]) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        await future
    return caught.value.code


# -- Following the metadata ----------------------------------------------------------------------------------------


async def test_a_created_topic_is_usable_at_once(bench: Bench) -> None:
    await bench.create("t", SINGLE, SINGLE)
    assert bench.append(index=1).first_offset == 0
    partition = bench.manager.partition("t", 1)
    assert bench.manager.partition_by_id(TOPIC_ID, 1) is partition
    assert [str(each.topic_partition) for each in bench.manager.partitions()] == ["t-0", "t-1"]


async def test_lookups_say_what_is_wrong(bench: Bench) -> None:
    elsewhere = PartitionState(replicas=(1,), isr=(1,), leader=1)
    follower = PartitionState(replicas=(0, 1), isr=(0, 1), leader=1)
    await bench.create("t", SINGLE, elsewhere, follower)
    manager = bench.manager
    assert code_of(lambda: manager.partition("no", 0)) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert code_of(lambda: manager.partition("t", 3)) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert code_of(lambda: manager.partition("t", -1)) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert code_of(lambda: manager.partition("t", 1)) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert code_of(lambda: manager.partition("t", 2)) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert code_of(lambda: manager.partition_by_id(UUID(int=1), 0)) is ErrorCode.UNKNOWN_TOPIC_ID
    assert code_of(lambda: manager.partition_by_id(TOPIC_ID, 3)) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_a_log_that_cannot_be_created_makes_its_partition_offline(bench: Bench) -> None:
    bench.logs.fails = True
    await bench.create("t")
    assert code_of(lambda: bench.manager.partition("t", 0)) is ErrorCode.KAFKA_STORAGE_ERROR
    bench.logs.fails = False
    await bench.create("u", topic_id=UUID(int=60))
    bench.append(topic="u")
    assert "offlinereplicacount 1" in bench.metrics.render_prometheus()


async def test_start_takes_up_what_the_image_has(bench: Bench) -> None:
    topic = TopicState(name="t", id=TOPIC_ID, partitions=(SINGLE, SINGLE))
    bench.image = bench.image.apply(2, [TopicCreated(topic=topic)])
    await bench.manager.start(bench.image)
    bench.append(index=1)
    assert set(bench.logs.logs) == {("t", 0), ("t", 1)}


async def test_a_topic_recreated_under_its_name_starts_empty(bench: Bench) -> None:
    await bench.create("t")
    bench.append()
    again = TopicState(name="t", id=UUID(int=61), partitions=(SINGLE,))
    await bench.change(TopicDeleted(topic_id=TOPIC_ID), TopicCreated(topic=again))
    assert bench.logs.deleted == [("t", 0)]
    assert bench.append().first_offset == 0
    assert code_of(lambda: bench.manager.partition_by_id(TOPIC_ID, 0)) is ErrorCode.UNKNOWN_TOPIC_ID


async def test_added_partitions_and_changed_settings_take_effect(bench: Bench) -> None:
    await bench.create("t")
    await bench.change(
        PartitionsAdded(topic_id=TOPIC_ID, first_index=1, partitions=(SINGLE,)),
        TopicConfigChanged(topic_id=TOPIC_ID, changes={"max.message.bytes": "70"}),
    )
    bench.append(index=1)
    assert code_of(lambda: bench.append(b"x" * 100)) is ErrorCode.MESSAGE_TOO_LARGE
    assert code_of(lambda: bench.append(b"x" * 100, index=1)) is ErrorCode.MESSAGE_TOO_LARGE


async def test_a_replica_that_moves_away_is_deleted_here(bench: Bench) -> None:
    await bench.create("t")
    await bench.set_state(PartitionState(replicas=(1,), isr=(1,), leader=1, leader_epoch=1, partition_epoch=1))
    assert bench.logs.deleted == [("t", 0)]
    assert code_of(lambda: bench.manager.partition("t", 0)) is ErrorCode.NOT_LEADER_OR_FOLLOWER


# -- Appends and their metrics -------------------------------------------------------------------------------------


async def test_appends_are_counted_by_topic_and_in_all(bench: Bench) -> None:
    await bench.create("t")
    bench.append(b"a", b"b")
    assert code_of(lambda: bench.manager.append(bench.manager.partition("t", 0), memoryview(b"junk"), 1, 0))
    text = bench.metrics.render_prometheus()
    for line in (
        'messagesin_total{topic="t"} 2',
        "messagesin_total 2",
        f'bytesin_total{{topic="t"}} {len(batch(b"a", b"b"))}',
        'totalproducerequests_total{topic="t"} 2',
        'failedproducerequests_total{topic="t"} 1',
        'bytesrejected_total{topic="t"} 4',
    ):
        assert f"kafka_server_brokertopicmetrics_{line}" in text


async def test_a_duplicate_is_answered_with_its_first_offsets(bench: Bench) -> None:
    await bench.create("t")
    options: dict[str, Any] = {"producer_id": 5, "producer_epoch": 0, "base_sequence": 0}
    first = bench.append(b"x", **options)
    waiting = bench.fetch(wanted(1))
    again = bench.append(b"x", **options)
    assert (again.first_offset, again.duplicate) == (first.first_offset, True)
    bench.world.run_soon()
    assert not waiting.done()


async def test_an_append_alone_needs_no_waiting(bench: Bench) -> None:
    await bench.create("t")
    info = bench.append(acks=ALL_ACKS)
    assert bench.manager.partition("t", 0).append_is_commit
    assert bench.manager.completion(bench.manager.partition("t", 0), info, ALL_ACKS, 100) is None


async def test_flushing_by_count_happens_before_the_answer(bench: Bench) -> None:
    await bench.create("t", flush_messages="2")
    partition = bench.manager.partition("t", 0)
    assert bench.manager.completion(partition, bench.append(), 1, 100) is None
    assert partition.log.recovery_point == 0
    done = bench.manager.completion(partition, bench.append(), 1, 100)
    assert done is not None
    assert not done.done()
    await done
    assert partition.log.recovery_point == 2


async def test_an_append_that_cannot_be_flushed_is_not_acknowledged(bench: Bench) -> None:
    await bench.create("t", flush_messages="1")
    bench.logs.fails = True
    partition = bench.manager.partition("t", 0)
    done = bench.manager.completion(partition, bench.append(), 1, 100)
    assert done is not None
    assert await error_of(done) is ErrorCode.KAFKA_STORAGE_ERROR


async def test_flushing_by_count_with_followers_waits_for_both(bench: Bench) -> None:
    await bench.create("t", PAIR, flush_messages="1")
    partition = bench.manager.partition("t", 0)
    done = bench.manager.completion(partition, bench.append(acks=ALL_ACKS), ALL_ACKS, 1000)
    assert done is not None
    for _ in range(5):
        await asyncio.sleep(0)
    assert partition.log.recovery_point == 1
    assert not done.done()
    release_results(follower_fetch(bench, 1))
    await done


# -- Waiting for the high watermark --------------------------------------------------------------------------------


def follower_fetch(bench: Bench, offset: int, **more: Any) -> Any:
    return bench.fetch(wanted(offset, current_leader_epoch=-1), replica_id=1, replica_epoch=11, max_wait_ms=0, **more)


async def test_acks_all_waits_for_the_followers(bench: Bench) -> None:
    await bench.create("t", PAIR)
    partition = bench.manager.partition("t", 0)
    first, second = bench.append(acks=ALL_ACKS), bench.append(acks=ALL_ACKS)
    waits = [bench.manager.completion(partition, info, ALL_ACKS, 1000) for info in (first, second)]
    assert all(wait is not None and not wait.done() for wait in waits)
    assert bench.manager.completion(partition, second, 1, 1000) is None
    release_results(follower_fetch(bench, 1))
    assert [wait is not None and wait.done() for wait in waits] == [True, False]
    release_results(follower_fetch(bench, 2))
    assert [wait is not None and wait.done() for wait in waits] == [True, True]
    assert bench.world.timers == 0


async def test_a_wait_ends_at_its_time(bench: Bench) -> None:
    await bench.create("t", PAIR)
    bench.append(acks=ALL_ACKS)
    future = bench.manager.wait_for_high_watermark(bench.manager.partition("t", 0), 1, 250)
    bench.world.advance(0.249)
    assert not future.done()
    bench.world.advance(0.002)
    assert await error_of(future) is ErrorCode.REQUEST_TIMED_OUT


async def test_a_wait_ends_when_leadership_is_lost(bench: Bench) -> None:
    await bench.create("t", PAIR)
    partition = bench.manager.partition("t", 0)
    bench.append(acks=ALL_ACKS)
    future = bench.manager.wait_for_high_watermark(partition, 1, 1000)
    await bench.set_state(PartitionState(replicas=(0, 1), isr=(1,), leader=1, leader_epoch=1, partition_epoch=1))
    assert await error_of(future) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert await error_of(bench.manager.wait_for_high_watermark(partition, 1, 1000)) is ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_a_wait_ends_when_the_topic_is_deleted(bench: Bench) -> None:
    await bench.create("t", PAIR)
    bench.append(acks=ALL_ACKS)
    future = bench.manager.wait_for_high_watermark(bench.manager.partition("t", 0), 1, 1000)
    await bench.change(TopicDeleted(topic_id=TOPIC_ID))
    assert await error_of(future) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_an_isr_that_became_too_small_is_told_after_the_append(bench: Bench) -> None:
    await bench.create("t", PAIR, min_insync_replicas="2")
    partition = bench.manager.partition("t", 0)
    bench.append(acks=ALL_ACKS)
    future = bench.manager.wait_for_high_watermark(partition, 1, 1000)
    partition.remote[1].log_end_offset = 1
    partition.maybe_advance_high_watermark(bench.world.time_ms())
    await bench.set_state(PartitionState(replicas=(0, 1), isr=(0,), leader=0, partition_epoch=1))
    bench.manager.watermark_moved(partition)
    assert await error_of(future) is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    assert code_of(lambda: bench.append(acks=ALL_ACKS)) is ErrorCode.NOT_ENOUGH_REPLICAS


async def test_waits_are_bounded_and_given_up_ones_make_room(bench: Bench) -> None:
    await bench.create("t", PAIR)
    partition = bench.manager.partition("t", 0)
    bench.append(acks=ALL_ACKS)
    futures = [bench.manager.wait_for_high_watermark(partition, 1, 1000) for _ in range(4)]
    assert await error_of(futures[3]) is ErrorCode.REQUEST_TIMED_OUT
    futures[0].cancel()
    await asyncio.sleep(0)
    assert not bench.manager.wait_for_high_watermark(partition, 1, 1000).done()


async def test_expired_waiters_do_not_pile_up(tmp_path: Path) -> None:
    bench = Bench(tmp_path, None)
    await bench.create("t", PAIR)
    partition = bench.manager.partition("t", 0)
    bench.append(acks=ALL_ACKS)
    for _ in range(1000):
        future = bench.manager.wait_for_high_watermark(partition, 1, 1)
        bench.world.advance(0.002)
        assert await error_of(future) is ErrorCode.REQUEST_TIMED_OUT
    assert len(partition.produce_waiters) <= 65


class Watcher:
    def __init__(self) -> None:
        self.seen: list[str] = []

    def high_watermark_moved(self, partition: Partition, offset: int) -> None:
        self.seen.append(f"high watermark {offset}")

    def leadership_changed(self, partition: Partition) -> None:
        self.seen.append(f"leader {partition.is_leader} epoch {partition.leader_epoch}")

    def partition_stopped(self, partition: Partition) -> None:
        self.seen.append("stopped")


async def test_listeners_hear_of_commits_leadership_and_the_end(bench: Bench) -> None:
    await bench.create("t", PAIR)
    watcher = Watcher()
    bench.manager.partition("t", 0).listeners.append(watcher)
    bench.append()
    assert watcher.seen == []
    release_results(follower_fetch(bench, 1))
    await bench.set_state(PartitionState(replicas=(0,), isr=(0,), leader=0, leader_epoch=1, partition_epoch=1))
    bench.append()
    await bench.change(TopicDeleted(topic_id=TOPIC_ID))
    assert watcher.seen == ["high watermark 1", "leader True epoch 1", "high watermark 2", "stopped"]


# -- Fetching ------------------------------------------------------------------------------------------------------


async def test_limits_and_the_first_batch_beyond_them(bench: Bench) -> None:
    await bench.create("t", SINGLE, SINGLE, SINGLE)
    for index in range(3):
        bench.append(index=index)
        bench.append(index=index)
    requests = [wanted(partition=index) for index in range(3)]
    assert sizes(bench.fetch(*requests)) == [2 * SIZE] * 3
    assert sizes(bench.fetch(*requests, max_bytes=1)) == [SIZE, 0, 0]
    assert sizes(bench.fetch(*requests, max_bytes=3 * SIZE)) == [2 * SIZE, SIZE, 0]
    narrow = [wanted(partition=index, max_bytes=1) for index in range(3)]
    assert sizes(bench.fetch(*narrow)) == [SIZE, 0, 0]
    empty_first = [wanted(2, partition=0), *narrow[1:]]
    assert sizes(bench.fetch(*empty_first)) == [0, SIZE, 0]


async def test_errors_are_the_partitions_own(bench: Bench) -> None:
    await bench.create("t", PartitionState(replicas=(0,), isr=(0,), leader=0, leader_epoch=4))
    bench.append()
    requests = [
        wanted(0),
        wanted(9),
        wanted(0, current_leader_epoch=3),
        wanted(0, current_leader_epoch=5),
        wanted(0, topic="no"),
        wanted(0, topic=None, topic_id=UUID(int=1)),
        wanted(0, topic_id=UUID(int=1)),
        wanted(0, topic=None, topic_id=TOPIC_ID),
        wanted(0, topic_id=TOPIC_ID),
    ]
    results = bench.fetch(*requests)
    assert [result.error for result in results] == [
        ErrorCode.NONE,
        ErrorCode.OFFSET_OUT_OF_RANGE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.NONE,
        ErrorCode.NONE,
    ]
    assert [result.request for result in results] == requests
    assert (results[1].high_watermark, results[1].log_start_offset) == (-1, -1)
    release_results(results)


async def test_an_answer_holds_offsets_and_the_bytes_that_were_produced(bench: Bench) -> None:
    await bench.create("t")
    bench.append(b"hello")
    (result,) = bench.fetch(wanted(0))
    assert (result.high_watermark, result.last_stable_offset, result.log_start_offset) == (1, 1, 0)
    assert result.aborted is None
    assert b"hello" in result.records.read()
    release_results([result])


async def test_readers_of_committed_records_stop_at_an_open_transaction(bench: Bench) -> None:
    await bench.create("t")
    bench.append()
    bench.append(b"t", producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    (result,) = bench.fetch(wanted(0), isolation=FetchIsolation.COMMITTED)
    assert (result.size, result.last_stable_offset, result.high_watermark, result.aborted) == (SIZE, 1, 2, [])
    release_results([result])
    waiting = bench.fetch(wanted(1), isolation=FetchIsolation.COMMITTED)
    bench.append()
    bench.world.run_soon()
    assert not waiting.done()


async def test_a_fetch_that_may_not_wait_is_answered_empty(bench: Bench) -> None:
    await bench.create("t")
    assert sizes(bench.fetch(wanted(0), max_wait_ms=0)) == [0]
    assert bench.fetch(max_wait_ms=100) == []


async def test_a_parked_fetch_is_answered_by_an_append(bench: Bench) -> None:
    await bench.create("t", SINGLE, SINGLE)
    waiting = bench.fetch(wanted(0), wanted(0, partition=1))
    assert bench.parked == 1
    bench.append(index=1)
    bench.append(index=1)
    assert not waiting.done()
    bench.world.run_soon()
    assert sizes(waiting.result()) == [0, 2 * SIZE]
    assert (bench.parked, bench.world.timers) == (0, 0)
    assert all(not each.fetch_waiters for each in bench.manager.partitions())


async def test_bytes_of_all_partitions_count_towards_the_minimum(bench: Bench) -> None:
    await bench.create("t", SINGLE, SINGLE)
    bench.append()
    waiting = bench.fetch(wanted(0), wanted(0, partition=1), min_bytes=3 * SIZE)
    bench.append(index=1)
    bench.world.run_soon()
    assert not waiting.done()
    bench.append()
    bench.world.run_soon()
    assert sizes(waiting.result()) == [2 * SIZE, SIZE]


async def test_a_partition_counts_only_up_to_its_own_limit(bench: Bench) -> None:
    await bench.create("t", SINGLE, SINGLE)
    waiting = bench.fetch(wanted(0, max_bytes=SIZE), wanted(0, partition=1, max_bytes=SIZE), min_bytes=2 * SIZE)
    for _ in range(3):
        bench.append()
    bench.world.run_soon()
    assert not waiting.done()
    bench.append(index=1)
    bench.world.run_soon()
    assert sizes(waiting.result()) == [SIZE, SIZE]


async def test_a_minimum_above_the_maximum_is_the_maximum(bench: Bench) -> None:
    await bench.create("t")
    bench.append()
    bench.append()
    assert sizes(bench.fetch(wanted(0), min_bytes=1 << 30, max_bytes=SIZE)) == [SIZE]


async def test_a_parked_fetch_is_answered_at_its_deadline_with_what_there_is(bench: Bench) -> None:
    await bench.create("t")
    bench.append()
    waiting = bench.fetch(wanted(0), min_bytes=10 * SIZE, max_wait_ms=300)
    bench.world.advance(0.299)
    assert not waiting.done()
    bench.world.advance(0.001)
    assert sizes(waiting.result()) == [SIZE]
    assert 'expires_total{fetcherType="consumer"} 1' in bench.metrics.render_prometheus()


async def test_a_parked_fetch_pins_no_file(bench: Bench) -> None:
    await bench.create("t")
    bench.append()
    waiting = bench.fetch(wanted(0), min_bytes=10 * SIZE)
    probe = bench.manager.read_now([wanted(0)], 1 << 20, FetchIsolation.HIGH_WATERMARK)
    handle = probe[0].records._handle  # type: ignore[union-attr]  # there are records
    assert handle is not None
    assert handle.references == 2
    release_results(probe)
    assert handle.references == 1
    waiting.cancel()


async def test_deleting_the_topic_answers_a_parked_fetch(bench: Bench) -> None:
    await bench.create("t", SINGLE)
    await bench.create("u", topic_id=UUID(int=60))
    by_name = bench.fetch(wanted(0), wanted(0, topic="u"))
    by_id = bench.fetch(wanted(0, topic=None, topic_id=TOPIC_ID))
    await bench.change(TopicDeleted(topic_id=TOPIC_ID))
    bench.world.run_soon()
    assert [result.error for result in by_name.result()] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NONE]
    assert [result.error for result in by_id.result()] == [ErrorCode.UNKNOWN_TOPIC_ID]
    assert bench.parked == 0


async def test_a_new_leader_answers_a_parked_fetch(bench: Bench) -> None:
    await bench.create("t", PAIR)
    waiting = bench.fetch(wanted(0, current_leader_epoch=0))
    await bench.set_state(PartitionState(replicas=(0, 1), isr=(0, 1), leader=1, leader_epoch=1, partition_epoch=1))
    bench.world.run_soon()
    assert [result.error for result in waiting.result()] == [ErrorCode.FENCED_LEADER_EPOCH]


async def test_a_failed_disk_answers_a_parked_fetch(bench: Bench) -> None:
    await bench.create("t")
    waiting = bench.fetch(wanted(0))
    bench.manager.log_directory_failed("/disk", [TopicPartition("t", 0)])
    bench.world.run_soon()
    assert [result.error for result in waiting.result()] == [ErrorCode.KAFKA_STORAGE_ERROR]


async def test_a_client_that_leaves_is_taken_off(bench: Bench) -> None:
    await bench.create("t")
    waiting = bench.fetch(wanted(0))
    waiting.cancel()
    await asyncio.sleep(0)
    assert (bench.parked, bench.world.timers) == (0, 0)
    bench.append()
    bench.world.run_soon()


async def test_a_client_that_leaves_between_append_and_answer_is_harmless(bench: Bench) -> None:
    await bench.create("t")
    waiting = bench.fetch(wanted(0))
    bench.append()
    waiting.cancel()
    bench.world.run_soon()
    assert waiting.cancelled()


async def test_parked_fetches_are_bounded(bench: Bench) -> None:
    await bench.create("t")
    waiting = [bench.fetch(wanted(0)) for _ in range(3)]
    assert sizes(bench.fetch(wanted(0))) == [0]
    assert 'purgatorysize{delayedOperation="Fetch"} 3' in bench.metrics.render_prometheus()
    bench.manager.stop()
    bench.world.run_soon()
    assert [sizes(each.result()) for each in waiting] == [[0], [0], [0]]


async def test_a_diverging_epoch_is_answered_at_once(bench: Bench) -> None:
    await bench.create("t", PartitionState(replicas=(0,), isr=(0,), leader=0, leader_epoch=2))
    bench.append()
    (result,) = bench.fetch(wanted(1, last_fetched_epoch=1), min_bytes=100)
    assert result.diverging_epoch == (1, 0)


async def test_consumers_wait_for_the_high_watermark_and_followers_for_the_log_end(bench: Bench) -> None:
    await bench.create("t", PAIR)
    consumer = bench.fetch(wanted(0))
    follower = bench.fetch(wanted(0), replica_id=1, replica_epoch=11)
    bench.append()
    bench.world.run_soon()
    assert sizes(follower.result()) == [SIZE]
    assert not consumer.done()
    release_results(follower_fetch(bench, 1))
    bench.world.run_soon()
    assert sizes(consumer.result()) == [SIZE]


# -- The ISR -------------------------------------------------------------------------------------------------------


class Wishes:
    """A controller that answers when the test says so."""

    def __init__(self) -> None:
        self.asked: list[tuple[IsrProposal, asyncio.Future[PartitionState]]] = []

    async def __call__(self, proposal: IsrProposal) -> PartitionState:
        future: asyncio.Future[PartitionState] = asyncio.get_running_loop().create_future()
        self.asked.append((proposal, future))
        return await future


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_follower_that_caught_up_joins_when_the_controller_agrees(tmp_path: Path) -> None:
    wishes = Wishes()
    bench = Bench(tmp_path, wishes)
    await bench.create("t", PartitionState(replicas=(0, 1), isr=(0,), leader=0))
    partition = bench.manager.partition("t", 0)
    release_results(follower_fetch(bench, 0))
    await turns()
    proposal, answer = wishes.asked[0]
    assert proposal.isr == ((0, 10), (1, 11))
    bench.append()
    assert partition.log.high_watermark == 0
    answer.set_result(PartitionState(replicas=(0, 1), isr=(0, 1), leader=0, partition_epoch=1))
    await turns()
    assert partition.isr == {0, 1}
    release_results(follower_fetch(bench, 1))
    assert partition.log.high_watermark == 1
    assert "isrexpands_total 1" in bench.metrics.render_prometheus()


async def test_a_silent_follower_leaves_and_waiting_produces_go_on(tmp_path: Path) -> None:
    wishes = Wishes()
    bench = Bench(tmp_path, wishes)
    await bench.create("t", PAIR)
    await bench.manager.start(bench.image)
    partition = bench.manager.partition("t", 0)
    bench.append(acks=ALL_ACKS)
    done = bench.manager.wait_for_high_watermark(partition, 1, 60_000)
    bench.world.advance(16)
    await turns()
    proposal, answer = wishes.asked[0]
    assert (proposal.isr, len(wishes.asked)) == (((0, 10),), 1)
    assert not done.done()
    answer.set_result(PartitionState(replicas=(0, 1), isr=(0,), leader=0, partition_epoch=1))
    await turns()
    assert done.done()
    bench.manager.stop()


async def test_a_refused_wish_is_made_again_later(tmp_path: Path) -> None:
    wishes = Wishes()
    bench = Bench(tmp_path, wishes)
    await bench.create("t", PartitionState(replicas=(0, 1), isr=(0,), leader=0))
    release_results(follower_fetch(bench, 0))
    await turns()
    wishes.asked[0][1].set_exception(KafkaError(ErrorCode.INVALID_UPDATE_VERSION))
    await turns()
    assert bench.manager.partition("t", 0).maximal_isr == {0}
    release_results(follower_fetch(bench, 0))
    await turns()
    assert len(wishes.asked) == 2
    wishes.asked[1][1].cancel()
