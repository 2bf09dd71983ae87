"""Fetch, versions 4 to 18: writing answers around records that stay where they are.

The answer is a list of parts in the order in which they are sent: bytes that were encoded here, and between them the
records as the log gave them, whatever that is, so that the session can send a range of a file without reading it. The
size in front counts both. Records that are not there have length zero, never null: librdkafka cannot read null.

Versions: 5 adds the log start offset, 7 the session and its error, 11 the preferred read replica, 12 is flexible and
adds diverging epoch, current leader and snapshot as tagged fields, 13 carries topic ids, 16 the address of leaders.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol
from uuid import UUID

from penstock.base.types import ZERO_UUID
from penstock.protocol.errors import EncodeError
from penstock.protocol.hot.produce_response import NodeEndpoint
from penstock.protocol.primitives import compact_string, legacy_string, nullable_compact_string, varint

_FLEXIBLE_FROM: Final = 12
_IDS_FROM: Final = 13
_ENDPOINTS_FROM: Final = 16
_FRAME_BYTES_MAX: Final = 0x7FFFFFFF


class RecordsSlot(Protocol):
    """Anything that will be that many bytes when it is sent."""

    @property
    def length(self) -> int: ...


class FetchPartitionResult(NamedTuple):
    partition: int
    error_code: int = 0
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    aborted_transactions: Sequence[tuple[int, int]] | None = None
    """(producer id, first offset); None for a reader of uncommitted records, who is told nothing, not even "none"."""
    records: RecordsSlot | bytes | None = None
    preferred_read_replica: int = -1
    diverging_epoch: tuple[int, int] | None = None
    """(epoch, its end offset)"""
    current_leader: tuple[int, int] | None = None
    """(leader id, leader epoch)"""
    snapshot_id: tuple[int, int] | None = None
    """(end offset, epoch)"""


TopicResults = tuple[str | None, UUID | None, Sequence[FetchPartitionResult]]
Part = bytes | RecordsSlot

_ONE: Final = struct.Struct(">iixihiB16sBihqqqBi")
# No tagged fields in the partition, the topic and the answer.
_ONE_TAIL: Final = b"\x00\x00\x00"
# Four bytes are left for the size.
_HEAD_12: Final = struct.Struct(">xxxxixihi")
_HEAD_7: Final = struct.Struct(">xxxxiihii")
_HEAD_4: Final = struct.Struct(">xxxxiii")
_INT32: Final = struct.Struct(">i")
_OFFSETS: Final = struct.Struct(">ihqqq")
_OFFSETS_4: Final = struct.Struct(">ihqq")
# The same with no aborted transactions and what follows them.
_PLAIN_12: Final = struct.Struct(">ihqqqBi")
_PLAIN_11: Final = struct.Struct(">ihqqqiii")
_EPOCH_AND_OFFSET: Final = struct.Struct(">iq")
_LEADER: Final = struct.Struct(">ii")
_SNAPSHOT: Final = struct.Struct(">qi")


def encode_fetch_response(
    version: int,
    correlation_id: int,
    session_id: int,
    error_code: int,
    throttle_ms: int,
    topics: Sequence[TopicResults],
    node_endpoints: Sequence[NodeEndpoint] = (),
) -> list[Part]:
    """The whole answer, size included."""
    try:
        if version >= _IDS_FROM and len(topics) == 1 and not node_endpoints and len(topics[0][2]) == 1:
            _, topic_id, (only,) = topics[0]
            if not (only[5] or only[8] or only[9] or only[10]) and only[6] is not None:
                return _encode_one(correlation_id, session_id, error_code, throttle_ms, topic_id, only)
        if version >= _FLEXIBLE_FROM:
            head = bytearray(_HEAD_12.pack(correlation_id, throttle_ms, error_code, session_id))
            return _encode_flexible(version, head, topics, node_endpoints)
        if version >= 7:
            fixed = _HEAD_7.pack(correlation_id, throttle_ms, error_code, session_id, len(topics))
        else:
            fixed = _HEAD_4.pack(correlation_id, throttle_ms, len(topics))
        return _encode_legacy(version, bytearray(fixed), topics)
    except (AttributeError, TypeError, struct.error) as error:
        raise EncodeError(f"an answer to Fetch v{version} cannot be written: {error}") from error


def _encode_one(
    correlation_id: int,
    session_id: int,
    error_code: int,
    throttle_ms: int,
    topic_id: UUID | None,
    only: FetchPartitionResult,
) -> list[Part]:
    """One partition with records and nothing to explain: two structs around them."""
    partition, partition_error, high_watermark, stable, start, aborted, records, replica = only[:8]
    assert records is not None
    length = len(records) if isinstance(records, bytes) else records.length
    records_length = varint(length + 1)
    size = _ONE.size + len(records_length) - 4 + length + len(_ONE_TAIL)
    if size > _FRAME_BYTES_MAX:
        raise EncodeError(f"an answer to Fetch of {size} bytes is larger than a frame can be")
    head = _ONE.pack(
        size, correlation_id, throttle_ms, error_code, session_id, 2, (topic_id or ZERO_UUID).bytes, 2,
        partition, partition_error, high_watermark, stable, start, 0 if aborted is None else 1, replica,
    )  # fmt: skip
    if not length:
        return [head + records_length + _ONE_TAIL]
    return [head + records_length, records, _ONE_TAIL]


def _encode_flexible(
    version: int, first: bytearray, topics: Sequence[TopicResults], node_endpoints: Sequence[NodeEndpoint]
) -> list[Part]:
    out = first
    later: list[Part] = []
    later_size = 0
    out += varint(len(topics) + 1)
    for name, topic_id, results in topics:
        out += (topic_id or ZERO_UUID).bytes if version >= _IDS_FROM else compact_string(name or "")
        out += varint(len(results) + 1)
        for result in results:
            aborted, records = result[5], result[6]
            if aborted:
                out += _OFFSETS.pack(*result[:5])
                out += _compact_aborted(aborted)
                out += _INT32.pack(result[7])
            else:
                out += _PLAIN_12.pack(*result[:5], 0 if aborted is None else 1, result[7])
            if records is None:
                out.append(1)
            else:
                length = len(records) if isinstance(records, bytes) else records.length
                out += varint(length + 1)
                if length:
                    if out is not first:
                        later.append(bytes(out))
                        later_size += len(out)
                    later.append(records)
                    later_size += length
                    out = bytearray()
            if result[8] or result[9] or result[10]:
                out += _partition_tags(result)
            else:
                out.append(0)
        out.append(0)
    out += _endpoint_tags(node_endpoints) if node_endpoints and version >= _ENDPOINTS_FROM else b"\x00"
    return _parts(first, out, later, later_size)


def _parts(first: bytearray, last: bytearray, later: list[Part], later_size: int) -> list[Part]:
    """Put the size in front, now that it is known."""
    if last is not first:
        later.append(bytes(last))
        later_size += len(last)
    size = len(first) - 4 + later_size
    if size > _FRAME_BYTES_MAX:
        raise EncodeError(f"an answer to Fetch of {size} bytes is larger than a frame can be")
    _INT32.pack_into(first, 0, size)
    return [bytes(first), *later]


def _compact_aborted(aborted: Sequence[tuple[int, int]]) -> bytes:
    return varint(len(aborted) + 1) + b"".join(struct.pack(">qqB", *one, 0) for one in aborted)


def _partition_tags(result: FetchPartitionResult) -> bytes:
    fields = []
    if result.diverging_epoch:
        fields.append(b"\x00\x0d" + _EPOCH_AND_OFFSET.pack(*result.diverging_epoch) + b"\x00")
    if result.current_leader:
        fields.append(b"\x01\x09" + _LEADER.pack(*result.current_leader) + b"\x00")
    if result.snapshot_id:
        fields.append(b"\x02\x0d" + _SNAPSHOT.pack(*result.snapshot_id) + b"\x00")
    return varint(len(fields)) + b"".join(fields)


def _endpoint_tags(node_endpoints: Sequence[NodeEndpoint]) -> bytes:
    value = varint(len(node_endpoints) + 1)
    for one in node_endpoints:
        value += _INT32.pack(one.node_id) + compact_string(one.host) + _INT32.pack(one.port)
        value += nullable_compact_string(one.rack) + b"\x00"
    return b"\x01\x00" + varint(len(value)) + value


def _encode_legacy(version: int, first: bytearray, topics: Sequence[TopicResults]) -> list[Part]:
    out = first
    later: list[Part] = []
    later_size = 0
    for name, _, results in topics:
        out += legacy_string(name or "")
        out += _INT32.pack(len(results))
        for result in results:
            aborted, records = result[5], result[6]
            length = 0
            if records is not None:
                length = len(records) if isinstance(records, bytes) else records.length
            if version >= 11 and not aborted:
                out += _PLAIN_11.pack(*result[:5], -1 if aborted is None else 0, result[7], length)
            else:
                out += _legacy_partition(version, result)
                out += _INT32.pack(length)
            if records is not None and length:
                if out is not first:
                    later.append(bytes(out))
                    later_size += len(out)
                later.append(records)
                later_size += length
                out = bytearray()
    if out is not first and not out:
        # The records were the last thing.
        return _parts(first, first, later, later_size)
    return _parts(first, out, later, later_size)


def _legacy_partition(version: int, result: FetchPartitionResult) -> bytes:
    """Everything of a partition but its records."""
    fixed = _OFFSETS.pack(*result[:5]) if version >= 5 else _OFFSETS_4.pack(*result[:4])
    aborted = result.aborted_transactions
    if aborted is None:
        fixed += b"\xff\xff\xff\xff"
    else:
        fixed += _INT32.pack(len(aborted)) + b"".join(struct.pack(">qq", *one) for one in aborted)
    if version >= 11:
        fixed += _INT32.pack(result.preferred_read_replica)
    return fixed
