"""Answers to Fetch, read without copying, against what the generated codec and the server's encoder write."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.client.consumer.fetching.response import decode_fetch_answer
from penstock.protocol.apis import ApiKey
from penstock.protocol.errors import DecodeError
from penstock.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from penstock.protocol.requests import encode_response

VERSIONS = range(4, 19)
_int64 = st.integers(-1, 2**63 - 1)
_partitions = st.builds(
    PartitionData,
    partition_index=st.integers(0, 9),
    error_code=st.integers(0, 100),
    high_watermark=_int64,
    last_stable_offset=_int64,
    log_start_offset=_int64,
    aborted_transactions=st.none()
    | st.lists(st.builds(AbortedTransaction, producer_id=_int64, first_offset=_int64), max_size=3),
    preferred_read_replica=st.integers(-1, 5),
    records=st.none() | st.binary(max_size=200),
    current_leader=st.just(LeaderIdAndEpoch()) | st.builds(LeaderIdAndEpoch, leader_id=st.integers(0, 5)),
    diverging_epoch=st.just(EpochEndOffset()) | st.builds(EpochEndOffset, epoch=st.integers(0, 5)),
)
_responses = st.builds(
    FetchResponse,
    throttle_time_ms=st.integers(0, 5),
    error_code=st.integers(0, 100),
    session_id=st.integers(0, 2**31 - 1),
    responses=st.lists(
        st.builds(
            FetchableTopicResponse,
            topic=st.text("abcé-", min_size=1, max_size=200),
            topic_id=st.integers(1, 2**127).map(lambda value: UUID(int=value)),
            partitions=st.lists(_partitions, max_size=3),
        ),
        max_size=3,
    ),
    node_endpoints=st.just([])
    | st.lists(
        st.builds(
            NodeEndpoint,
            node_id=st.integers(0, 5),
            host=st.just("h"),
            port=st.integers(1, 9),
            rack=st.none() | st.just("r"),
        ),
        min_size=1,
        max_size=2,
    ),
)


@given(_responses, st.sampled_from(VERSIONS), st.booleans())
def test_reads_what_was_written(response: FetchResponse, version: int, as_view: bool) -> None:
    frame: bytes | memoryview = encode_response(ApiKey.FETCH, version, 5, response)[4:]
    frame = memoryview(frame) if as_view else frame
    answer = decode_fetch_answer(frame, version)
    assert answer.throttle_time_ms == response.throttle_time_ms
    if version >= 7:
        assert (answer.error_code, answer.session_id) == (response.error_code, response.session_id)
    expected = [(topic, partition) for topic in response.responses for partition in topic.partitions]
    assert len(answer.partitions) == len(expected)
    for found, (topic, wanted) in zip(answer.partitions, expected, strict=True):
        assert (found.topic_id == topic.topic_id) if version >= 13 else (found.topic == topic.topic)
        assert (found.partition, found.error_code) == (wanted.partition_index, wanted.error_code)
        assert (found.high_watermark, found.last_stable_offset) == (wanted.high_watermark, wanted.last_stable_offset)
        assert found.log_start_offset == (wanted.log_start_offset if version >= 5 else -1)
        assert found.aborted == [(each.producer_id, each.first_offset) for each in wanted.aborted_transactions or []]
        assert found.preferred_replica == (wanted.preferred_read_replica if version >= 11 else -1)
        assert bytes(frame[found.start : found.end]) == (wanted.records or b"")
        leader = (wanted.current_leader.leader_id, wanted.current_leader.leader_epoch)
        assert found.leader == (leader if version >= 12 else (-1, -1))
    if version >= 16:
        assert [tuple(each) for each in answer.endpoints] == [
            (each.node_id, each.host, each.port, each.rack) for each in response.node_endpoints
        ]


@given(_responses, st.sampled_from(VERSIONS), st.data())
def test_a_cut_off_answer_is_refused(response: FetchResponse, version: int, data: st.DataObject) -> None:
    frame = encode_response(ApiKey.FETCH, version, 5, response)[4:]
    cut = data.draw(st.integers(4, len(frame) - 1))
    with pytest.raises(DecodeError):
        decode_fetch_answer(frame[:cut], version)


@given(st.binary(max_size=200), st.sampled_from(VERSIONS))
def test_noise_never_does_more_than_be_refused(noise: bytes, version: int) -> None:
    try:
        decode_fetch_answer(b"\0\0\0\1" + noise, version)
    except DecodeError:
        pass
