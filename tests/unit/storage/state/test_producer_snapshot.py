"""The bytes of a producer snapshot."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.storage.producers.snapshot import (
    CorruptSnapshotError,
    ProducerStateEntry,
    decode_snapshot,
    encode_snapshot,
)


def make_entry() -> ProducerStateEntry:
    entry = ProducerStateEntry(4000, 3, coordinator_epoch=7, current_txn_first_offset=98)
    entry.add_batch((41, 99, 1, 1_700_000_000_000))
    entry.add_batch((44, 102, 2, 1_700_000_000_123))
    return entry


# Kafka 4.3.1's DumpLogSegments decodes exactly these bytes, and rejects them with any bit changed.
GOLDEN = bytes.fromhex(
    "0001"  # version
    "c3901bed"  # CRC-32C of what follows
    "00000001"  # count
    "0000000000000fa0"  # producer id
    "0003"  # epoch
    "0000002c"  # last sequence
    "0000000000000066"  # last offset
    "00000002"  # offset delta
    "0000018bcfe5687b"  # timestamp
    "00000007"  # coordinator epoch
    "0000000000000062"  # first offset of the open transaction
)


def test_the_bytes_are_kafkas() -> None:
    assert encode_snapshot([make_entry()]) == GOLDEN
    assert encode_snapshot([])[6:] == bytes(4)


def test_only_the_newest_batch_comes_back() -> None:
    (entry,) = decode_snapshot(GOLDEN)
    assert (entry.producer_id, entry.producer_epoch, entry.coordinator_epoch) == (4000, 3, 7)
    assert list(entry.batches) == [(44, 102, 2, 1_700_000_000_123)]
    assert (entry.next_sequence, entry.last_timestamp, entry.current_txn_first_offset) == (45, 1_700_000_000_123, 98)


def test_a_producer_without_batches() -> None:
    (entry,) = decode_snapshot(encode_snapshot([ProducerStateEntry(1, 2, last_timestamp=9)]))
    assert not entry.batches
    assert (entry.next_sequence, entry.last_timestamp, entry.current_txn_first_offset) == (0, 9, -1)


@given(st.integers(0, len(GOLDEN) * 8 - 1))
def test_every_flipped_bit_is_noticed(bit: int) -> None:
    damaged = bytearray(GOLDEN)
    damaged[bit // 8] ^= 1 << bit % 8
    with pytest.raises(CorruptSnapshotError):
        decode_snapshot(bytes(damaged))


@pytest.mark.parametrize("size", range(len(GOLDEN)))
def test_every_cut_is_noticed(size: int) -> None:
    with pytest.raises(CorruptSnapshotError):
        decode_snapshot(GOLDEN[:size])


@given(st.binary(max_size=120))
def test_garbage_is_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptSnapshotError):
        decode_snapshot(data)
