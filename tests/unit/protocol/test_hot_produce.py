"""The hand-written Produce codec says what the generated message says."""

from __future__ import annotations

import struct
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.base.types import ZERO_UUID
from penstock.protocol import codec
from penstock.protocol.apis import APIS, ApiKey
from penstock.protocol.errors import DecodeError, EncodeError
from penstock.protocol.hot.produce import (
    HIGHEST_VERSION,
    LOWEST_VERSION,
    NodeEndpoint,
    ProducePartitionResult,
    ProduceRequest,
    decode_produce,
    encode_produce_one,
    encode_produce_response,
)
from penstock.protocol.messages import produce as messages
from penstock.protocol.requests import decode_response
from tests.unit.protocol import oracle

API = APIS[ApiKey.PRODUCE]
VERSIONS = range(LOWEST_VERSION, HIGHEST_VERSION + 1)
TOPIC_ID = UUID(int=0x1234)
MANY = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


def plain(request: ProduceRequest) -> tuple[Any, ...]:
    topics = [
        (name, topic_id, [(index, None if records is None else bytes(records)) for index, records in partitions])
        for name, topic_id, partitions in request.topics
    ]
    return request.transactional_id, request.acks, request.timeout_ms, topics


def expected(request: messages.ProduceRequest, version: int) -> tuple[Any, ...]:
    topics = [
        (
            None if version >= 13 else topic.name,
            topic.topic_id if version >= 13 else None,
            [(one.index, one.records) for one in topic.partition_data],
        )
        for topic in request.topic_data
    ]
    return request.transactional_id, request.acks, request.timeout_ms, topics


def one_partition(version: int, records: bytes | None, name: str = "orders") -> bytes:
    topic = messages.TopicProduceData(
        name=name, topic_id=TOPIC_ID, partition_data=[messages.PartitionProduceData(index=3, records=records)]
    )
    request = messages.ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic])
    return codec.encode(request, version, version >= 9)


def outcome(decode: Any, body: bytes) -> Any:
    try:
        return decode(memoryview(body))
    except DecodeError:
        return "refused"


def generated(version: int, body: bytes) -> Any:
    return outcome(lambda b: expected(codec.decode(messages.ProduceRequest, version, version >= 9, b), version), body)


def hot(version: int, body: bytes) -> Any:
    return outcome(lambda frame: plain(decode_produce(version, frame, 0)), body)


def requests(version: int) -> st.SearchStrategy[messages.ProduceRequest]:
    return oracle.messages(messages.ProduceRequest, version, oracle.kio_class(API, version, "request"))


@pytest.mark.parametrize("version", VERSIONS)
@MANY
@given(data=st.data())
def test_requests(version: int, data: Any) -> None:
    request = data.draw(requests(version))
    body = codec.encode(request, version, version >= 9)
    frame = b"header" + body
    assert plain(decode_produce(version, memoryview(frame), 6)) == expected(request, version)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("size", [0, 1, 126, 127, 128, 16382, 16383, 16384, 3_000_000])
@pytest.mark.parametrize("name", ["o", "orders", "o" * 126, "o" * 127, "ö" * 200])
def test_one_partition_with_records_of_many_sizes(version: int, size: int, name: str) -> None:
    body = one_partition(version, b"r" * size, name)
    frame = bytearray(b"??" + body)
    request = decode_produce(version, memoryview(frame), 2)
    assert plain(request) == generated(version, body)
    records = request.topics[0][2][0][1]
    assert records is not None
    if size:
        # A view of the frame's own memory, which the log patches before it writes.
        records[0] = 0x52
        assert frame.count(b"R") == 1


@pytest.mark.parametrize("version", VERSIONS)
def test_unusual_requests(version: int) -> None:
    topic = messages.TopicProduceData(name="t", topic_id=TOPIC_ID)
    for topics in ([], [topic], [topic, topic]):
        for transactional_id in (None, "", "tx"):
            request = messages.ProduceRequest(transactional_id=transactional_id, acks=1, topic_data=topics)
            body = codec.encode(request, version, version >= 9)
            assert hot(version, body) == expected(
                codec.decode(messages.ProduceRequest, version, version >= 9, body), version
            )
    assert hot(version, one_partition(version, None)) == generated(version, one_partition(version, None))


