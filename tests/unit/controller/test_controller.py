"""The controller over a store that can be slow, refuse, and be changed by somebody else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from random import Random
from uuid import UUID

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.system import SystemFiles, SystemTasks
from penstock.base.types import new_uuid
from penstock.controller.adoption import FoundPartition
from penstock.controller.brokers import RegisterBroker
from penstock.controller.controller import Controller
from penstock.controller.topics import NewTopic, TopicReference, TopicRules
from penstock.metadata.deltas import Delta
from penstock.metadata.image import ClusterImage
from penstock.metadata.local.store import LocalMetadataStore
from penstock.metadata.store import Listener, VersionConflictError


class WilfulStore:
    """A store whose next commits can be told to conflict, to fail, or to wait."""

    def __init__(self, inner: LocalMetadataStore) -> None:
        self.inner = inner
        self.conflicts = 0
        self.fails = False
        self.gate: asyncio.Event | None = None
        self.commits: list[list[Delta]] = []

    @property
    def image(self) -> ClusterImage:
        return self.inner.image

    async def load(self) -> ClusterImage:
        return await self.inner.load()

    async def commit(self, deltas: Sequence[Delta], *, expected_version: int | None = None) -> ClusterImage:
        if self.gate is not None:
            await self.gate.wait()
        if self.conflicts:
            self.conflicts -= 1
            raise VersionConflictError(expected_version or 0, -1)
        if self.fails:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "disk")
        self.commits.append(list(deltas))
        return await self.inner.commit(deltas, expected_version=expected_version)

    def subscribe(self, listener: Listener) -> None:
        self.inner.subscribe(listener)

    async def close(self) -> None:
        await self.inner.close()


@pytest.fixture
async def tasks() -> AsyncIterator[SystemTasks]:
    tasks = SystemTasks(asyncio.get_running_loop(), threads=1)
    yield tasks
    await tasks.close()


@pytest.fixture
async def store(tmp_path: Path, tasks: SystemTasks) -> WilfulStore:
    store = WilfulStore(LocalMetadataStore(str(tmp_path / "metadata.penstock"), files=SystemFiles(), tasks=tasks))
    await store.load()
    return store


def topic_rules() -> TopicRules:
    rng = Random(1)
    return TopicRules(
        default_num_partitions=1,
        default_replication_factor=1,
        validate_configs=lambda configs: None,
        new_topic_id=lambda: new_uuid(rng),
        random_below=rng.randrange,
    )


@pytest.fixture
async def controller(store: WilfulStore, tasks: SystemTasks) -> Controller:
    rules = topic_rules()
    controller = Controller(0, store, tasks=tasks, rules=lambda: rules)
    await controller.start("cluster", {"metadata.version": 3})
    await controller.register_broker(RegisterBroker(broker_id=0, endpoints=(), incarnation=UUID(int=7), clean=True))
    return controller


async def test_a_new_cluster_gets_its_id_controller_and_features(controller: Controller) -> None:
    image = controller.image
    assert (image.cluster_id, image.controller_id, image.features) == ("cluster", 0, {"metadata.version": 3})
    before = image.version
    await controller.start("another")
    assert (controller.image.cluster_id, controller.image.version) == ("cluster", before)


async def test_a_cluster_that_is_older_than_a_feature_gets_it_and_keeps_the_levels_it_has(
    controller: Controller,
) -> None:
    await controller.start("cluster", {"metadata.version": 4, "transaction.version": 2})
    assert controller.image.features == {"metadata.version": 3, "transaction.version": 2}


async def test_a_created_topic_is_there_and_its_result_says_how(controller: Controller) -> None:
    (result,) = await controller.create_topics([NewTopic(name="t", num_partitions=2)])
    assert (result.error, result.num_partitions, result.replication_factor) == (ErrorCode.NONE, 2, 1)
    assert controller.image.topics["t"].id == result.topic_id


async def test_validation_alone_creates_nothing(controller: Controller) -> None:
    before = controller.image
    results = await controller.create_topics([NewTopic(name="t"), NewTopic(name="a b")], validate_only=True)
    assert [each.error for each in results] == [ErrorCode.NONE, ErrorCode.INVALID_TOPIC_EXCEPTION]
    assert controller.image is before


async def test_concurrent_requests_for_one_topic_create_it_once(controller: Controller) -> None:
    answers = await asyncio.gather(*(controller.create_topics([NewTopic(name="t")]) for _ in range(5)))
    codes = [answer[0].error for answer in answers]
    assert codes == [ErrorCode.NONE] + [ErrorCode.TOPIC_ALREADY_EXISTS] * 4


async def test_a_conflict_is_planned_again_and_endless_conflicts_end(
    controller: Controller, store: WilfulStore
) -> None:
    store.conflicts = 2
    await controller.create_topics([NewTopic(name="t")])
    assert "t" in controller.image.topics
    store.conflicts = 1000
    with pytest.raises(KafkaError) as caught:
        await controller.create_topics([NewTopic(name="u")])
    assert caught.value.code is ErrorCode.NOT_CONTROLLER


async def test_a_failing_store_refuses_the_request_and_the_next_one_works(
    controller: Controller, store: WilfulStore
) -> None:
    store.fails = True
    with pytest.raises(KafkaError) as caught:
        await controller.create_topics([NewTopic(name="t")])
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert "t" not in controller.image.topics
    store.fails = False
    await controller.create_topics([NewTopic(name="t")])


async def test_requests_wait_for_a_slow_commit_in_order(controller: Controller, store: WilfulStore) -> None:
    store.gate = asyncio.Event()
    first = asyncio.ensure_future(controller.create_topics([NewTopic(name="t")]))
    second = asyncio.ensure_future(controller.delete_topics([TopicReference(name="t")]))
    await asyncio.sleep(0)
    assert not first.done()
    store.gate.set()
    assert (await first)[0].error is ErrorCode.NONE
    assert (await second)[0].error is ErrorCode.NONE
    assert controller.image.topics == {}


async def test_producer_id_blocks_never_repeat(controller: Controller) -> None:
    epoch = controller.image.brokers[0].epoch
    blocks = [await controller.allocate_producer_ids(0, epoch) for _ in range(3)]
    assert len({producer_id for block in blocks for producer_id in block}) == 3000


async def test_a_deleted_topic_is_forgotten_by_the_next_change(controller: Controller) -> None:
    (created,) = await controller.create_topics([NewTopic(name="t")])
    await controller.delete_topics([TopicReference(name="t")])
    assert controller.image.deleted_topics == {created.topic_id: "t"}
    await controller.create_topics([NewTopic(name="u")])
    assert controller.image.deleted_topics == {}


async def test_a_deleted_topic_is_remembered_while_a_disk_is_offline(store: WilfulStore, tasks: SystemTasks) -> None:
    rules = topic_rules()
    controller = Controller(0, store, tasks=tasks, rules=lambda: rules, may_forget_deleted=lambda: False)
    await controller.start("cluster")
    await controller.register_broker(RegisterBroker(broker_id=0, endpoints=(), incarnation=UUID(int=7), clean=True))
    (created,) = await controller.create_topics([NewTopic(name="t")])
    await controller.delete_topics([TopicReference(name="t")])
    await controller.create_topics([NewTopic(name="u")])
    await controller.adopt_topics([], broker_id=0, configs_for=lambda name: {})
    assert controller.image.deleted_topics == {created.topic_id: "t"}


async def test_adoption(controller: Controller) -> None:
    found = [FoundPartition(topic="copied", partition=1, topic_id=UUID(int=99), latest_epoch=4)]
    adoption = await controller.adopt_topics(found, broker_id=0, configs_for=lambda name: {})
    assert [str(place) for place in adoption.adopted] == ["copied-1"]
    topic = controller.image.topics["copied"]
    assert (topic.id, len(topic.partitions), topic.partitions[1].leader_epoch) == (UUID(int=99), 2, 5)


async def test_a_closed_controller_refuses(controller: Controller) -> None:
    await controller.close()
    with pytest.raises(KafkaError):
        await controller.create_topics([NewTopic(name="t")])
