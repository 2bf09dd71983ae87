"""Store, controller, log manager and replica manager together, as a single broker has them, over restarts."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from random import Random
from uuid import UUID

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.metrics import Metrics
from penstock.base.system import SystemClock, SystemFiles, SystemTasks
from penstock.base.types import new_uuid
from penstock.controller.adoption import Adoption, FoundPartition
from penstock.controller.brokers import RegisterBroker
from penstock.controller.controller import Controller
from penstock.controller.topics import NewTopic, TopicReference, TopicRules
from penstock.metadata.image import PartitionState, TopicState
from penstock.metadata.local.store import FILE_NAME, LocalMetadataStore
from penstock.records.validation import ProduceRules
from penstock.replication.fetching import FetchIsolation, FetchResult, release_results
from penstock.replication.manager import ReplicaManager
from penstock.replication.offsets import end_offset_for_leader_epoch
from penstock.replication.settings import TopicSettings
from penstock.storage.config import LogConfig
from penstock.storage.manager.manager import LogManager
from tests.unit.replication.fakes import batch, wanted


class ClusterOfOne:
    def __init__(self, directory: Path, tasks: SystemTasks, rng: Random) -> None:
        self.directory = directory
        self.rng = rng
        self.clock = SystemClock()
        files = SystemFiles()
        self.store = LocalMetadataStore(str(directory / FILE_NAME), files=files, tasks=tasks)
        self.logs = LogManager(
            [str(directory)],
            files=files,
            clock=self.clock,
            tasks=tasks,
            log_config_for=lambda topic: LogConfig(),
            node_id=0,
            rng=rng,
        )
        rules = TopicRules(
            default_num_partitions=1,
            default_replication_factor=1,
            validate_configs=lambda configs: None,
            new_topic_id=lambda: new_uuid(rng),
            random_below=rng.randrange,
        )
        self.controller = Controller(0, self.store, tasks=tasks, rules=lambda: rules)
        self.replicas = ReplicaManager(
            0, self.logs, clock=self.clock, tasks=tasks, metrics=Metrics(), settings_for=self.settings_for
        )
        self.adoption = Adoption()

    @staticmethod
    def settings_for(topic: TopicState) -> TopicSettings:
        return TopicSettings(rules=ProduceRules(), log=LogConfig())

    async def start(self) -> None:
        await self.logs.take_directories()
        await self.store.load()
        found = await self.logs.start()
        await self.controller.start(self.logs.cluster_id)
        partitions = [
            FoundPartition(
                topic=each.topic_partition.topic,
                partition=each.topic_partition.partition,
                topic_id=each.topic_id,
                latest_epoch=-1 if each.log.latest_epoch is None else each.log.latest_epoch,
            )
            for each in found
        ]
        self.adoption = await self.controller.adopt_topics(partitions, broker_id=0, configs_for=lambda topic: {})
        for place in self.adoption.deleted:
            await self.logs.delete(place)
        await self.controller.register_broker(
            RegisterBroker(broker_id=0, endpoints=(), incarnation=new_uuid(self.rng), clean=self.logs.was_clean)
        )
        await self.replicas.start(self.store.image)
        self.store.subscribe(self.replicas.on_metadata)

    async def stop(self) -> None:
        self.replicas.stop()
        await self.controller.close()
        await self.store.close()
        await self.logs.stop()

    def produce(self, *values: bytes, topic: str = "t", index: int = 0) -> int:
        partition = self.replicas.partition(topic, index)
        now_ms = self.clock.time_ms()
        return self.replicas.append(partition, batch(*values, timestamp=now_ms), -1, now_ms).first_offset

    def read(self, topic: str = "t", index: int = 0) -> bytes:
        results = self.replicas.read_now(
            [wanted(0, topic=topic, partition=index)], 1 << 20, FetchIsolation.HIGH_WATERMARK
        )
        found = self._bytes_of(results[0])
        release_results(results)
        return found

    @staticmethod
    def _bytes_of(result: FetchResult) -> bytes:
        assert result.error is ErrorCode.NONE
        return b"" if result.records is None else result.records.read()

    def state(self, topic: str = "t", index: int = 0) -> PartitionState:
        return self.store.image.topics[topic].partitions[index]


Starter = Callable[[], Awaitable[ClusterOfOne]]


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Starter]:
    """Starts the broker on the same directory, again and again."""
    tasks = SystemTasks(asyncio.get_running_loop(), threads=2)
    rng = Random(3)
    started: list[ClusterOfOne] = []

    async def starter() -> ClusterOfOne:
        cluster = ClusterOfOne(tmp_path / "data", tasks, rng)
        started.append(cluster)
        await cluster.start()
        return cluster

    (tmp_path / "data").mkdir()
    yield starter
    await tasks.close()


async def test_a_topic_its_records_and_its_id_survive_a_clean_restart(start: Starter) -> None:
    first = await start()
    (created,) = await first.controller.create_topics([NewTopic(name="t", num_partitions=2)])
    assert first.produce(b"one", b"two") == 0
    epoch = first.store.image.brokers[0].epoch
    await first.stop()
    second = await start()
    assert second.store.image.topics["t"].id == created.topic_id
    assert second.state().leader_epoch == 0
    assert second.store.image.brokers[0].epoch > epoch
    assert b"two" in second.read()
    assert second.produce(b"three") == 2
    await second.stop()


async def test_after_an_unclean_stop_the_partition_leads_under_a_new_epoch(start: Starter) -> None:
    first = await start()
    await first.controller.create_topics([NewTopic(name="t")])
    first.produce(b"one")
    first.logs._directories.release()
    second = await start()
    assert (second.state().leader_epoch, second.state().leader) == (1, 0)
    assert b"one" in second.read()
    partition = second.replicas.partition("t", 0)
    assert end_offset_for_leader_epoch(partition, 0) == (0, 1)
    second.produce(b"two")
    assert end_offset_for_leader_epoch(partition, 0) == (0, 1)
    assert end_offset_for_leader_epoch(partition, 1) == (1, 2)
    await second.stop()


async def test_a_deleted_topic_stays_deleted_and_its_directory_goes(start: Starter, tmp_path: Path) -> None:
    first = await start()
    await first.controller.create_topics([NewTopic(name="t"), NewTopic(name="u")])
    shutil.copytree(tmp_path / "data" / "t-0", tmp_path / "copy")
    await first.controller.delete_topics([TopicReference(name="t")])
    with pytest.raises(KafkaError) as caught:
        first.replicas.partition("t", 0)
    assert caught.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    await first.stop()
    # As if the broker had died between the decision and the renaming.
    shutil.move(tmp_path / "copy", tmp_path / "data" / "t-0")
    second = await start()
    assert [str(place) for place in second.adoption.deleted] == ["t-0"]
    assert set(second.store.image.topics) == {"u"}
    assert not second.adoption.adopted
    await second.stop()


async def test_a_directory_from_elsewhere_is_adopted_with_its_id_and_records(start: Starter, tmp_path: Path) -> None:
    first = await start()
    (created,) = await first.controller.create_topics([NewTopic(name="t", num_partitions=2)])
    first.produce(b"kept", index=1)
    await first.stop()
    shutil.move(tmp_path / "data" / "t-1", tmp_path / "t-1")
    shutil.rmtree(tmp_path / "data")
    (tmp_path / "data").mkdir()
    shutil.move(tmp_path / "t-1", tmp_path / "data" / "t-1")
    second = await start()
    topic = second.store.image.topics["t"]
    assert (topic.id, len(topic.partitions)) == (created.topic_id, 2)
    assert b"kept" in second.read(index=1)
    assert second.state(index=1).leader_epoch > 0
    assert second.produce(b"new", index=0) == 0
    assert second.produce(b"next", index=1) == 1
    await second.stop()


async def test_losing_the_metadata_file_loses_no_topic(start: Starter, tmp_path: Path) -> None:
    first = await start()
    (created,) = await first.controller.create_topics([NewTopic(name="t")])
    first.produce(b"kept")
    await first.stop()
    (tmp_path / "data" / FILE_NAME).unlink()
    second = await start()
    assert second.store.image.topic_names == {created.topic_id: "t"}
    assert b"kept" in second.read()
    await second.stop()


async def test_producer_ids_never_repeat_over_restarts(start: Starter) -> None:
    seen: set[int] = set()
    for _ in range(2):
        cluster = await start()
        block = await cluster.controller.allocate_producer_ids(0, cluster.store.image.brokers[0].epoch)
        assert seen.isdisjoint(block)
        seen.update(block)
        await cluster.stop()


async def test_a_parked_fetch_is_answered_when_the_topic_is_deleted(start: Starter) -> None:
    cluster = await start()
    (created,) = await cluster.controller.create_topics([NewTopic(name="t")])
    future = cluster.replicas.fetch(
        [wanted(0, topic=None, topic_id=created.topic_id)],
        min_bytes=1,
        max_bytes=1 << 20,
        max_wait_ms=60_000,
        isolation=FetchIsolation.HIGH_WATERMARK,
    )
    assert isinstance(future, asyncio.Future)
    await cluster.controller.delete_topics([TopicReference(topic_id=UUID(int=created.topic_id.int))])
    assert [result.error for result in await future] == [ErrorCode.UNKNOWN_TOPIC_ID]
    await cluster.stop()
