"""Batches that grow record by record, in plain Python: the reference for `_writing.pyx`.

A writer is for one thread at a time: the owner's lock covers it from the first `append` to `take`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from penstock.records.arrow_access import read_binary, read_headers, read_longs
from penstock.records.buffers import Buffer
from penstock.records.columns import ArrowBuffer, BinaryColumn, HeaderColumn, LongColumn
from penstock.records.pure_format import SIZE_MAX, check_timestamp, encode_body, varint_size, wrap, write_varint
from penstock.records.record import Header, Record

HEADER_SIZE = 61


class BatchWriter:
    """One growing batch. The first 61 bytes are kept for its header, which `sealing.seal` writes."""

    __slots__ = ("_output", "_size_max", "base_timestamp", "count", "max_timestamp", "size")

    def __init__(self, size_max: int) -> None:
        """A batch of at most `size_max` bytes; only a first record on its own may make it larger."""
        self._output: bytearray | None = bytearray(HEADER_SIZE)
        self._size_max = min(size_max, SIZE_MAX)
        self.count = 0
        self.size = HEADER_SIZE
        self.base_timestamp = -1
        self.max_timestamp = -1

    def append(
        self, timestamp: int, key: Buffer | None, value: Buffer | None, headers: Sequence[Header] | None = ()
    ) -> int:
        """The record's index in the batch, or -1 when it does not fit or the batch was taken already."""
        check_timestamp(timestamp)
        base_timestamp = self.base_timestamp if self.count else timestamp
        body = encode_body(wrap(timestamp - base_timestamp), self.count, key, value, headers or ())
        size = self.size + varint_size(len(body)) + len(body)
        if self._output is None or (size > self._size_max and self.count):
            return -1
        if size > SIZE_MAX:
            raise OverflowError("a batch is larger than 2 GiB")
        write_varint(self._output, len(body))
        self._output += body
        self.size = size
        self.base_timestamp = base_timestamp
        self.max_timestamp = max(timestamp, self.max_timestamp)
        self.count += 1
        return self.count - 1

    def extend(self, records: Sequence[Record], start: int) -> int:
        """Append records from `start` on while they fit; how many that were."""
        _check_rows(start, len(records), len(records))
        for index in range(start, len(records)):
            if self.append(*records[index]) < 0:
                return index - start
        return len(records) - start

    def extend_values(
        self,
        timestamp: int,
        keys: Sequence[Buffer | None] | None,
        values: Sequence[Buffer | None],
        start: int,
        stop: int,
        rows: ArrowBuffer | None = None,
    ) -> int:
        """Append records without headers and with one timestamp while they fit; how many that were.

        They are those at `start` to `stop` of the sequences, or at `rows[start]` to `rows[stop]` when `rows` (64-bit
        numbers, see `group_rows`) is given. `keys` None: no record has a key.
        """
        row = _row_numbers(rows, start, stop, len(values) if keys is None else min(len(keys), len(values)))
        for index in range(start, stop):
            at = row(index)
            if self.append(timestamp, None if keys is None else keys[at], values[at]) < 0:
                return index - start
        return stop - start

    def take(self) -> bytearray:
        """The plain batch, header still zero. The writer is finished: it takes no more records."""
        output = self._output
        if output is None:
            raise ValueError("the batch was taken already")
        self._output = None
        return output


def encode_columns(
    writer: BatchWriter,
    keys: BinaryColumn | None,
    values: BinaryColumn | None,
    timestamps: LongColumn | None,
    headers: HeaderColumn | None,
    start: int,
    stop: int,
    timestamp: int = -1,
    rows: ArrowBuffer | None = None,
) -> int:
    """Append rows `start` to `stop` of the columns to the writer's batch while they fit; how many that were.

    With `rows` (64-bit numbers, see `group_rows`) they are the rows `rows[start]` to `rows[stop]`. A column that is
    None is null in every record; `timestamp` stands in for a timestamp that is null.
    """
    key_of = _none if keys is None else read_binary(keys)
    value_of = _none if values is None else read_binary(values)
    timestamp_of = _none if timestamps is None else read_longs(timestamps)
    headers_of = _none if headers is None else read_headers(headers)
    columns = [column for column in (keys, values, timestamps, headers) if column is not None]
    row = _row_numbers(rows, start, stop, min((column.length for column in columns), default=stop))
    for index in range(start, stop):
        at = row(index)
        stamp = timestamp_of(at)
        stamp = timestamp if stamp is None else stamp
        if writer.append(stamp, key_of(at), value_of(at), headers_of(at) or ()) < 0:
            return index - start
    return stop - start


def _none(_: int) -> None:
    return None


def _check_rows(start: int, stop: int, length: int) -> None:
    if not 0 <= start <= stop <= length:
        raise ValueError(f"no range of {length} rows: {start} to {stop}")


def _row_numbers(rows: ArrowBuffer | None, start: int, stop: int, length: int) -> Callable[[int], int]:
    if rows is None:
        _check_rows(start, stop, length)
        return lambda index: index
    numbers = memoryview(rows).cast("B").cast("q")
    _check_rows(start, stop, len(numbers))

    def row(index: int) -> int:
        at: int = numbers[index]
        if not 0 <= at < length:
            raise ValueError(f"no row of {length}: {at}")
        return at

    return row
