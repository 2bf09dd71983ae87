"""Images and deltas: application, sharing, and the JSON form."""

from __future__ import annotations

from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.metadata.deltas import (
    BrokerConfigChanged,
    BrokerRegistered,
    BrokerUnregistered,
    ClusterIdSet,
    ControllerChanged,
    DeletedTopicsForgotten,
    Delta,
    FeatureChanged,
    PartitionChanged,
    PartitionsAdded,
    ProducerIdsAllocated,
    TopicConfigChanged,
    TopicCreated,
    TopicDeleted,
    UnknownFormatError,
    decode_deltas,
    encode_deltas,
    image_as_deltas,
)
from penstock.metadata.image import BrokerRegistration, ClusterImage, Endpoint, PartitionState, TopicState

ids = st.integers(0, 5).map(lambda number: UUID(int=number + 2))
names = st.sampled_from(["a", "b.c", "d_e", "päß", "line\nbreak"])
broker_ids = st.integers(0, 3)
states = st.builds(
    PartitionState,
    replicas=st.lists(broker_ids, min_size=1, max_size=3).map(tuple),
    isr=st.lists(broker_ids, min_size=1, max_size=3).map(tuple),
    leader=st.integers(-1, 3),
    leader_epoch=st.integers(0, 2**31 - 1),
    partition_epoch=st.integers(0, 2**31 - 1),
)
changes = st.dictionaries(st.sampled_from(["retention.ms", "x"]), st.none() | st.text(max_size=5), max_size=2)
registrations = st.builds(
    BrokerRegistration,
    id=broker_ids,
    epoch=st.integers(0, 2**62),
    rack=st.none() | st.text(max_size=4),
    endpoints=st.lists(st.builds(Endpoint, listener=names, host=names, port=st.integers(0, 65535)), max_size=2).map(
        tuple
    ),
    incarnation=st.none() | ids,
)
simple_deltas: st.SearchStrategy[Delta] = st.one_of(
    st.builds(ClusterIdSet, cluster_id=names),
    st.builds(ControllerChanged, controller_id=broker_ids),
    st.builds(BrokerRegistered, broker=registrations),
    st.builds(BrokerUnregistered, broker_id=broker_ids),
    st.builds(BrokerConfigChanged, name=st.sampled_from(["", "0"]), changes=changes),
    st.builds(ProducerIdsAllocated, next_producer_id=st.integers(1, 2**62)),
    st.builds(FeatureChanged, name=names, level=st.integers(0, 3)),
)


@st.composite
def histories(draw: st.DrawFn) -> list[list[Delta]]:
    """Versions whose deltas fit the image that they meet."""
    image = ClusterImage()
    history: list[list[Delta]] = []
    for version in range(1, draw(st.integers(1, 6)) + 1):
        deltas: list[Delta] = draw(st.lists(simple_deltas, max_size=2))
        deltas.append(draw(_topic_deltas(image)))
        history.append(deltas)
        image = image.apply(version, deltas)
    return history


def _topic_deltas(image: ClusterImage) -> st.SearchStrategy[Delta]:
    free = [UUID(int=number) for number in range(2, 12) if UUID(int=number) not in image.topic_names]
    fresh = [name for name in ("a", "b.c", "d_e", "päß", "line\nbreak") if name not in image.topics]
    partitions = st.lists(states, min_size=1, max_size=3).map(tuple)
    options: list[st.SearchStrategy[Delta]] = [st.builds(ClusterIdSet, cluster_id=names)]
    if fresh:
        topics = st.builds(
            TopicState,
            name=st.sampled_from(fresh),
            id=st.sampled_from(free),
            partitions=partitions,
            configs=st.dictionaries(names, st.text(max_size=5), max_size=2),
        )
        options.append(st.builds(TopicCreated, topic=topics))
    for topic in image.topics.values():
        options += [
            st.builds(TopicDeleted, topic_id=st.just(topic.id)),
            st.builds(TopicConfigChanged, topic_id=st.just(topic.id), changes=changes),
            st.builds(
                PartitionsAdded,
                topic_id=st.just(topic.id),
                first_index=st.just(len(topic.partitions)),
                partitions=partitions,
            ),
            st.builds(
                PartitionChanged,
                topic_id=st.just(topic.id),
                partition=st.integers(0, len(topic.partitions) - 1),
                state=states,
            ),
        ]
    if image.deleted_topics:
        options.append(st.builds(DeletedTopicsForgotten, topic_ids=st.just(tuple(image.deleted_topics))))
    return st.one_of(options)


