"""Fetch, versions 4 to 18: reading requests. Writing the answers is in `fetch_response` and offered here too.

Versions: 5 adds the log start offset, 7 sessions, 9 the current leader epoch, 11 the rack, 12 is flexible and adds the
last fetched epoch, 13 carries topic ids instead of names, 15 moves the replica id into a tagged field with its epoch.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple
from uuid import UUID

from penstock.protocol.errors import DecodeError
from penstock.protocol.hot.fetch_response import FetchPartitionResult, RecordsSlot, encode_fetch_response
from penstock.protocol.hot.produce_response import NodeEndpoint
from penstock.protocol.primitives import Buffer, id_of, read_string_length, read_varint, skip_tags

__all__ = [
    "HIGHEST_VERSION",
    "LOWEST_VERSION",
    "FetchPartition",
    "FetchPartitionResult",
    "FetchRequest",
    "NodeEndpoint",
    "RecordsSlot",
    "decode_fetch",
    "encode_fetch_response",
]

LOWEST_VERSION: Final = 4
HIGHEST_VERSION: Final = 18
_FLEXIBLE_FROM: Final = 12
_IDS_FROM: Final = 13
_REPLICA_STATE_FROM: Final = 15


class FetchPartition(NamedTuple):
    partition: int
    current_leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    log_start_offset: int
    partition_max_bytes: int


FetchTopic = tuple[str | None, UUID | None, list[FetchPartition]]
"""(name, id, partitions): the name up to version 12, the id from version 13 on, the other is None."""

ForgottenTopic = tuple[str | None, UUID | None, list[int]]


class FetchRequest(NamedTuple):
    replica_id: int
    """-1 for a consumer."""
    replica_epoch: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int
    session_id: int
    session_epoch: int
    topics: list[FetchTopic]
    forgotten_topics: list[ForgottenTopic]
    rack_id: str
    cluster_id: str | None


_NO_TOPIC: Final = struct.Struct(">iiibiiBBBB")
_ONE_PARTITION: Final = struct.Struct(">iiibiiB16sBiiqiqiBBBBB")
_FIXED_15: Final = struct.Struct(">iiibii")
_FIXED_7: Final = struct.Struct(">iiiibii")
_FIXED_4: Final = struct.Struct(">iiiib")
_PARTITION_12: Final = struct.Struct(">iiqiqiB")
_PARTITION_9: Final = struct.Struct(">iiqqi")
_PARTITION_5: Final = struct.Struct(">iqqi")
_PARTITION_4: Final = struct.Struct(">iqi")
_REPLICA_STATE: Final = struct.Struct(">iq")
_INT16: Final = struct.Struct(">h")
_INT32: Final = struct.Struct(">i")


def decode_fetch(version: int, frame: Buffer, position: int) -> FetchRequest:
    """Read the request body that starts at `position`. Nothing in the result refers to the frame's memory."""
    try:
        # No records in here, so a copy is small, and bytes are faster to read from than a view.
        frame = bytes(frame)
        if version >= _REPLICA_STATE_FROM:
            return _decode_short(frame, position) or _decode_flexible(version, frame, position)
        if version >= _FLEXIBLE_FROM:
            return _decode_flexible(version, frame, position)
        return _decode_legacy(version, frame, position)
    except (IndexError, UnicodeDecodeError, struct.error) as error:
        raise DecodeError(f"Fetch v{version} cannot be read: {error}") from error


def _decode_short(frame: bytes, position: int) -> FetchRequest | None:
    """What consumers send all day: in a session nothing at all, or one partition. None: it is something else."""
    size = len(frame) - position
    topics: list[FetchTopic]
    if size == _NO_TOPIC.size:
        *fixed, topic_count, forgotten, rack, tags = _NO_TOPIC.unpack_from(frame, position)
        if topic_count != 1 or forgotten != 1 or rack != 1 or tags:
            return None
        topics = []
    elif size == _ONE_PARTITION.size:
        fields = _ONE_PARTITION.unpack_from(frame, position)
        # Counts of topics and partitions, no tags, nothing forgotten, no rack, no tags.
        if fields[6] != 2 or fields[8] != 2 or fields[15:] != (0, 0, 1, 1, 0):
            return None
        fixed = list(fields[:6])
        topics = [(None, id_of(fields[7]), [tuple.__new__(FetchPartition, fields[9:15])])]
    else:
        return None
    return tuple.__new__(FetchRequest, (-1, -1, *fixed, topics, [], "", None))


