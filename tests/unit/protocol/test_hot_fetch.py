"""The hand-written Fetch codec says what the generated message says, and leaves records out of the bytes."""

from __future__ import annotations

import struct
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.base.types import ZERO_UUID
from penstock.protocol import codec
from penstock.protocol.apis import APIS, ApiKey
from penstock.protocol.errors import DecodeError, EncodeError
from penstock.protocol.hot.fetch import (
    HIGHEST_VERSION,
    LOWEST_VERSION,
    FetchPartition,
    FetchPartitionResult,
    FetchRequest,
    NodeEndpoint,
    decode_fetch,
    encode_fetch_response,
)
from penstock.protocol.messages import fetch as messages
from penstock.protocol.requests import decode_response
from tests.unit.protocol import oracle

API = APIS[ApiKey.FETCH]
VERSIONS = range(LOWEST_VERSION, HIGHEST_VERSION + 1)
TOPIC_ID = UUID(int=0x1234)
MANY = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


class Slot(NamedTuple):
    """Stands for a range of a file."""

    data: bytes

    @property
    def length(self) -> int:
        return len(self.data)


def expected(request: messages.FetchRequest, version: int) -> FetchRequest:
    def name_and_id(topic: Any) -> tuple[str | None, UUID | None]:
        return (None, topic.topic_id) if version >= 13 else (topic.topic, None)

    state = request.replica_state
    return FetchRequest(
        replica_id=state.replica_id if version >= 15 else request.replica_id,
        replica_epoch=state.replica_epoch,
        max_wait_ms=request.max_wait_ms,
        min_bytes=request.min_bytes,
        max_bytes=request.max_bytes,
        isolation_level=request.isolation_level,
        session_id=request.session_id,
        session_epoch=request.session_epoch,
        topics=[
            (
                *name_and_id(topic),
                [
                    FetchPartition(
                        one.partition,
                        one.current_leader_epoch,
                        one.fetch_offset,
                        one.last_fetched_epoch,
                        one.log_start_offset,
                        one.partition_max_bytes,
                    )
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ],
        forgotten_topics=[(*name_and_id(topic), topic.partitions) for topic in request.forgotten_topics_data],
        rack_id=request.rack_id,
        cluster_id=request.cluster_id,
    )


def outcome(decode: Any, body: bytes) -> Any:
    try:
        return decode(memoryview(body))
    except DecodeError:
        return "refused"


def generated(version: int, body: bytes) -> Any:
    return outcome(lambda b: expected(codec.decode(messages.FetchRequest, version, version >= 12, b), version), body)


def hot(version: int, body: bytes) -> Any:
    return outcome(lambda frame: decode_fetch(version, frame, 0), body)


def sample(version: int) -> bytes:
    topic = messages.FetchTopic(
        topic="orders",
        topic_id=TOPIC_ID,
        partitions=[messages.FetchPartition(partition=3, fetch_offset=9, partition_max_bytes=1 << 20)],
    )
    request = messages.FetchRequest(
        cluster_id="c" if version >= 12 else None,
        replica_state=messages.ReplicaState(replica_id=5, replica_epoch=6),
        max_wait_ms=500,
        topics=[topic],
        forgotten_topics_data=[messages.ForgottenTopic(topic="t", topic_id=TOPIC_ID, partitions=[1, 2])],
        rack_id="r",
    )
    return codec.encode(request, version, version >= 12)


@pytest.mark.parametrize("version", VERSIONS)
@MANY
@given(data=st.data())
def test_requests(version: int, data: Any) -> None:
    request = data.draw(oracle.messages(messages.FetchRequest, version, oracle.kio_class(API, version, "request")))
    frame = b"header" + codec.encode(request, version, version >= 12)
    assert decode_fetch(version, memoryview(frame), 6) == expected(request, version)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_cut_is_refused_and_every_lie_is_judged_alike(version: int) -> None:
    body = sample(version)
    assert hot(version, body) == generated(version, body)
    for end in range(len(body)):
        assert hot(version, body[:end]) == "refused"
    for position in range(len(body)):
        for lie in (b"\xff", b"\x80", b"\x00", b"\x02", b"\x7f\xff", b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x0f"):
            wrong = body[:position] + lie + body[position + len(lie) :]
            assert hot(version, wrong) == generated(version, wrong)


def send(parts: list[Any]) -> bytes:
    """What the session puts on the wire."""
    return b"".join(part.data if isinstance(part, Slot) else part for part in parts)


OFFSETS = st.integers(-1, 2**63 - 1)
PAIRS = st.tuples(st.integers(0, 2**31 - 1), st.integers(0, 2**31 - 1))
RESULTS = st.builds(
    FetchPartitionResult,
    partition=st.integers(0, 2**31 - 1),
    error_code=st.sampled_from([0, 1, 3, 74]),
    high_watermark=OFFSETS,
    last_stable_offset=OFFSETS,
    log_start_offset=OFFSETS,
    aborted_transactions=st.none() | st.lists(st.tuples(OFFSETS, OFFSETS), max_size=2),
    records=st.none() | st.binary(max_size=300) | st.binary(max_size=300).map(Slot),
    preferred_read_replica=st.just(-1) | st.integers(0, 9),
    diverging_epoch=st.none() | PAIRS,
    current_leader=st.none() | PAIRS,
    snapshot_id=st.none() | PAIRS,
)


def partition_message(version: int, one: FetchPartitionResult) -> messages.PartitionData:
    result = messages.PartitionData(
        partition_index=one.partition,
        error_code=one.error_code,
        high_watermark=one.high_watermark,
        last_stable_offset=one.last_stable_offset,
        aborted_transactions=None
        if one.aborted_transactions is None
        else [
            messages.AbortedTransaction(producer_id=producer_id, first_offset=offset)
            for producer_id, offset in one.aborted_transactions
        ],
        records=one.records.data if isinstance(one.records, Slot) else one.records or b"",  # type: ignore[arg-type]
    )
    if version >= 5:
        result.log_start_offset = one.log_start_offset
    if version >= 11:
        result.preferred_read_replica = one.preferred_read_replica
    if version >= 12:
        if one.diverging_epoch:
            epoch, end_offset = one.diverging_epoch
            result.diverging_epoch = messages.EpochEndOffset(epoch=epoch, end_offset=end_offset)
        if one.current_leader:
            leader_id, leader_epoch = one.current_leader
            result.current_leader = messages.LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=leader_epoch)
        if one.snapshot_id:
            end_offset, epoch = one.snapshot_id
            result.snapshot_id = messages.SnapshotId(end_offset=end_offset, epoch=epoch)
    return result


@pytest.mark.parametrize("version", VERSIONS)
@MANY
@given(
    topics=st.lists(st.tuples(st.text(max_size=5), st.uuids(), st.lists(RESULTS, max_size=3)), max_size=3),
    endpoints=st.just([]) | st.just([NodeEndpoint(1, "host", 9092), NodeEndpoint(2, "other", 9093, "rack")]),
)
def test_answers(version: int, topics: list[Any], endpoints: list[NodeEndpoint]) -> None:
    parts = encode_fetch_response(version, 5, 44, 0, 3, topics, endpoints)
    slots = [one.records for _, _, results in topics for one in results if one.records and one.records[0:]]
    assert [part for part in parts if isinstance(part, Slot)] == [s for s in slots if isinstance(s, Slot) and s.data]
    assert all(part for part in parts if not isinstance(part, Slot))
    frame = send(parts)
    assert struct.unpack_from(">i", frame) == (len(frame) - 4,)
    answer = messages.FetchResponse(
        throttle_time_ms=3,
        session_id=44 if version >= 7 else 0,
        responses=[
            messages.FetchableTopicResponse(
                topic=name if version < 13 else "",
                topic_id=topic_id if version >= 13 else ZERO_UUID,
                partitions=[partition_message(version, one) for one in results],
            )
            for name, topic_id, results in topics
        ],
    )
    if version >= 16:
        answer.node_endpoints = [
            messages.NodeEndpoint(node_id=n.node_id, host=n.host, port=n.port, rack=n.rack) for n in endpoints
        ]
    assert decode_response(ApiKey.FETCH, version, frame[4:]) == (5, answer)


@pytest.mark.parametrize("version", VERSIONS)
def test_no_records_are_empty_and_not_null(version: int) -> None:
    for records in (None, b"", Slot(b"")):
        (only,) = encode_fetch_response(
            version, 1, 0, 0, 0, [("t", TOPIC_ID, [FetchPartitionResult(0, records=records)])]
        )
        read = decode_response(ApiKey.FETCH, version, only[4:])[1]  # type: ignore[index]
        assert read.responses[0].partitions[0].records == b""


@pytest.mark.parametrize("version", VERSIONS)
def test_aborted_transactions_are_null_or_empty_as_given(version: int) -> None:
    cases: tuple[list[tuple[int, int]] | None, ...] = (None, [])
    for aborted in cases:
        results = [FetchPartitionResult(0, aborted_transactions=aborted)]
        (only,) = encode_fetch_response(version, 1, 0, 0, 0, [("t", TOPIC_ID, results)])
        read = decode_response(ApiKey.FETCH, version, only[4:])[1]  # type: ignore[index]
        assert read.responses[0].partitions[0].aborted_transactions == aborted


def test_the_size_counts_what_is_sent_later() -> None:
    class Huge:
        length = 1_500_000_000

    parts = encode_fetch_response(13, 1, 0, 0, 0, [(None, TOPIC_ID, [FetchPartitionResult(0, records=Huge())])])
    first = parts[0]
    assert isinstance(first, bytes)
    assert struct.unpack_from(">i", first)[0] > 1_500_000_000
    with pytest.raises(EncodeError, match="larger than a frame"):
        encode_fetch_response(13, 1, 0, 0, 0, [(None, TOPIC_ID, [FetchPartitionResult(0, records=Huge())] * 2)])


def test_answers_that_do_not_fit() -> None:
    with pytest.raises(EncodeError):
        encode_fetch_response(13, 1, 2**31, 0, 0, [])