def replayed(history: list[list[Delta]]) -> ClusterImage:
    image = ClusterImage()
    for version, deltas in enumerate(history, start=1):
        image = image.apply(version, deltas)
    return image


@given(histories())
def test_deltas_survive_their_json_form(history: list[list[Delta]]) -> None:
    for version, deltas in enumerate(history, start=1):
        encoded = encode_deltas(version, deltas)
        assert b"\n" not in encoded
        decoded = decode_deltas(encoded)
        assert (decoded.version, decoded.deltas) == (version, deltas)


@given(histories())
def test_an_image_as_deltas_builds_the_same_image(history: list[list[Delta]]) -> None:
    image = replayed(history)
    again = decode_deltas(encode_deltas(image.version, list(image_as_deltas(image)), snapshot=True))
    assert ClusterImage().apply(again.version, again.deltas) == image


@given(histories())
def test_applying_changes_no_earlier_image(history: list[list[Delta]]) -> None:
    image = ClusterImage()
    earlier: list[tuple[ClusterImage, bytes]] = []
    for version, deltas in enumerate(history, start=1):
        earlier.append((image, msgspec.json.encode(list(image_as_deltas(image)))))
        image = image.apply(version, deltas)
    for old, encoded in earlier:
        assert msgspec.json.encode(list(image_as_deltas(old))) == encoded


@given(histories())
def test_names_and_ids_always_agree(history: list[list[Delta]]) -> None:
    image = replayed(history)
    assert {topic.id: topic.name for topic in image.topics.values()} == image.topic_names
    for topic_id, name in image.topic_names.items():
        assert image.topic_by_id(topic_id) is image.topics[name]


def test_untouched_parts_are_shared() -> None:
    image = ClusterImage().apply(1, [BrokerRegistered(broker=BrokerRegistration(id=0, epoch=1))])
    later = image.apply(2, [ProducerIdsAllocated(next_producer_id=1000)])
    assert later.brokers is image.brokers
    assert later.topics is image.topics


def test_versions_only_grow() -> None:
    image = ClusterImage().apply(5, [])
    with pytest.raises(ValueError, match="does not follow 5"):
        image.apply(5, [])


def test_partitions_are_added_behind_the_last_one() -> None:
    state = PartitionState(replicas=(0,), isr=(0,), leader=0)
    topic = TopicState(name="t", id=UUID(int=9), partitions=(state,))
    image = ClusterImage().apply(1, [TopicCreated(topic=topic)])
    with pytest.raises(ValueError, match="has 1 partitions"):
        image.apply(2, [PartitionsAdded(topic_id=topic.id, first_index=2, partitions=(state,))])


def test_a_deleted_topic_is_remembered_until_forgotten() -> None:
    state = PartitionState(replicas=(0,), isr=(0,), leader=0)
    topic = TopicState(name="t", id=UUID(int=9), partitions=(state,))
    image = ClusterImage().apply(1, [TopicCreated(topic=topic)]).apply(2, [TopicDeleted(topic_id=topic.id)])
    assert image.topics == {}
    assert image.deleted_topics == {topic.id: "t"}
    assert image.apply(3, [DeletedTopicsForgotten(topic_ids=(topic.id,))]).deleted_topics == {}


@pytest.mark.parametrize(
    "data", [b'{"format":2,"version":1,"deltas":[]}', b'{"format":2,"version":1,"deltas":[{"type":"new"}]}']
)
def test_a_newer_format_is_named(data: bytes) -> None:
    with pytest.raises(UnknownFormatError, match="format 2"):
        decode_deltas(data)


@pytest.mark.parametrize("data", [b'{"format":1,"version":1,"deltas":[{"type":"no-such"}]}', b"nonsense", b"[]"])
def test_nonsense_is_a_value_error(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode_deltas(data)
