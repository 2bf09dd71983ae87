"""An answer to Fetch, versions 4 to 18, read without copying records: a partition's are a range of the frame.

Versions: 5 adds the log start offset, 7 the session and its error, 11 the preferred read replica, 12 is flexible and
adds diverging epoch and current leader as tagged fields, 13 carries topic ids, 16 the addresses of leaders (KIP-951).
"""

from __future__ import annotations

import struct
from typing import Any, Final, NamedTuple
from uuid import UUID

from penstock.base.types import ZERO_UUID
from penstock.network.in_flight import Frame
from penstock.protocol.errors import DecodeError
from penstock.protocol.primitives import id_of, read_string_length, read_varint, skip_tags

_FLEXIBLE_FROM: Final = 12
_IDS_FROM: Final = 13
_SESSION_FROM: Final = 7
_PREFERRED_FROM: Final = 11
_HEAD_7: Final = struct.Struct(">ihi")
_INT16: Final = struct.Struct(">h")
_INT32: Final = struct.Struct(">i")
_OFFSETS_5: Final = struct.Struct(">ihqqq")
_OFFSETS_4: Final = struct.Struct(">ihqq")
_ABORTED: Final = struct.Struct(">qq")
_LEADER: Final = struct.Struct(">ii")
_NO_LEADER: Final = (-1, -1)
_LEADER_TAG: Final = 1


class FetchedPartition(NamedTuple):
    topic: str
    """Up to version 12; empty from 13 on, where there is `topic_id`."""
    topic_id: UUID
    partition: int
    error_code: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted: list[tuple[int, int]]
    """(producer id, first offset) of transactions that were aborted."""
    preferred_replica: int
    start: int
    """Where in the frame the records begin, and where they end."""
    end: int
    leader: tuple[int, int]
    """(id, epoch) of the leader to ask instead; -1 when the answer does not say."""


class LeaderEndpoint(NamedTuple):
    """The address of a leader that `FetchedPartition.leader` names."""

    node_id: int
    host: str
    port: int
    rack: str | None


class FetchAnswer(NamedTuple):
    frame: Frame
    throttle_time_ms: int
    error_code: int
    session_id: int
    partitions: list[FetchedPartition]
    endpoints: list[LeaderEndpoint]


def decode_fetch_answer(frame: Frame, version: int) -> FetchAnswer:
    """The whole answer. `DecodeError` when it is none."""
    try:
        return _Reader(frame, version).answer()
    except (IndexError, UnicodeDecodeError, struct.error) as error:
        raise DecodeError(f"the answer to Fetch v{version} cannot be read: {error}") from error


class _Reader:
    """A position in the frame that moves on."""

    __slots__ = ("end", "flexible", "frame", "position", "version")

    def __init__(self, frame: Frame, version: int) -> None:
        self.frame = frame
        self.version = version
        self.flexible = version >= _FLEXIBLE_FROM
        self.end = len(frame)
        self.position = 4

    def answer(self) -> FetchAnswer:
        if self.flexible:
            self.position = skip_tags(self.frame, 4, self.end)
        error_code = session_id = 0
        if self.version >= _SESSION_FROM:
            throttle_ms, error_code, session_id = self.fixed(_HEAD_7)
        else:
            (throttle_ms,) = self.fixed(_INT32)
        partitions: list[FetchedPartition] = []
        for _ in range(self.count()):
            self.topic(partitions)
        endpoints = self.endpoints() if self.flexible else []
        if self.position > self.end:
            raise DecodeError("the answer to Fetch is cut off")
        return FetchAnswer(self.frame, throttle_ms, error_code, session_id, partitions, endpoints)

    def topic(self, partitions: list[FetchedPartition]) -> None:
        name, topic_id = "", ZERO_UUID
        if self.version >= _IDS_FROM:
            topic_id = id_of(bytes(self.raw(16)))
        else:
            name = self.string() or ""
        partitions.extend([self.partition(name, topic_id) for _ in range(self.count())])
        if self.flexible:
            self.position = skip_tags(self.frame, self.position, self.end)

    def partition(self, name: str, topic_id: UUID) -> FetchedPartition:
        if self.version > 4:
            index, error, high_watermark, stable, log_start = self.fixed(_OFFSETS_5)
        else:
            index, error, high_watermark, stable = self.fixed(_OFFSETS_4)
            log_start = -1
        aborted = self.aborted()
        preferred = self.fixed(_INT32)[0] if self.version >= _PREFERRED_FROM else -1
        size = max(self.length(), 0)
        start = self.position
        self.position = end = start + size
        if end > self.end:
            raise DecodeError(f"records of {size} bytes end beyond the answer")
        leader = self.leader_tag() if self.flexible else _NO_LEADER
        return FetchedPartition(
            name, topic_id, index, error, high_watermark, stable, log_start, aborted, preferred, start, end, leader
        )

    def aborted(self) -> list[tuple[int, int]]:
        aborted: list[tuple[int, int]] = []
        for _ in range(self.count()):
            aborted.append(self.fixed(_ABORTED))
            if self.flexible:
                self.position = skip_tags(self.frame, self.position, self.end)
        return aborted

    def leader_tag(self) -> tuple[int, int]:
        leader = _NO_LEADER
        for tag, position in self.tags():
            if tag == _LEADER_TAG:
                leader = _LEADER.unpack_from(self.frame, position)
        return leader

    def endpoints(self) -> list[LeaderEndpoint]:
        found: list[LeaderEndpoint] = []
        for tag, position in self.tags():
            if tag == 0:
                behind, self.position = self.position, position
                found = [self.endpoint() for _ in range(self.count())]
                self.position = behind
        return found

    def endpoint(self) -> LeaderEndpoint:
        (node_id,) = self.fixed(_INT32)
        host = self.string() or ""
        (port,) = self.fixed(_INT32)
        rack = self.string()
        self.position = skip_tags(self.frame, self.position, self.end)
        return LeaderEndpoint(node_id, host, port, rack)

    # Primitives.

    def fixed(self, layout: struct.Struct) -> tuple[Any, ...]:
        values = layout.unpack_from(self.frame, self.position)
        self.position += layout.size
        return values

    def raw(self, size: int) -> Frame:
        start = self.position
        self.position += size
        if self.position > self.end:
            raise DecodeError(f"{size} bytes end beyond the answer")
        return self.frame[start : self.position]

    def varint(self) -> int:
        value = self.frame[self.position]
        self.position += 1
        if value > 127:
            value, self.position = read_varint(self.frame, self.position, value)
        return value

    def length(self) -> int:
        """Of an array or of bytes; -1 is null."""
        return self.varint() - 1 if self.flexible else int(self.fixed(_INT32)[0])

    def count(self) -> int:
        count = self.length()
        if count > self.end - self.position:
            raise DecodeError(f"an array of {count} elements has more of them than bytes are left")
        return count

    def string(self) -> str | None:
        if not self.flexible:
            (size,) = self.fixed(_INT16)
        else:
            first = self.frame[self.position]
            self.position += 1
            size = first
            if first > 127:
                size, self.position = read_string_length(self.frame, self.position, first)
            size -= 1
        return str(self.raw(size), "utf-8") if size >= 0 else None

    def tags(self) -> list[tuple[int, int]]:
        """(tag, position of its value) of each tagged field; moves behind all of them."""
        found = []
        for _ in range(self.varint()):
            tag = self.varint()
            size = self.varint()
            found.append((tag, self.position))
            self.raw(size)
        return found
