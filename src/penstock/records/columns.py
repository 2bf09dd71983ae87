"""Columns of records in Arrow's memory layout, as plain buffers.

The kernels read and write these without Arrow itself, which only those who ask for columns need to have. All numbers
are in the machine's byte order, as in Arrow. Anything with the buffer protocol is a buffer, a `pyarrow.Buffer` too:

    validity, offsets, data = array.buffers()          # of an array of binary or string
    BinaryColumn(length=len(array), offset=array.offset, offsets=offsets, data=data, validity=validity)

    Array.from_buffers(binary(), c.length, [c.validity, py_buffer(c.offsets), py_buffer(c.data)], c.null_count)

Columns that the kernels make have 32-bit offsets: a `ColumnFiller` stops before a column's data passes 2^31 - 1 bytes.
Columns that they take may have 64-bit ones (`wide`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

ArrowBuffer = Any
"""An object with the buffer protocol; Python has a type for that from 3.12 on."""

DATA_BYTES_MAX = 2**31 - 1
"""The most that 32-bit offsets reach."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BinaryColumn:
    """Byte strings or texts; row `i` is `data[offsets[offset + i]:offsets[offset + i + 1]]`."""

    length: int
    offsets: ArrowBuffer
    data: ArrowBuffer | None = None
    validity: ArrowBuffer | None = None
    offset: int = 0
    wide: bool = False
    null_count: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class LongColumn:
    """64-bit integers (also timestamps in milliseconds)."""

    length: int
    data: ArrowBuffer
    validity: ArrowBuffer | None = None
    offset: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderColumn:
    """A list per record; the headers of row `i` are rows `offsets[offset + i]` to `offsets[offset + i + 1]` of `keys`
    and `values`. A null list is an empty one. Keys that are null are an error."""

    length: int
    offsets: ArrowBuffer
    keys: BinaryColumn
    values: BinaryColumn
    validity: ArrowBuffer | None = None
    offset: int = 0
    wide: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordColumns:
    """What a `ColumnFiller` gives: `rows` records, column by column."""

    rows: int
    topics: bytearray
    """i32: the number that the caller gave for the topic, such as its place in a dictionary."""
    partitions: bytearray
    """i32."""
    offsets: bytearray
    """i64."""
    timestamps: bytearray
    """i64, milliseconds."""
    timestamp_types: bytearray
    """i8: 0 set by the producer, 1 set by the broker."""
    keys: BinaryColumn
    values: BinaryColumn
    headers: HeaderColumn | None
    """None when headers were not asked for."""
