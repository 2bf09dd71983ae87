"""What the compiled codec promises beyond agreeing with kio: defaults, tags, nulls, refusals."""

from __future__ import annotations

import struct
from uuid import UUID

import pytest

from penstock.base.errors import ErrorCode
from penstock.base.types import ZERO_UUID
from penstock.protocol import codec
from penstock.protocol.errors import DecodeError, EncodeError
from penstock.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from penstock.protocol.messages.create_topics import CreatableTopicResult, CreateTopicsResponse
from penstock.protocol.messages.describe_topic_partitions import Cursor, DescribeTopicPartitionsRequest
from penstock.protocol.messages.fetch import FetchRequest
from penstock.protocol.messages.heartbeat import HeartbeatRequest
from penstock.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponseTopic
from penstock.protocol.schema import Message, message, wire


def test_messages_are_made_from_what_matters() -> None:
    result = CreatableTopicResult(name="a", error_code=ErrorCode.TOPIC_ALREADY_EXISTS)
    assert result.topic_id == ZERO_UUID
    assert result.num_partitions == -1
    assert result.error_message is None
    assert result.configs == []
    answer = CreateTopicsResponse(topics=[result])
    read = codec.decode(CreateTopicsResponse, 7, True, codec.encode(answer, 7, True))
    assert read == answer
    assert read.topics[0].error_code == 36


def test_two_messages_do_not_share_their_lists() -> None:
    assert CreateTopicsResponse().topics is not CreateTopicsResponse().topics
    one, other = (codec.decode(FetchRequest, 4, False, codec.encode(FetchRequest(), 4, False)) for _ in range(2))
    assert one.forgotten_topics_data is not other.forgotten_topics_data
    assert one.replica_state is not other.replica_state


def test_a_field_that_the_version_lacks_is_left_out() -> None:
    result = CreatableTopicResult(name="a", topic_id=UUID(int=7), num_partitions=3)
    answer = CreateTopicsResponse(topics=[result], throttle_time_ms=5)
    read = codec.decode(CreateTopicsResponse, 2, False, codec.encode(answer, 2, False))
    assert read.throttle_time_ms == 5
    assert read.topics[0].topic_id == ZERO_UUID
    assert read.topics[0].num_partitions == -1


def test_unknown_tags_are_skipped() -> None:
    body = codec.encode(ApiVersionsRequest(client_software_name="x", client_software_version="1"), 3, True)
    assert body.endswith(b"\x00")
    tagged = body[:-1] + b"\x02" + b"\x05\x03abc" + b"\xff\x01\x81\x01" + b"z" * 129
    read = codec.decode(ApiVersionsRequest, 3, True, tagged)
    assert read.client_software_name == "x"


def test_a_known_tag_with_the_wrong_size_is_refused() -> None:
    body = codec.encode(ApiVersionsResponse(), 3, True)
    assert body.endswith(b"\x00")
    with pytest.raises(DecodeError, match="another size"):
        codec.decode(ApiVersionsResponse, 3, True, body[:-1] + b"\x01\x01\x09" + b"\x00" * 9)


def test_bytes_behind_the_message_are_ignored() -> None:
    body = codec.encode(HeartbeatRequest(group_id="g"), 0, False)
    assert codec.decode(HeartbeatRequest, 0, False, body + b"more").group_id == "g"


def test_a_reader_stops_at_the_given_end() -> None:
    body = codec.encode(HeartbeatRequest(group_id="g", generation_id=3, member_id="m"), 0, False)
    read = codec.reader(HeartbeatRequest, 0, False)
    assert read(b"??" + body, 2, 2 + len(body)) == (HeartbeatRequest(group_id="g", generation_id=3, member_id="m"), 12)
    for end in range(len(body)):
        with pytest.raises(DecodeError):
            read(body, 0, end)


def test_null_where_it_may_not_be() -> None:
    with pytest.raises(DecodeError, match="group_id is null"):
        codec.decode(HeartbeatRequest, 0, False, b"\xff\xff" + bytes(10))
    with pytest.raises(DecodeError, match="group_id is null"):
        codec.decode(HeartbeatRequest, 4, True, bytes(20))
    with pytest.raises(DecodeError, match="topics is null"):
        codec.decode(MetadataRequest, 0, False, b"\xff\xff\xff\xff")
    assert codec.decode(MetadataRequest, 1, False, b"\xff\xff\xff\xff").topics is None


def test_writing_null_where_it_may_not_be() -> None:
    topic = MetadataRequestTopic(name=None)
    assert codec.decode(MetadataRequestTopic, 10, True, codec.encode(topic, 10, True)).name is None
    with pytest.raises(EncodeError, match="MetadataRequestTopic v9"):
        codec.encode(topic, 9, True)
    with pytest.raises(EncodeError):
        codec.encode(MetadataResponseTopic(name=None), 0, False)