def _decode_flexible(version: int, frame: bytes, position: int) -> FetchRequest:
    end = len(frame)
    replica_id = -1
    fixed: Sequence[int]
    if version >= _REPLICA_STATE_FROM:
        fixed = _FIXED_15.unpack_from(frame, position)
        position += 21
    else:
        replica_id, *fixed = _FIXED_7.unpack_from(frame, position)
        position += 25
    topics: list[FetchTopic] = []
    count, position = _compact_count(frame, position, end)
    for _ in range(count):
        name, topic_id, position = _compact_topic(version, frame, position, end)
        partitions, position = _compact_partitions(frame, position, end)
        topics.append((name, topic_id, partitions))
    forgotten: list[ForgottenTopic] = []
    count, position = _compact_count(frame, position, end)
    for _ in range(count):
        name, topic_id, position = _compact_topic(version, frame, position, end)
        indexes, position = _compact_indexes(frame, position, end)
        forgotten.append((name, topic_id, indexes))
    rack_id, position = _compact_string(frame, position, end)
    replica_epoch, cluster_id = -1, None
    if frame[position]:
        tagged_id, replica_epoch, cluster_id = _read_tags(version, frame, position, end)
        if version >= _REPLICA_STATE_FROM:
            replica_id = tagged_id
    return tuple.__new__(FetchRequest, (replica_id, replica_epoch, *fixed, topics, forgotten, rack_id, cluster_id))


def _compact_count(frame: bytes, position: int, end: int) -> tuple[int, int]:
    count = frame[position]
    position += 1
    if count > 127:
        count, position = read_varint(frame, position, count)
    if not 0 < count <= end - position + 1:
        raise DecodeError("an array of Fetch is null or has more elements than bytes are left")
    return count - 1, position


def _compact_string(frame: bytes, position: int, end: int) -> tuple[str, int]:
    length = frame[position]
    position += 1
    if length > 127:
        length, position = read_string_length(frame, position, length)
    string_end = position + length - 1
    if not length or string_end > end:
        raise DecodeError("a string of Fetch is null or ends beyond the request")
    return str(frame[position:string_end], "utf-8"), string_end


def _compact_topic(version: int, frame: bytes, position: int, end: int) -> tuple[str | None, UUID | None, int]:
    if version < _IDS_FROM:
        name, position = _compact_string(frame, position, end)
        return name, None, position
    if position + 16 > end:
        raise DecodeError("a topic id of Fetch is cut short")
    return None, id_of(frame[position : position + 16]), position + 16


def _compact_partitions(frame: bytes, position: int, end: int) -> tuple[list[FetchPartition], int]:
    count, position = _compact_count(frame, position, end)
    partitions: list[FetchPartition] = []
    unpack = _PARTITION_12.unpack_from
    for _ in range(count):
        fields = unpack(frame, position)
        position += 33
        partitions.append(tuple.__new__(FetchPartition, fields[:6]))
        if fields[6]:
            # The directory and the high watermark of a follower; nothing here asks for them.
            position = skip_tags(frame, position - 1, end)
    return partitions, skip_tags(frame, position, end) if frame[position] else position + 1


def _compact_indexes(frame: bytes, position: int, end: int) -> tuple[list[int], int]:
    count, position = _compact_count(frame, position, end)
    if count * 4 > end - position:
        raise DecodeError("the forgotten partitions of Fetch are cut short")
    indexes = list(struct.unpack_from(f">{count}i", frame, position))
    return indexes, skip_tags(frame, position + count * 4, end)


