"""The `.snapshot` file: what a partition knows about its producers at one offset, in Kafka's bytes (version 1).

Layout, big endian: i16 version, u32 CRC-32C of everything after it, i32 count, then 46 bytes per producer. Only the
newest batch of a producer is kept, so that after a reload a duplicate of an older one is refused instead of answered.
A file that fails any check is `CorruptSnapshotError`: the owner deletes it and rebuilds from an older one and the log.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterable

from crc32c import crc32c

SNAPSHOT_SUFFIX = ".snapshot"
BATCHES_RETAINED = 5
NO_SEQUENCE = -1
NO_TRANSACTION = -1
SEQUENCE_MODULUS = 1 << 31

_VERSION = 1
_HEADER = struct.Struct(">hIi")
_ENTRIES_POSITION = 6
_ENTRY = struct.Struct(">qhiqiqiq")

CachedBatch = tuple[int, int, int, int]
"""(last sequence, last offset, offset delta, timestamp): a plain tuple, since one is made for every append."""


class CorruptSnapshotError(Exception):
    """The file is not a producer snapshot that can be trusted."""


class ProducerStateEntry:
    """One producer of one partition: its epoch, its newest batches, its open transaction.

    `next_sequence` is derived from the newest batch, so that the common check is one comparison.
    """

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "current_txn_first_offset",
        "last_timestamp",
        "next_sequence",
        "producer_epoch",
        "producer_id",
    )

    def __init__(
        self,
        producer_id: int,
        producer_epoch: int,
        *,
        coordinator_epoch: int = -1,
        last_timestamp: int = -1,
        current_txn_first_offset: int = NO_TRANSACTION,
    ) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.coordinator_epoch = coordinator_epoch
        self.last_timestamp = last_timestamp
        self.current_txn_first_offset = current_txn_first_offset
        self.batches: deque[CachedBatch] = deque(maxlen=BATCHES_RETAINED)
        self.next_sequence = 0

    @property
    def last_sequence(self) -> int:
        return self.batches[-1][0] if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        return self.batches[-1][1] if self.batches else -1

    def set_epoch(self, producer_epoch: int) -> None:
        """A new epoch starts its sequences anew, so the batches of the old one say nothing any more."""
        if producer_epoch != self.producer_epoch:
            self.producer_epoch = producer_epoch
            self.batches.clear()
            self.next_sequence = 0

    def add_batch(self, batch: CachedBatch) -> None:
        self.batches.append(batch)
        self.last_timestamp = batch[3]
        self.next_sequence = (batch[0] + 1) % SEQUENCE_MODULUS


def encode_snapshot(entries: Iterable[ProducerStateEntry]) -> bytes:
    packed = [_pack_entry(entry) for entry in entries]
    body = struct.pack(">i", len(packed)) + b"".join(packed)
    return struct.pack(">hI", _VERSION, crc32c(body)) + body


def _pack_entry(entry: ProducerStateEntry) -> bytes:
    last_sequence, last_offset, offset_delta, _ = entry.batches[-1] if entry.batches else (NO_SEQUENCE, -1, 0, -1)
    return _ENTRY.pack(
        entry.producer_id,
        entry.producer_epoch,
        last_sequence,
        last_offset,
        offset_delta,
        entry.last_timestamp,
        entry.coordinator_epoch,
        entry.current_txn_first_offset,
    )


def decode_snapshot(data: bytes) -> list[ProducerStateEntry]:
    if len(data) < _HEADER.size:
        raise CorruptSnapshotError(f"{len(data)} bytes are too few for a header")
    version, crc, count = _HEADER.unpack_from(data)
    if version != _VERSION:
        raise CorruptSnapshotError(f"unknown version {version}")
    if (computed := crc32c(data[_ENTRIES_POSITION:])) != crc:
        raise CorruptSnapshotError(f"stored CRC {crc:#010x}, computed {computed:#010x}")
    if len(data) - _HEADER.size != count * _ENTRY.size:
        raise CorruptSnapshotError(f"{count} entries do not fill {len(data)} bytes")
    return [_unpack_entry(fields) for fields in _ENTRY.iter_unpack(data[_HEADER.size :])]


def _unpack_entry(fields: tuple[int, ...]) -> ProducerStateEntry:
    producer_id, epoch, last_sequence, last_offset, offset_delta, timestamp, coordinator_epoch, txn_offset = fields
    entry = ProducerStateEntry(
        producer_id,
        epoch,
        coordinator_epoch=coordinator_epoch,
        current_txn_first_offset=txn_offset if txn_offset >= 0 else NO_TRANSACTION,
    )
    if last_offset >= 0:
        entry.add_batch((last_sequence, last_offset, offset_delta, timestamp))
    entry.last_timestamp = timestamp
    return entry