def test_nullable_structures() -> None:
    for cursor in (None, Cursor(topic_name="t", partition_index=4)):
        request = DescribeTopicPartitionsRequest(cursor=cursor)
        assert codec.decode(DescribeTopicPartitionsRequest, 0, True, codec.encode(request, 0, True)) == request
    assert DescribeTopicPartitionsRequest().cursor is None


@pytest.mark.parametrize("value", [2**31, -(2**31) - 1, "1", None])
def test_numbers_that_do_not_fit(value: object) -> None:
    with pytest.raises(EncodeError):
        codec.encode(HeartbeatRequest(generation_id=value), 0, False)  # type: ignore[arg-type]


def test_strings_beyond_the_limit() -> None:
    longest = "x" * 32767
    for version, flexible in ((0, False), (4, True)):
        body = codec.encode(HeartbeatRequest(group_id=longest), version, flexible)
        assert codec.decode(HeartbeatRequest, version, flexible, body).group_id == longest
        with pytest.raises(EncodeError):
            codec.encode(HeartbeatRequest(group_id=longest + "x"), version, flexible)
    with pytest.raises(DecodeError, match="longer than"):
        codec.decode(HeartbeatRequest, 4, True, b"\x81\x80\x02" + b"x" * 40000)


def test_text_that_is_not_utf8() -> None:
    with pytest.raises(DecodeError, match="HeartbeatRequest v0"):
        codec.decode(HeartbeatRequest, 0, False, b"\x00\x02\xc3\x28" + bytes(10))
    with pytest.raises(EncodeError):
        codec.encode(HeartbeatRequest(group_id="\ud800"), 0, False)


@pytest.mark.parametrize("count", [1, 2**16, 2**31 - 1])
def test_a_count_above_the_bytes_left_is_refused_at_once(count: int) -> None:
    with pytest.raises(DecodeError, match="more elements than bytes"):
        codec.decode(MetadataRequest, 0, False, struct.pack(">i", count))


def test_a_varint_has_at_most_five_bytes() -> None:
    with pytest.raises(DecodeError, match="five bytes"):
        codec.decode(MetadataRequest, 9, True, b"\xff\xff\xff\xff\xff\x01")
    with pytest.raises(DecodeError, match="more elements than bytes"):
        codec.decode(MetadataRequest, 9, True, b"\xff\xff\xff\xff\x0f" + bytes(20))


def test_equality_and_text() -> None:
    one = HeartbeatRequest(group_id="g")
    assert one == HeartbeatRequest(group_id="g")
    assert one != HeartbeatRequest(group_id="h")
    assert one != "g"
    assert repr(one).startswith("HeartbeatRequest(group_id='g', generation_id=0")


@message
class Inner(Message):
    number: int = wire("int16", default=0)


@message
class Outer(Message):
    plain: Inner | None = wire("Inner", nullable="0-", default=None)
    absent_unless_said: Inner | None = wire("Inner", nullable="0-", tag=0, default=None)
    there_unless_said: Inner | None = wire("Inner", nullable="0-", tag=200, factory=Inner)


@pytest.mark.parametrize(
    ("value", "data"),
    [
        # A byte 255 or 1 before a structure in the body; in a tagged field an unsigned varint, 0 or 1, which counts in
        # the field's size. A structure ends with its own section of tags, which is empty here.
        (Outer(), b"\xff" b"\x00"),
        (Outer(plain=Inner(number=5)), b"\x01\x00\x05\x00" b"\x00"),
        (Outer(absent_unless_said=Inner(number=5)), b"\xff" b"\x01" b"\x00\x04" b"\x01\x00\x05\x00"),
        (Outer(there_unless_said=None), b"\xff" b"\x01" b"\xc8\x01\x01" b"\x00"),
        (
            Outer(absent_unless_said=Inner(), there_unless_said=Inner(number=6)),
            b"\xff" b"\x02" b"\x00\x04" b"\x01\x00\x00\x00" b"\xc8\x01\x04" b"\x01\x00\x06\x00",
        ),
    ],
)  # fmt: skip
def test_structures_that_may_be_null(value: Outer, data: bytes) -> None:
    assert codec.encode(value, 0, True) == data
    assert codec.decode(Outer, 0, True, data) == value


def test_a_null_that_says_its_tagged_field_has_another_size() -> None:
    with pytest.raises(DecodeError, match="another size"):
        codec.decode(Outer, 0, True, b"\xff\x01\x00\x02\x00\x00")