def _read_tags(version: int, frame: bytes, position: int, end: int) -> tuple[int, int, str | None]:
    """(replica id, replica epoch, cluster id) from the request's tagged fields."""
    replica_id, replica_epoch, cluster_id = -1, -1, None
    count = frame[position]
    position += 1
    if count > 127:
        count, position = read_varint(frame, position, count)
    for _ in range(count):
        tag, position = _varint(frame, position)
        size, position = _varint(frame, position)
        tag_end = position + size
        if tag_end > end:
            raise DecodeError("a tagged field of Fetch ends beyond the request")
        if tag == 0:
            cluster_id, position = _cluster_id(frame, position, tag_end)
        elif tag == 1 and version >= _REPLICA_STATE_FROM:
            replica_id, replica_epoch = _REPLICA_STATE.unpack_from(frame, position)
            position = skip_tags(frame, position + 12, tag_end)
        else:
            position = tag_end
        if position != tag_end:
            raise DecodeError(f"tagged field {tag} of Fetch has another size than it says")
    return replica_id, replica_epoch, cluster_id


def _cluster_id(frame: bytes, position: int, end: int) -> tuple[str | None, int]:
    length, after = _varint(frame, position)
    return _compact_string(frame, position, end) if length else (None, after)


def _varint(frame: bytes, position: int) -> tuple[int, int]:
    value = frame[position]
    position += 1
    return read_varint(frame, position, value) if value > 127 else (value, position)


def _decode_legacy(version: int, frame: bytes, position: int) -> FetchRequest:
    end = len(frame)
    if version >= 7:
        replica_id, *fixed = _FIXED_7.unpack_from(frame, position)
        position += 25
    else:
        replica_id, *fixed = _FIXED_4.unpack_from(frame, position)
        fixed += (0, -1)
        position += 17
    topics: list[FetchTopic] = []
    count, position = _legacy_count(frame, position, end)
    for _ in range(count):
        name, position = _legacy_text(frame, position, end)
        partitions, position = _legacy_partitions(version, frame, position, end)
        topics.append((name, None, partitions))
    forgotten: list[ForgottenTopic] = []
    rack_id = ""
    if version >= 7:
        forgotten, position = _legacy_forgotten(frame, position, end)
    if version >= 11:
        rack_id, position = _legacy_text(frame, position, end)
    return tuple.__new__(FetchRequest, (replica_id, -1, *fixed, topics, forgotten, rack_id, None))


def _legacy_count(frame: bytes, position: int, end: int) -> tuple[int, int]:
    (count,) = _INT32.unpack_from(frame, position)
    position += 4
    if not 0 <= count <= end - position:
        raise DecodeError("an array of Fetch is null or has more elements than bytes are left")
    return count, position


def _legacy_text(frame: bytes, position: int, end: int) -> tuple[str, int]:
    (length,) = _INT16.unpack_from(frame, position)
    position += 2
    string_end = position + length
    if length < 0 or string_end > end:
        raise DecodeError("a string of Fetch is null or ends beyond the request")
    return str(frame[position:string_end], "utf-8"), string_end


def _legacy_partitions(version: int, frame: bytes, position: int, end: int) -> tuple[list[FetchPartition], int]:
    count, position = _legacy_count(frame, position, end)
    partitions: list[FetchPartition] = []
    for _ in range(count):
        epoch, start = -1, -1
        if version >= 9:
            index, epoch, offset, start, max_bytes = _PARTITION_9.unpack_from(frame, position)
            position += 28
        elif version >= 5:
            index, offset, start, max_bytes = _PARTITION_5.unpack_from(frame, position)
            position += 24
        else:
            index, offset, max_bytes = _PARTITION_4.unpack_from(frame, position)
            position += 16
        partitions.append(FetchPartition(index, epoch, offset, -1, start, max_bytes))
    return partitions, position


def _legacy_forgotten(frame: bytes, position: int, end: int) -> tuple[list[ForgottenTopic], int]:
    forgotten: list[ForgottenTopic] = []
    topic_count, position = _legacy_count(frame, position, end)
    for _ in range(topic_count):
        name, position = _legacy_text(frame, position, end)
        count, position = _legacy_count(frame, position, end)
        if count * 4 > end - position:
            raise DecodeError("the forgotten partitions of Fetch are cut short")
        forgotten.append((name, None, list(struct.unpack_from(f">{count}i", frame, position))))
        position += count * 4
    return forgotten, position
