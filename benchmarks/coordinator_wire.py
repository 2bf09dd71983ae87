"""Requests to the coordinators, written by hand in versions that are not flexible, and what matters of the answers."""

from __future__ import annotations

import struct
from typing import NamedTuple

import crc32c

from benchmarks.wire import record_batch, request, text

OFFSET_COMMIT, FIND_COORDINATOR, JOIN_GROUP, HEARTBEAT, LEAVE_GROUP, SYNC_GROUP = 8, 10, 11, 12, 13, 14
INIT_PRODUCER_ID, ADD_PARTITIONS_TO_TXN, END_TXN = 22, 24, 26

NONE, REBALANCE_IN_PROGRESS, UNKNOWN_MEMBER_ID, CONCURRENT_TRANSACTIONS, MEMBER_ID_REQUIRED = 0, 27, 25, 51, 79
# Loading, not available, not the coordinator: try again.
RETRIABLE = frozenset({14, 15, 16})
SESSION_MS = 30_000
REBALANCE_MS = 60_000


def _bytes(value: bytes) -> bytes:
    return struct.pack(">i", len(value)) + value


def _text_at(answer: memoryview, position: int) -> tuple[str, int]:
    (length,) = struct.unpack_from(">h", answer, position)
    end = position + 2 + max(length, 0)
    return bytes(answer[position + 2 : end]).decode(), end


# What consumers put into the protocol: a version, topics, no user data.
_SUBSCRIPTION = struct.pack(">hi", 0, 1) + text("bench") + struct.pack(">i", -1)
_ASSIGNMENT = struct.pack(">hi", 0, 1) + text("bench") + struct.pack(">iii", 1, 0, -1)


def find_coordinator(key: str, *, for_transactions: bool = False) -> bytes:
    return request(FIND_COORDINATOR, 2, 0, text(key) + struct.pack(">b", int(for_transactions)))


def find_coordinator_error(answer: memoryview) -> int:
    return int(struct.unpack_from(">h", answer, 8)[0])


def join_group(group: str, member: str) -> bytes:
    body = text(group) + struct.pack(">ii", SESSION_MS, REBALANCE_MS) + text(member) + struct.pack(">h", -1)
    body += text("consumer") + struct.pack(">i", 1) + text("range") + _bytes(_SUBSCRIPTION)
    return request(JOIN_GROUP, 5, 0, body)


class Joined(NamedTuple):
    error: int
    generation: int
    leader: str
    member: str
    members: tuple[str, ...]


def joined(answer: memoryview) -> Joined:
    error, generation = struct.unpack_from(">hi", answer, 8)
    _, position = _text_at(answer, 14)
    leader, position = _text_at(answer, position)
    member, position = _text_at(answer, position)
    (count,) = struct.unpack_from(">i", answer, position)
    position += 4
    members = []
    for _ in range(count):
        name, position = _text_at(answer, position)
        _, position = _text_at(answer, position)
        (size,) = struct.unpack_from(">i", answer, position)
        position += 4 + size
        members.append(name)
    return Joined(error, generation, leader, member, tuple(members))


def sync_group(group: str, joined_as: Joined) -> bytes:
    """A leader gives everyone the same: the broker does not look at it."""
    body = text(group) + struct.pack(">i", joined_as.generation) + text(joined_as.member) + struct.pack(">h", -1)
    members = joined_as.members if joined_as.leader == joined_as.member else ()
    body += struct.pack(">i", len(members)) + b"".join(text(one) + _bytes(_ASSIGNMENT) for one in members)
    return request(SYNC_GROUP, 3, 0, body)


def heartbeat(group: str, joined_as: Joined) -> bytes:
    body = text(group) + struct.pack(">i", joined_as.generation) + text(joined_as.member) + struct.pack(">h", -1)
    return request(HEARTBEAT, 3, 0, body)


def leave_group(group: str, member: str) -> bytes:
    return request(LEAVE_GROUP, 2, 0, text(group) + text(member))


def error_after_throttle(answer: memoryview) -> int:
    """Of SyncGroup, Heartbeat, LeaveGroup, InitProducerId and EndTxn."""
    return int(struct.unpack_from(">h", answer, 8)[0])


def offset_commit(group: str, topic: str, offset: int) -> bytes:
    body = text(group) + struct.pack(">i", -1) + text("") + struct.pack(">h", -1)
    body += struct.pack(">i", 1) + text(topic) + struct.pack(">iiqi", 1, 0, offset, -1) + text("")
    return request(OFFSET_COMMIT, 7, 0, body)


def offset_commit_error(answer: memoryview) -> int:
    return int(struct.unpack_from(">h", answer, len(answer) - 2)[0])


def init_producer_id(transactional_id: str) -> bytes:
    return request(INIT_PRODUCER_ID, 1, 0, text(transactional_id) + struct.pack(">i", 60_000))


def producer_id(answer: memoryview) -> tuple[int, int]:
    identity, epoch = struct.unpack_from(">qh", answer, 10)
    return int(identity), int(epoch)


def add_partition(transactional_id: str, producer: tuple[int, int], topic: str) -> bytes:
    body = text(transactional_id) + struct.pack(">qh", *producer) + struct.pack(">i", 1) + text(topic)
    return request(ADD_PARTITIONS_TO_TXN, 2, 0, body + struct.pack(">ii", 1, 0))


def add_partition_error(answer: memoryview) -> int:
    return int(struct.unpack_from(">h", answer, len(answer) - 2)[0])


def transactional_batch(producer: tuple[int, int], sequence: int, value: bytes) -> bytes:
    """A batch of one record; the fields after the checksum are set, then the checksum."""
    batch = bytearray(record_batch(1, value))
    struct.pack_into(">h", batch, 21, 0x10)
    struct.pack_into(">qhi", batch, 43, *producer, sequence)
    struct.pack_into(">I", batch, 17, crc32c.crc32c(bytes(batch[21:])))
    return bytes(batch)


def transactional_produce(transactional_id: str, topic: str, batch: bytes) -> bytes:
    body = text(transactional_id) + struct.pack(">hi", -1, 30_000) + struct.pack(">i", 1) + text(topic)
    return request(0, 7, 0, body + struct.pack(">iii", 1, 0, len(batch)) + batch)


def end_transaction(transactional_id: str, producer: tuple[int, int], *, commit: bool) -> bytes:
    return request(END_TXN, 2, 0, text(transactional_id) + struct.pack(">qhb", *producer, int(commit)))
