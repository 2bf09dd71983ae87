"""Which partition a key belongs to, in plain Python: the reference for `_partitioning.pyx`.

The hash is murmur2 as Java's client computes it, so keys land where those of every other client land.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from penstock.records.arrow_access import read_binary
from penstock.records.buffers import Buffer
from penstock.records.columns import ArrowBuffer, BinaryColumn

NO_PARTITION = -1
"""The partition of a record without a key in the answers of `partition_keys` and `partition_column`."""

_SEED = 0x9747B28C
_FACTOR = 0x5BD1E995
_MASK = 0xFFFFFFFF
_POSITIVE = 0x7FFFFFFF


def murmur2(data: Buffer) -> int:
    """The hash as Java has it: a signed 32-bit number."""
    view = memoryview(data).cast("B")
    size = len(view)
    value = (_SEED ^ size) & _MASK
    whole = size & ~3
    for position in range(0, whole, 4):
        word = int.from_bytes(view[position : position + 4], "little") * _FACTOR & _MASK
        word = (word ^ word >> 24) * _FACTOR & _MASK
        value = value * _FACTOR & _MASK ^ word
    if whole < size:
        value = (value ^ int.from_bytes(view[whole:], "little")) * _FACTOR & _MASK
    value = (value ^ value >> 13) * _FACTOR & _MASK
    value ^= value >> 15
    return value - (1 << 32) if value > _POSITIVE else value


def partition_for_key(key: Buffer, count: int) -> int:
    """The partition, of `count`, of a record with this key."""
    _check_count(count)
    return (murmur2(key) & _POSITIVE) % count


def partition_keys(keys: Sequence[Buffer | None], count: int) -> array[int]:
    """The partition of each key (32-bit numbers); `NO_PARTITION` where there is none."""
    _check_count(count)
    return array("i", [NO_PARTITION if key is None else (murmur2(key) & _POSITIVE) % count for key in keys])


def partition_column(column: BinaryColumn, count: int) -> array[int]:
    """As `partition_keys`, for a column of keys."""
    _check_count(count)
    row = read_binary(column)
    return partition_keys([row(index) for index in range(column.length)], count)


def group_rows(partitions: ArrowBuffer, count: int) -> tuple[array[int], list[int]]:
    """The rows of every partition, in their order, from the partition of every row (32-bit numbers).

    Returns the rows' numbers (64-bit) sorted by partition, and `count + 2` bounds: the rows of partition `p` are
    `rows[bounds[p]:bounds[p + 1]]`, and those of no partition (-1) come last, behind `bounds[count]`.
    """
    _check_count(count)
    groups: list[list[int]] = [[] for _ in range(count + 1)]
    for row, partition in enumerate(memoryview(partitions).cast("B").cast("i")):
        if not NO_PARTITION <= partition < count:
            raise ValueError(f"row {row} has the partition {partition}, but there are {count}")
        groups[partition].append(row)
    rows: array[int] = array("q")
    bounds = [0]
    for group in groups:
        rows.extend(group)
        bounds.append(len(rows))
    return rows, bounds


def _check_count(count: int) -> None:
    if not 0 < count <= _POSITIVE:
        raise ValueError(f"no topic has {count} partitions")
