"""Produce, versions 3 to 13: writing answers.

An answer for one partition without explanations, which is what most producers get most of the time, is packed by one
or two structs; an answer that explains an error goes through the generated message.

Versions: 5 adds the log start offset, 8 record errors, 9 is flexible, 10 adds the current leader and its address, 13
carries topic ids instead of names.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple
from uuid import UUID

from penstock.base.types import ZERO_UUID
from penstock.protocol.apis import ApiKey
from penstock.protocol.errors import EncodeError
from penstock.protocol.messages import produce as messages
from penstock.protocol.primitives import compact_string, legacy_string, varint
from penstock.protocol.requests import encode_response

_FLEXIBLE_FROM: Final = 9
_IDS_FROM: Final = 13


class NodeEndpoint(NamedTuple):
    node_id: int
    host: str
    port: int
    rack: str | None = None


class ProducePartitionResult(NamedTuple):
    partition: int
    error_code: int = 0
    base_offset: int = -1
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    record_errors: Sequence[tuple[int, str | None]] = ()
    """(index in the batch, what is wrong with that record)"""
    error_message: str | None = None
    current_leader: tuple[int, int] | None = None
    """(leader id, leader epoch), for a client that asked the wrong broker"""


TopicResults = tuple[str | None, UUID | None, Sequence[ProducePartitionResult]]

_INT32: Final = struct.Struct(">i")
# Size, correlation id, no header tags, one topic ... one partition with everything that follows it.
_ONE_HEAD: Final = struct.Struct(">iiBBB")
_ONE_TAIL: Final = struct.Struct(">BihqqqBBBBiB")
_ONE_BY_ID: Final = struct.Struct(">iiBB16sBihqqqBBBBiB")
# The sizes they announce: all but the four bytes of the size itself, and the name.
_ONE_SIZE: Final = _ONE_HEAD.size + _ONE_TAIL.size - 4
_ONE_BY_ID_SIZE: Final = _ONE_BY_ID.size - 4
_ONE_HEAD_LEGACY: Final = struct.Struct(">iiih")
_ONE_TAIL_8: Final = struct.Struct(">iihqqqihi")
_ONE_TAIL_5: Final = struct.Struct(">iihqqqi")
_ONE_TAIL_3: Final = struct.Struct(">iihqqi")
# What stands in front of the topics: room for the size, the correlation id, and the header's tags once flexible.
_HEAD: Final = struct.Struct(">xxxxi")
_HEAD_FLEXIBLE: Final = struct.Struct(">xxxxix")
_PARTITION: Final = struct.Struct(">ihqqqBBB")
_PARTITION_8: Final = struct.Struct(">ihqqqih")
_PARTITION_5: Final = struct.Struct(">ihqqq")
_PARTITION_3: Final = struct.Struct(">ihqq")
_THROTTLE: Final = struct.Struct(">i")
_THROTTLE_FLEXIBLE: Final = struct.Struct(">iB")


def encode_produce_response(
    version: int,
    correlation_id: int,
    topics: Sequence[TopicResults],
    throttle_ms: int = 0,
    node_endpoints: Sequence[NodeEndpoint] = (),
) -> bytes:
    """The whole answer, size included."""
    if not node_endpoints and len(topics) == 1 and len(topics[0][2]) == 1:
        name, topic_id, (only,) = topics[0]
        if not only[5] and only[6] is None and only[7] is None:
            return encode_produce_one(
                version, correlation_id, name, topic_id, only[0], only[2], only[3], only[4], throttle_ms, only[1]
            )
    try:
        if node_endpoints or any(
            result.record_errors or result.error_message is not None or result.current_leader
            for _, _, results in topics
            for result in results
        ):
            return _encode_in_full(version, correlation_id, topics, throttle_ms, node_endpoints)
        if version >= _FLEXIBLE_FROM:
            return _encode_plain_flexible(version, correlation_id, topics, throttle_ms)
        return _encode_plain_legacy(version, correlation_id, topics, throttle_ms)
    except (AttributeError, TypeError, struct.error) as error:
        raise EncodeError(f"an answer to Produce v{version} cannot be written: {error}") from error


def encode_produce_one(
    version: int,
    correlation_id: int,
    name: str | None,
    topic_id: UUID | None,
    partition: int,
    base_offset: int,
    log_append_time_ms: int,
    log_start_offset: int,
    throttle_ms: int = 0,
    error_code: int = 0,
) -> bytes:
    """The whole answer for one partition that has nothing to explain."""
    try:
        if version >= _IDS_FROM:
            id_bytes = (topic_id or ZERO_UUID).bytes
            return _ONE_BY_ID.pack(
                _ONE_BY_ID_SIZE, correlation_id, 0, 2, id_bytes, 2, partition, error_code, base_offset,
                log_append_time_ms, log_start_offset, 1, 0, 0, 0, throttle_ms, 0,
            )  # fmt: skip
        encoded = name.encode() if name else b""
        size = len(encoded)
        if version >= _FLEXIBLE_FROM:
            if size > 126:
                return _encode_plain_flexible(
                    version,
                    correlation_id,
                    [(name, None, [ProducePartitionResult(
                        partition, error_code, base_offset, log_append_time_ms, log_start_offset
                    )])],
                    throttle_ms,
                )  # fmt: skip
            return b"%b%b%b" % (
                _ONE_HEAD.pack(_ONE_SIZE + size, correlation_id, 0, 2, size + 1),
                encoded,
                _ONE_TAIL.pack(
                    2,
                    partition,
                    error_code,
                    base_offset,
                    log_append_time_ms,
                    log_start_offset,
                    1,
                    0,
                    0,
                    0,
                    throttle_ms,
                    0,
                ),
            )
        if version >= 8:
            tail = _ONE_TAIL_8.pack(
                1, partition, error_code, base_offset, log_append_time_ms, log_start_offset, 0, -1, throttle_ms
            )
        elif version >= 5:
            tail = _ONE_TAIL_5.pack(
                1, partition, error_code, base_offset, log_append_time_ms, log_start_offset, throttle_ms
            )
        else:
            tail = _ONE_TAIL_3.pack(1, partition, error_code, base_offset, log_append_time_ms, throttle_ms)
        return b"%b%b%b" % (_ONE_HEAD_LEGACY.pack(10 + size + len(tail), correlation_id, 1, size), encoded, tail)
    except struct.error as error:
        raise EncodeError(f"an answer to Produce v{version} cannot be written: {error}") from error


def _encode_plain_flexible(
    version: int, correlation_id: int, topics: Sequence[TopicResults], throttle_ms: int
) -> bytes:
    out = bytearray(_HEAD_FLEXIBLE.pack(correlation_id))
    out += varint(len(topics) + 1)
    pack = _PARTITION.pack
    for name, topic_id, results in topics:
        if version >= _IDS_FROM:
            out += (topic_id or ZERO_UUID).bytes
        else:
            out += compact_string(name or "")
        out += varint(len(results) + 1)
        for result in results:
            out += pack(result[0], result[1], result[2], result[3], result[4], 1, 0, 0)
        out.append(0)
    out += _THROTTLE_FLEXIBLE.pack(throttle_ms, 0)
    return _with_size(out)


def _encode_plain_legacy(version: int, correlation_id: int, topics: Sequence[TopicResults], throttle_ms: int) -> bytes:
    out = bytearray(_HEAD.pack(correlation_id))
    out += _INT32.pack(len(topics))
    for name, _, results in topics:
        out += legacy_string(name or "")
        out += _INT32.pack(len(results))
        for result in results:
            if version >= 8:
                out += _PARTITION_8.pack(*result[:5], 0, -1)
            elif version >= 5:
                out += _PARTITION_5.pack(*result[:5])
            else:
                out += _PARTITION_3.pack(*result[:4])
    out += _THROTTLE.pack(throttle_ms)
    return _with_size(out)


def _with_size(out: bytearray) -> bytes:
    _INT32.pack_into(out, 0, len(out) - 4)
    return bytes(out)


def _encode_in_full(
    version: int,
    correlation_id: int,
    topics: Sequence[TopicResults],
    throttle_ms: int,
    node_endpoints: Sequence[NodeEndpoint],
) -> bytes:
    """Through the generated message: answers that carry explanations are rare."""
    answer = messages.ProduceResponse(throttle_time_ms=throttle_ms)
    for name, topic_id, results in topics:
        answer.responses.append(
            messages.TopicProduceResponse(
                name=name or "",
                topic_id=topic_id or ZERO_UUID,
                partition_responses=[_partition_message(result) for result in results],
            )
        )
    answer.node_endpoints = [
        messages.NodeEndpoint(node_id=one.node_id, host=one.host, port=one.port, rack=one.rack)
        for one in node_endpoints
    ]
    return encode_response(ApiKey.PRODUCE, version, correlation_id, answer)


def _partition_message(result: ProducePartitionResult) -> messages.PartitionProduceResponse:
    leader_id, leader_epoch = result.current_leader or (-1, -1)
    return messages.PartitionProduceResponse(
        index=result.partition,
        error_code=result.error_code,
        base_offset=result.base_offset,
        log_append_time_ms=result.log_append_time_ms,
        log_start_offset=result.log_start_offset,
        record_errors=[
            messages.BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=text)
            for index, text in result.record_errors
        ],
        error_message=result.error_message,
        current_leader=messages.LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=leader_epoch),
    )
