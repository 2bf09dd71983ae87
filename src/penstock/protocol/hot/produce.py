"""Produce, versions 3 to 13: reading requests. Writing the answers is in `produce_response` and offered here too.

Records are slices of the frame, not copies: they are valid as long as the frame is, and writable when it is. Most
requests hold one partition; they are read with a few wide structs, all others field by field.

Versions: 9 is flexible, 13 carries topic ids instead of names.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple
from uuid import UUID

from penstock.protocol.errors import DecodeError
from penstock.protocol.hot.produce_response import (
    NodeEndpoint,
    ProducePartitionResult,
    encode_produce_one,
    encode_produce_response,
)
from penstock.protocol.primitives import id_of, read_string_length, read_varint, skip_tags

__all__ = [
    "HIGHEST_VERSION",
    "LOWEST_VERSION",
    "NodeEndpoint",
    "ProducePartitionResult",
    "ProduceRequest",
    "decode_produce",
    "encode_produce_one",
    "encode_produce_response",
]

LOWEST_VERSION: Final = 3
HIGHEST_VERSION: Final = 13
_FLEXIBLE_FROM: Final = 9
_IDS_FROM: Final = 13

TopicRecords = tuple[str | None, UUID | None, list[tuple[int, memoryview | None]]]
"""(name, id, [(partition index, records)]): the name up to version 12, the id from version 13 on, the other is None."""


class ProduceRequest(NamedTuple):
    transactional_id: str | None
    acks: int
    timeout_ms: int
    topics: list[TopicRecords]


_ONE_TOPIC: Final = struct.Struct(">BhiBB")
_ONE_TOPIC_BY_ID: Final = struct.Struct(">BhiB16sBiBB")
_ONE_TOPIC_LEGACY: Final = struct.Struct(">hhiih")
_ONE_PARTITION: Final = struct.Struct(">BiBB")
_ONE_PARTITION_LEGACY: Final = struct.Struct(">iii")
_NO_TAGS: Final = struct.Struct(">BH")
_LEGACY_FIXED: Final = struct.Struct(">hii")
_LEGACY_PARTITION: Final = struct.Struct(">ii")
_FIXED: Final = struct.Struct(">hi")
_INT16: Final = struct.Struct(">h")
_INT32: Final = struct.Struct(">i")


def decode_produce(version: int, frame: memoryview, position: int) -> ProduceRequest:
    """Read the request body that starts at `position`."""
    try:
        if version >= _FLEXIBLE_FROM:
            return _decode_one_flexible(version, frame, position) or _decode_flexible(version, frame, position)
        return _decode_one_legacy(frame, position) or _decode_legacy(frame, position)
    except (IndexError, UnicodeDecodeError, struct.error) as error:
        raise DecodeError(f"Produce v{version} cannot be read: {error}") from error


def _decode_one_flexible(version: int, frame: memoryview, position: int) -> ProduceRequest | None:
    """One topic, one partition, no transaction, no tags: few reads of several fields each. None: it is not that."""
    end = len(frame)
    if position + 31 > end:
        return None
    if version >= _IDS_FROM:
        fields = _ONE_TOPIC_BY_ID.unpack_from(frame, position)
        transaction, acks, timeout_ms, topics, raw_id, partitions, index, low, high = fields
        name_end = position + 24
    else:
        transaction, acks, timeout_ms, topics, length = _ONE_TOPIC.unpack_from(frame, position)
        name_end = position + 8 + length
        if not 0 < length < 128 or name_end + 7 > end:
            return None
        partitions, index, low, high = _ONE_PARTITION.unpack_from(frame, name_end)
    # Before anything that may raise: what was read so far may have been something else.
    if transaction or topics != 2 or partitions != 2:
        return None
    start = name_end + 6
    if low > 127:
        if high < 128:
            low = low & 0x7F | high << 7
            start += 1
        else:
            low, start = read_varint(frame, start, low)
    records_end = start + low - 1
    # The three tag sections of partition, topic and request are the last bytes.
    if not low or records_end + 3 != end or _NO_TAGS.unpack_from(frame, records_end) != (0, 0):
        return None
    records: list[tuple[int, memoryview | None]] = [(index, frame[start:records_end])]
    topic: TopicRecords
    if version >= _IDS_FROM:
        topic = (None, id_of(raw_id), records)
    else:
        topic = (str(frame[position + 9 : name_end], "utf-8"), None, records)
    return tuple.__new__(ProduceRequest, (None, acks, timeout_ms, [topic]))


def _decode_one_legacy(frame: memoryview, position: int) -> ProduceRequest | None:
    """The same before version 9."""
    end = len(frame)
    if position + 26 > end:
        return None
    transaction, acks, timeout_ms, topics, length = _ONE_TOPIC_LEGACY.unpack_from(frame, position)
    name_end = position + 14 + length
    if transaction != -1 or topics != 1 or length < 0 or name_end + 12 > end:
        return None
    partitions, index, size = _ONE_PARTITION_LEGACY.unpack_from(frame, name_end)
    start = name_end + 12
    if partitions != 1 or size < 0 or start + size != end:
        return None
    name = str(frame[position + 14 : name_end], "utf-8")
    topic: TopicRecords = (name, None, [(index, frame[start:])])
    return tuple.__new__(ProduceRequest, (None, acks, timeout_ms, [topic]))


def _decode_flexible(version: int, frame: memoryview, position: int) -> ProduceRequest:
    end = len(frame)
    length = frame[position]
    position += 1
    if length > 127:
        length, position = read_string_length(frame, position, length)
    transactional_id = None
    if length:
        transactional_id, position = _text(frame, position, position + length - 1, end)
    acks, timeout_ms = _FIXED.unpack_from(frame, position)
    count = frame[position + 6]
    position += 7
    if count > 127:
        count, position = read_varint(frame, position, count)
    if not 0 < count <= end - position + 1:
        raise DecodeError("the topics of Produce are null or more than bytes are left")
    topics: list[TopicRecords] = []
    for _ in range(count - 1):
        name: str | None = None
        topic_id: UUID | None = None
        if version >= _IDS_FROM:
            if position + 16 > end:
                raise DecodeError("a topic id of Produce is cut short")
            topic_id = id_of(bytes(frame[position : position + 16]))
            position += 16
        else:
            length = frame[position]
            name, position = _compact_string(frame, position + 1, length, end)
        partitions, position = _compact_partitions(frame, position, end)
        topics.append((name, topic_id, partitions))
    skip_tags(frame, position, end)
    return ProduceRequest(transactional_id, acks, timeout_ms, topics)


def _compact_string(frame: memoryview, position: int, length: int, end: int) -> tuple[str, int]:
    if length > 127:
        length, position = read_string_length(frame, position, length)
    return _text(frame, position, position + length - 1, end)


def _text(frame: memoryview, start: int, stop: int, end: int) -> tuple[str, int]:
    """The string between two positions, and the second of them."""
    if stop < start or stop > end:
        raise DecodeError("a string of Produce is null or ends beyond the request")
    return str(frame[start:stop], "utf-8"), stop


def _compact_partitions(frame: memoryview, position: int, end: int) -> tuple[list[tuple[int, memoryview | None]], int]:
    count = frame[position]
    position += 1
    if count > 127:
        count, position = read_varint(frame, position, count)
    if not 0 < count <= end - position + 1:
        raise DecodeError("the partitions of Produce are null or more than bytes are left")
    partitions: list[tuple[int, memoryview | None]] = []
    for _ in range(count - 1):
        (index,) = _INT32.unpack_from(frame, position)
        length = frame[position + 4]
        position += 5
        if length > 127:
            length, position = read_varint(frame, position, length)
        if length:
            records_end = position + length - 1
            if records_end > end:
                raise DecodeError(f"the records of partition {index} end beyond the request")
            partitions.append((index, frame[position:records_end]))
            position = records_end
        else:
            partitions.append((index, None))
        # Nearly always one zero byte: these structures have no tagged fields yet.
        position = skip_tags(frame, position, end) if frame[position] else position + 1
    return partitions, skip_tags(frame, position, end) if frame[position] else position + 1


def _decode_legacy(frame: memoryview, position: int) -> ProduceRequest:
    end = len(frame)
    (length,) = _INT16.unpack_from(frame, position)
    position += 2
    transactional_id = None
    if length >= 0:
        transactional_id, position = _text(frame, position, position + length, end)
    acks, timeout_ms, count = _LEGACY_FIXED.unpack_from(frame, position)
    position += 10
    if not 0 <= count <= end - position:
        raise DecodeError("the topics of Produce are null or more than bytes are left")
    topics: list[TopicRecords] = []
    for _ in range(count):
        (length,) = _INT16.unpack_from(frame, position)
        name, position = _text(frame, position + 2, position + 2 + length, end)
        partitions, position = _legacy_partitions(frame, position, end)
        topics.append((name, None, partitions))
    return ProduceRequest(transactional_id, acks, timeout_ms, topics)


def _legacy_partitions(frame: memoryview, position: int, end: int) -> tuple[list[tuple[int, memoryview | None]], int]:
    (count,) = _INT32.unpack_from(frame, position)
    position += 4
    if not 0 <= count <= end - position:
        raise DecodeError("the partitions of Produce are null or more than bytes are left")
    partitions: list[tuple[int, memoryview | None]] = []
    for _ in range(count):
        index, length = _LEGACY_PARTITION.unpack_from(frame, position)
        position += 8
        if length < 0:
            partitions.append((index, None))
            continue
        records_end = position + length
        if records_end > end:
            raise DecodeError(f"the records of partition {index} end beyond the request")
        partitions.append((index, frame[position:records_end]))
        position = records_end
    return partitions, position
