"""Registrations, elections, ISR changes, producer ids and adoption."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.types import TopicPartition
from penstock.controller.adoption import Adoption, FoundPartition, plan_adopt_topics
from penstock.controller.brokers import RegisterBroker, plan_register_broker, plan_unregister_broker
from penstock.controller.partitions import AlterPartition, elect, leave_isr, plan_alter_partition
from penstock.controller.producer_ids import BLOCK_SIZE, plan_allocate_producer_ids
from penstock.metadata.deltas import (
    BrokerRegistered,
    Delta,
    PartitionChanged,
    PartitionsAdded,
    ProducerIdsAllocated,
    TopicCreated,
    TopicDeleted,
)
from penstock.metadata.image import (
    NO_LEADER,
    BrokerRegistration,
    ClusterImage,
    PartitionState,
    TopicState,
)

TOPIC = UUID(int=9)


def image_of(*states: PartitionState, brokers: int = 3) -> ClusterImage:
    registered = [BrokerRegistered(broker=BrokerRegistration(id=each, epoch=each + 10)) for each in range(brokers)]
    topic = TopicState(name="t", id=TOPIC, partitions=states)
    return ClusterImage().apply(1, [*registered, TopicCreated(topic=topic)])


def returning(broker_id: int, *, clean: bool) -> RegisterBroker:
    return RegisterBroker(broker_id=broker_id, endpoints=(), incarnation=UUID(int=1234), clean=clean)


def after_registration(state: PartitionState, *, clean: bool, brokers: int = 3) -> PartitionState:
    image = image_of(state, brokers=brokers)
    deltas = plan_register_broker(image, returning(0, clean=clean))
    return image.apply(2, deltas).topics["t"].partitions[0]


SINGLE = PartitionState(replicas=(0,), isr=(0,), leader=0, leader_epoch=4, partition_epoch=6)
TRIPLE = PartitionState(replicas=(0, 1, 2), isr=(0, 1, 2), leader=0, leader_epoch=4, partition_epoch=6)


def test_a_registration_gets_a_broker_epoch_that_was_never_used() -> None:
    image = image_of(SINGLE)
    first = image.apply(2, plan_register_broker(image, returning(0, clean=True)))
    assert first.brokers[0].epoch == 2
    again = RegisterBroker(broker_id=0, endpoints=(), incarnation=UUID(int=5678), clean=True)
    assert first.apply(7, plan_register_broker(first, again)).brokers[0].epoch == 3


def test_the_same_life_registers_once() -> None:
    image = image_of(SINGLE)
    image = image.apply(2, plan_register_broker(image, returning(0, clean=False)))
    assert plan_register_broker(image, returning(0, clean=False)) == []


def test_a_clean_restart_changes_no_epoch() -> None:
    assert after_registration(SINGLE, clean=True) == SINGLE
    assert after_registration(TRIPLE, clean=True) == TRIPLE


def test_an_unclean_restart_of_the_only_replica_leads_under_a_new_epoch() -> None:
    state = after_registration(SINGLE, clean=False)
    assert (state.leader, state.isr, state.leader_epoch, state.partition_epoch) == (0, (0,), 5, 7)


def test_an_unclean_restart_leaves_every_isr_that_has_another_member() -> None:
    state = after_registration(TRIPLE, clean=False)
    assert (state.leader, state.isr, state.leader_epoch) == (1, (1, 2), 5)


def test_an_unclean_restart_may_not_lead_although_the_others_are_gone() -> None:
    state = after_registration(TRIPLE, clean=False, brokers=1)
    assert (state.leader, state.isr) == (NO_LEADER, (1, 2))


def test_a_partition_without_leader_gets_the_one_that_returns_clean() -> None:
    waiting = PartitionState(replicas=(0,), isr=(0,), leader=NO_LEADER, leader_epoch=4)
    state = after_registration(waiting, clean=True)
    assert (state.leader, state.leader_epoch) == (0, 5)


def test_a_broker_that_goes_hands_its_partitions_over() -> None:
    image = image_of(TRIPLE, SINGLE)
    image = image.apply(2, plan_unregister_broker(image, 0))
    triple, single = image.topics["t"].partitions
    assert (triple.leader, triple.isr) == (1, (1, 2))
    assert (single.leader, single.isr) == (NO_LEADER, (0,))
    with pytest.raises(KafkaError) as caught:
        plan_unregister_broker(image, 0)
    assert caught.value.code is ErrorCode.BROKER_ID_NOT_REGISTERED


replica_sets = st.lists(st.integers(0, 4), min_size=1, max_size=5, unique=True)


@given(replicas=replica_sets, isr_size=st.integers(1, 5), leader=st.integers(-1, 4), live=st.sets(st.integers(0, 4)))
def test_elections_choose_only_live_members_of_the_isr(
    replicas: list[int], isr_size: int, leader: int, live: set[int]
) -> None:
    isr = tuple(replicas[:isr_size])
    state = PartitionState(
        replicas=tuple(replicas), isr=isr, leader=leader if leader in isr else NO_LEADER, leader_epoch=3
    )
    for broker in (None, *replicas):
        changed = elect(state, live) if broker is None else leave_isr(state, broker, live)
        assert changed.isr
        assert changed.leader == NO_LEADER or changed.leader in live & set(changed.isr)
        assert (changed.leader == NO_LEADER) == (not live & set(changed.isr))
        assert changed.leader_epoch == state.leader_epoch + (changed.leader != state.leader)
        assert (changed.partition_epoch > state.partition_epoch) == (changed != state)


# -- AlterPartition ------------------------------------------------------------------------------------------------


def alter(**changes: object) -> AlterPartition:
    values: dict[str, object] = {
        "broker_id": 0,
        "broker_epoch": 10,
        "topic_id": TOPIC,
        "partition": 0,
        "leader_epoch": 4,
        "partition_epoch": 6,
        "isr": [(0, 10), (1, 11)],
    }
    return AlterPartition(**{**values, **changes})  # type: ignore[arg-type]  # the fields are of several types


def test_an_isr_change_grows_the_partition_epoch_only() -> None:
    deltas, state = plan_alter_partition(image_of(TRIPLE), alter())
    assert (state.isr, state.leader, state.leader_epoch, state.partition_epoch) == ((0, 1), 0, 4, 7)
    assert deltas == [PartitionChanged(topic_id=TOPIC, partition=0, state=state)]


def test_a_wish_for_the_present_isr_changes_nothing() -> None:
    deltas, state = plan_alter_partition(image_of(TRIPLE), alter(isr=[(2, 12), (0, 10), (1, -1)]))
    assert (deltas, state) == ([], TRIPLE)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"broker_epoch": 9}, ErrorCode.STALE_BROKER_EPOCH),
        ({"broker_id": 8}, ErrorCode.STALE_BROKER_EPOCH),
        ({"topic_id": UUID(int=1)}, ErrorCode.UNKNOWN_TOPIC_ID),
        ({"partition": 3}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"leader_epoch": 5}, ErrorCode.NOT_CONTROLLER),
        ({"partition_epoch": 7}, ErrorCode.NOT_CONTROLLER),
        ({"leader_epoch": 3}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"partition_epoch": 5}, ErrorCode.INVALID_UPDATE_VERSION),
        ({"broker_id": 1, "broker_epoch": 11}, ErrorCode.INVALID_REQUEST),
        ({"isr": [(1, 11)]}, ErrorCode.INVALID_REQUEST),
        ({"isr": [(0, 10), (7, -1)]}, ErrorCode.INVALID_REQUEST),
        ({"isr": [(0, 10), (0, 10)]}, ErrorCode.INVALID_REQUEST),
        ({"isr": [(0, 10), (1, 8)]}, ErrorCode.INELIGIBLE_REPLICA),
    ],
)
def test_isr_changes_that_are_refused(changes: dict[str, object], code: ErrorCode) -> None:
    with pytest.raises(KafkaError) as caught:
        plan_alter_partition(image_of(TRIPLE), alter(**changes))
    assert caught.value.code is code


def test_a_dead_member_cannot_enter_the_isr() -> None:
    with pytest.raises(KafkaError) as caught:
        plan_alter_partition(image_of(TRIPLE, brokers=1), alter())
    assert caught.value.code is ErrorCode.INELIGIBLE_REPLICA


# -- Producer ids --------------------------------------------------------------------------------------------------


def test_producer_ids_come_in_blocks_that_do_not_overlap() -> None:
    image = image_of(SINGLE)
    deltas, block = plan_allocate_producer_ids(image, 0, 10)
    _, following = plan_allocate_producer_ids(image.apply(2, deltas), 0, 10)
    assert (block, following) == (range(BLOCK_SIZE), range(BLOCK_SIZE, 2 * BLOCK_SIZE))


def test_producer_ids_are_refused_to_a_stale_broker_and_at_the_end_of_their_range() -> None:
    image = image_of(SINGLE)
    with pytest.raises(KafkaError) as caught:
        plan_allocate_producer_ids(image, 0, 9)
    assert caught.value.code is ErrorCode.STALE_BROKER_EPOCH
    used_up = image.apply(2, [ProducerIdsAllocated(next_producer_id=2**63 - BLOCK_SIZE)])
    with pytest.raises(KafkaError) as caught:
        plan_allocate_producer_ids(used_up, 0, 10)
    assert caught.value.code is ErrorCode.UNKNOWN_SERVER_ERROR


# -- Adoption ------------------------------------------------------------------------------------------------------

FRESH = UUID(int=4242)
COPIED = UUID(int=50)


def adopt(image: ClusterImage, *found: FoundPartition) -> tuple[list[Delta], Adoption]:
    return plan_adopt_topics(
        image,
        found,
        broker_id=0,
        new_topic_id=lambda: FRESH,
        configs_for=lambda name: {"cleanup.policy": "compact"} if name.startswith("__") else {},
    )


def found(topic: str, partition: int, topic_id: UUID | None = COPIED, latest_epoch: int = -1) -> FoundPartition:
    return FoundPartition(topic=topic, partition=partition, topic_id=topic_id, latest_epoch=latest_epoch)


def test_a_copied_directory_brings_its_topic_id_and_missing_partitions_are_created() -> None:
    deltas, adoption = adopt(image_of(SINGLE), found("new", 2, latest_epoch=7))
    (delta,) = deltas
    assert isinstance(delta, TopicCreated)
    assert delta.topic.id == UUID(int=50)
    assert [state.leader_epoch for state in delta.topic.partitions] == [0, 0, 8]
    assert all(state.leader == 0 for state in delta.topic.partitions)
    assert adoption.adopted == [TopicPartition("new", 2)]


def test_a_directory_without_id_gets_one() -> None:
    deltas, _ = adopt(image_of(SINGLE), found("new", 0, None))
    assert isinstance(deltas[0], TopicCreated)
    assert deltas[0].topic.id == FRESH


def test_an_internal_topic_is_adopted_with_its_settings() -> None:
    deltas, _ = adopt(image_of(SINGLE), found("__consumer_offsets", 0))
    assert isinstance(deltas[0], TopicCreated)
    assert deltas[0].topic.configs == {"cleanup.policy": "compact"}


def test_known_partitions_need_nothing() -> None:
    deltas, adoption = adopt(image_of(SINGLE), found("t", 0, TOPIC), found("t", 0, None))
    assert deltas == []
    assert not adoption.adopted + adoption.stray + adoption.deleted


def test_another_id_under_a_known_name_is_a_stray() -> None:
    deltas, adoption = adopt(image_of(SINGLE), found("t", 0, UUID(int=66)))
    assert deltas == []
    assert adoption.stray == [TopicPartition("t", 0)]


def test_further_partitions_of_a_known_topic_are_added() -> None:
    deltas, adoption = adopt(image_of(SINGLE), found("t", 0, TOPIC), found("t", 3, TOPIC, 2))
    (delta,) = deltas
    assert isinstance(delta, PartitionsAdded)
    assert (delta.first_index, [state.leader_epoch for state in delta.partitions]) == (1, [0, 0, 3])
    assert adoption.adopted == [TopicPartition("t", 3)]


def test_the_directory_of_a_deleted_topic_is_deleted_and_not_adopted() -> None:
    image = image_of(SINGLE).apply(2, [TopicDeleted(topic_id=TOPIC)])
    deltas, adoption = adopt(image, found("t", 0, TOPIC))
    assert adoption.deleted == [TopicPartition("t", 0)]
    # The broker may die again before the directory is gone.
    assert deltas == []
    deltas, adoption = adopt(image)
    assert image.apply(3, deltas).deleted_topics == {}
    assert image.apply(3, deltas).topics == {}


def test_what_nobody_could_have_created_is_a_stray_and_kafkas_own_log_is_left_alone() -> None:
    deltas, adoption = adopt(image_of(SINGLE), found("a b", 0), found("x", 2_000_000), found("__cluster_metadata", 0))
    assert deltas == []
    assert adoption.stray == [TopicPartition("a b", 0), TopicPartition("x", 2_000_000)]


def test_a_log_with_later_epochs_than_the_metadata_raises_the_leader_epoch() -> None:
    image = image_of(SINGLE)
    deltas, _ = adopt(image, found("t", 0, TOPIC, latest_epoch=9))
    state = image.apply(2, deltas).topics["t"].partitions[0]
    assert (state.leader_epoch, state.partition_epoch, state.leader) == (10, 7, 0)
    assert adopt(image, found("t", 0, TOPIC, latest_epoch=4))[0] == []