@pytest.mark.parametrize("version", range(9, HIGHEST_VERSION + 1))
def test_unknown_tags_of_a_request_are_skipped(version: int) -> None:
    body = one_partition(version, b"records")
    assert body.endswith(b"records\x00\x00\x00")
    tagged = body[:-3] + b"\x01\x07\x02xy" * 3
    assert hot(version, tagged) == hot(version, body)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_cut_is_refused_and_every_lie_is_judged_alike(version: int) -> None:
    body = one_partition(version, b"0123456789")
    for end in range(len(body)):
        assert hot(version, body[:end]) == "refused"
    for position in range(len(body)):
        for lie in (b"\xff", b"\x80", b"\x00", b"\x7f\xff", b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x0f"):
            wrong = body[:position] + lie + body[position + len(lie) :]
            assert hot(version, wrong) == generated(version, wrong)


def test_a_null_transactional_id_in_a_longer_varint() -> None:
    """Zero in two bytes is still zero; found by fuzzing."""
    body = bytes.fromhex("8000 0700 00000109 01 00")
    assert hot(9, body) == generated(9, body) == (None, 0x700, 0x109, [])


RESULTS = st.builds(
    ProducePartitionResult,
    partition=st.integers(0, 2**31 - 1),
    error_code=st.sampled_from([0, 3, 87]),
    base_offset=st.integers(-1, 2**63 - 1),
    log_append_time_ms=st.integers(-1, 2**62),
    log_start_offset=st.integers(-1, 2**63 - 1),
    record_errors=st.just(()),
    error_message=st.none(),
    current_leader=st.none(),
)
EXPLAINED = st.builds(
    ProducePartitionResult,
    partition=st.integers(0, 9),
    error_code=st.just(87),
    base_offset=st.just(-1),
    log_append_time_ms=st.just(-1),
    log_start_offset=st.just(-1),
    record_errors=st.lists(st.tuples(st.integers(0, 9), st.none() | st.text(max_size=5)), max_size=2),
    error_message=st.none() | st.text(max_size=5),
    current_leader=st.none() | st.tuples(st.integers(0, 9), st.integers(0, 9)),
)
NAMES = st.text(max_size=5) | st.just("n" * 130)


def answer(
    version: int, topics: list[Any], throttle_ms: int, endpoints: list[NodeEndpoint]
) -> messages.ProduceResponse:
    """The same answer as a generated message, without what the version cannot carry."""
    responses = [
        messages.TopicProduceResponse(
            name=name if version < 13 else "",
            topic_id=topic_id if version >= 13 else ZERO_UUID,
            partition_responses=[
                messages.PartitionProduceResponse(
                    index=one.partition,
                    error_code=one.error_code,
                    base_offset=one.base_offset,
                    log_append_time_ms=one.log_append_time_ms,
                    log_start_offset=one.log_start_offset if version >= 5 else -1,
                    record_errors=[
                        messages.BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=text)
                        for index, text in one.record_errors
                        if version >= 8
                    ],
                    error_message=one.error_message if version >= 8 else None,
                    current_leader=messages.LeaderIdAndEpoch(
                        leader_id=one.current_leader[0], leader_epoch=one.current_leader[1]
                    )
                    if one.current_leader and version >= 10
                    else messages.LeaderIdAndEpoch(),
                )
                for one in results
            ],
        )
        for name, topic_id, results in topics
    ]
    nodes = [messages.NodeEndpoint(node_id=n.node_id, host=n.host, port=n.port, rack=n.rack) for n in endpoints]
    return messages.ProduceResponse(
        responses=responses, throttle_time_ms=throttle_ms, node_endpoints=nodes if version >= 10 else []
    )


@pytest.mark.parametrize("version", VERSIONS)
@MANY
@given(
    topics=st.lists(st.tuples(NAMES, st.uuids(), st.lists(RESULTS | EXPLAINED, max_size=3)), max_size=3)
    | st.lists(st.tuples(NAMES, st.uuids(), st.lists(RESULTS, min_size=1, max_size=2)), min_size=1, max_size=2),
    throttle_ms=st.integers(0, 1000),
    endpoints=st.just([]) | st.just([NodeEndpoint(1, "host", 9092), NodeEndpoint(2, "other", 9093, "rack")]),
)
def test_answers(version: int, topics: list[Any], throttle_ms: int, endpoints: list[NodeEndpoint]) -> None:
    frame = encode_produce_response(version, 77, topics, throttle_ms, endpoints)
    assert struct.unpack_from(">i", frame) == (len(frame) - 4,)
    assert decode_response(ApiKey.PRODUCE, version, frame[4:]) == (77, answer(version, topics, throttle_ms, endpoints))


@pytest.mark.parametrize("version", VERSIONS)
def test_one_partition_answer(version: int) -> None:
    for name in ("orders", "o" * 126, "o" * 127):
        result = ProducePartitionResult(4, 0, 2**40, 17, 5)
        frame = encode_produce_response(version, 1, [(name, TOPIC_ID, [result])], 9)
        assert frame == encode_produce_one(version, 1, name, TOPIC_ID, 4, 2**40, 17, 5, 9)
        assert decode_response(ApiKey.PRODUCE, version, frame[4:])[1] == answer(
            version, [(name, TOPIC_ID, [result])], 9, []
        )


def test_answers_that_do_not_fit() -> None:
    with pytest.raises(EncodeError):
        encode_produce_one(9, 1, "t", None, 2**31, 0, 0, 0)
    with pytest.raises(EncodeError):
        encode_produce_response(7, 1, [("t" * 40_000, None, [ProducePartitionResult(0)] * 2)])
