"""Records and columns for consumers, in plain Python: the reference for `_consuming.pyx`.

Both entry points walk the plain records of one batch and leave out what lies below the consumer's position. A batch
with a defect gives nothing: the walk raises and a filler is left as it was before.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from penstock.records.batch import ATTRIBUTES_OFFSET, HEADER_SIZE, MAGIC, BatchHeader, read_header
from penstock.records.buffers import Buffer
from penstock.records.columns import DATA_BYTES_MAX, BinaryColumn, HeaderColumn, RecordColumns
from penstock.records.errors import Defect, InvalidRecords
from penstock.records.pure_format import check_range, decode_headers, read_fields, wrap
from penstock.records.record import ConsumerRecord, Header

_new_tuple = tuple.__new__
_INT8 = struct.Struct("=b")
_INT32 = struct.Struct("=i")
_INT64 = struct.Struct("=q")

Crc = Callable[[Buffer], int]


def decode_consumer_records(
    buffer: Buffer,
    position: int,
    end: int,
    count: int,
    base_offset: int,
    base_timestamp: int,
    append_time: int | None,
    topic: str,
    partition: int,
    leader_epoch: int,
    from_offset: int,
) -> list[ConsumerRecord]:
    """The records of a batch from `from_offset` on. `append_time`, when given, is the timestamp of them all."""
    check_range(buffer, position, end)
    records: list[ConsumerRecord] = []
    view = memoryview(buffer)
    timestamp_type = 0 if append_time is None else 1
    for index in range(count):
        timestamp, offset_delta, key_at, key_size, value_at, value_size, headers_at, header_count, position = (
            read_fields(buffer, position, end, index)
        )
        offset = wrap(base_offset + offset_delta)
        if offset < from_offset:
            continue
        timestamp = wrap(base_timestamp + timestamp) if append_time is None else append_time
        key = bytes(view[key_at : key_at + key_size]) if key_size >= 0 else None
        value = bytes(view[value_at : value_at + value_size]) if value_size >= 0 else None
        headers = decode_headers(view, headers_at, position, header_count) if header_count else ()
        fields = (topic, partition, offset, timestamp, timestamp_type, key, value, headers, leader_epoch)
        records.append(_new_tuple(ConsumerRecord, fields))
    if position != end:
        raise InvalidRecords.of(Defect.TRAILING_BYTES, count)
    return records


class _Binary:
    """A growing column of byte strings."""

    def __init__(self) -> None:
        self.length = 0
        self.null_count = 0
        self.offsets = bytearray(4)
        self.data = bytearray()
        self.validity = bytearray()

    def append(self, item: bytes | None) -> None:
        if self.length & 7 == 0:
            self.validity.append(0)
        if item is None:
            self.null_count += 1
        else:
            self.validity[-1] |= 1 << (self.length & 7)
            self.data += item
        if len(self.data) > DATA_BYTES_MAX:
            raise OverflowError("a column is larger than 2 GiB")
        self.offsets += _INT32.pack(len(self.data))
        self.length += 1

    def truncate(self, length: int) -> None:
        valid = sum(self.validity[row >> 3] >> (row & 7) & 1 for row in range(length, self.length))
        self.null_count -= self.length - length - valid
        self.length = length
        del self.offsets[4 * (length + 1) :]
        del self.data[_INT32.unpack_from(self.offsets, 4 * length)[0] :]
        del self.validity[length + 7 >> 3 :]
        if length & 7:
            self.validity[-1] &= (1 << (length & 7)) - 1

    def column(self) -> BinaryColumn:
        return BinaryColumn(
            length=self.length,
            offsets=self.offsets,
            data=self.data,
            validity=self.validity if self.null_count else None,
            null_count=self.null_count,
        )


class ColumnFiller:
    """Collects the records of many batches as columns.

    It is full when it has `rows_max` rows, or when the next record would take the keys, the values or the headers
    beyond `bytes_max` (never more than 32-bit offsets reach; a first record may always come in). Take the columns
    then, make a new filler and go on at `next_offset`.
    """

    def __init__(self, rows_max: int, bytes_max: int = DATA_BYTES_MAX, headers: bool = False) -> None:
        self._rows_max = max(rows_max, 0)
        self._taken = False
        self._bytes_max = min(bytes_max, DATA_BYTES_MAX)
        self.rows = 0
        self.full = rows_max <= 0
        self.next_offset = -1
        """The offset after the last record of the batch that came in last, left out records included."""
        self.leader_epoch = -1
        """Of the batch that came in last by `fill_run`."""
        self._topics = bytearray()
        self._partitions = bytearray()
        self._offsets = bytearray()
        self._timestamps = bytearray()
        self._timestamp_types = bytearray()
        self._keys = _Binary()
        self._values = _Binary()
        self._header_offsets = bytearray(4) if headers else None
        self._header_keys = _Binary()
        self._header_values = _Binary()
        self._header_bytes = 0

    def fill(
        self,
        buffer: Buffer,
        position: int,
        end: int,
        count: int,
        base_offset: int,
        base_timestamp: int,
        append_time: int | None,
        topic: int,
        partition: int,
        from_offset: int,
    ) -> int:
        """Add the records of a batch from `from_offset` on, until the filler is full; how many that were."""
        check_range(buffer, position, end)
        if self._taken:
            raise ValueError("the columns were taken already")
        before = self.rows, self._header_keys.length, self._header_bytes, self.full, self.next_offset
        try:
            self._fill(
                buffer, position, end, count, base_offset, base_timestamp, append_time, topic, partition, from_offset
            )
        except BaseException:
            self._truncate(*before)
            raise
        return self.rows - before[0]

    def fill_run(
        self,
        buffer: Buffer,
        position: int,
        end: int,
        special_mask: int,
        crc_of: Crc | None,
        topic: int,
        partition: int,
        from_offset: int,
    ) -> tuple[int, int]:
        """Add whole batches, from the header at `position` on, until the filler is full or one needs a closer look.

        That is one that is cut off, has an attribute of `special_mask`, or is damaged: its caller opens it and says
        what it is. Gives the position behind the batches that are used up and the offset to go on at. `crc_of` is None
        where checksums do not matter.
        """
        check_range(buffer, position, end)
        if self._taken:
            raise ValueError("the columns were taken already")
        frame = memoryview(buffer)
        while not self.full and end - position >= HEADER_SIZE:
            header = read_header(buffer, position)
            size = header.size_in_bytes
            is_whole = HEADER_SIZE <= size <= end - position
            if not is_whole or header.magic != MAGIC or header.attributes & special_mask:
                break
            body = frame[position + ATTRIBUTES_OFFSET : position + size]
            if crc_of is not None and header.crc != crc_of(body):
                break
            if header.last_offset >= from_offset:
                if not self._add_batch(header, buffer, position, topic, partition, from_offset):
                    break
                from_offset = max(from_offset, self.next_offset)
                if from_offset <= header.last_offset:
                    break
            position += size
        return position, from_offset

    def _add_batch(
        self, header: BatchHeader, buffer: Buffer, position: int, topic: int, partition: int, from_offset: int
    ) -> bool:
        """Whether its records could be read."""
        start, end = position + HEADER_SIZE, position + header.size_in_bytes
        # What it was may belong to another partition.
        self.next_offset = from_offset
        try:
            self.fill(
                buffer, start, end, header.count, header.base_offset, header.base_timestamp,
                header.append_time, topic, partition, from_offset,
            )  # fmt: skip
        except InvalidRecords:
            return False
        self.leader_epoch = header.leader_epoch
        if not self.full:
            self.next_offset = header.next_offset
        return True

    def _fill(
        self,
        buffer: Buffer,
        position: int,
        end: int,
        count: int,
        base_offset: int,
        base_timestamp: int,
        append_time: int | None,
        topic: int,
        partition: int,
        from_offset: int,
    ) -> None:
        view = memoryview(buffer)
        for index in range(count):
            timestamp, offset_delta, key_at, key_size, value_at, value_size, headers_at, header_count, after = (
                read_fields(buffer, position, end, index)
            )
            offset = wrap(base_offset + offset_delta)
            if offset >= from_offset:
                if not self._has_room(key_size, value_size, after - headers_at):
                    self.full = True
                    return
                self._topics += _INT32.pack(topic)
                self._partitions += _INT32.pack(partition)
                self._offsets += _INT64.pack(offset)
                self._timestamps += _INT64.pack(
                    wrap(base_timestamp + timestamp) if append_time is None else append_time
                )
                self._timestamp_types += _INT8.pack(append_time is not None)
                self._keys.append(bytes(view[key_at : key_at + key_size]) if key_size >= 0 else None)
                self._values.append(bytes(view[value_at : value_at + value_size]) if value_size >= 0 else None)
                self._add_headers(decode_headers(view, headers_at, after, header_count), after - headers_at)
                self.rows += 1
            self.next_offset = wrap(offset + 1)
            position = after
        if position != end:
            raise InvalidRecords.of(Defect.TRAILING_BYTES, count)
        self.full = self.rows >= self._rows_max

    def _has_room(self, key_size: int, value_size: int, header_bytes: int) -> bool:
        if self.rows >= self._rows_max:
            return False
        if self.rows == 0:
            return True
        return (
            len(self._keys.data) + max(key_size, 0) <= self._bytes_max
            and len(self._values.data) + max(value_size, 0) <= self._bytes_max
            and (self._header_offsets is None or self._header_bytes + 3 * header_bytes <= self._bytes_max)
        )

    def _add_headers(self, headers: tuple[Header, ...], size: int) -> None:
        if self._header_offsets is None:
            return
        # A byte of a key that is not UTF-8 becomes three.
        self._header_bytes += 3 * size
        for key, value in headers:
            self._header_keys.append(key.encode())
            self._header_values.append(value)
        self._header_offsets += _INT32.pack(self._header_keys.length)

    def _truncate(self, rows: int, headers: int, header_bytes: int, full: bool, next_offset: int) -> None:
        self.rows = rows
        self.full = full
        self.next_offset = next_offset
        for column, width in (
            (self._topics, 4),
            (self._partitions, 4),
            (self._offsets, 8),
            (self._timestamps, 8),
            (self._timestamp_types, 1),
        ):
            del column[width * rows :]
        self._keys.truncate(rows)
        self._values.truncate(rows)
        if self._header_offsets is not None:
            del self._header_offsets[4 * (rows + 1) :]
            self._header_keys.truncate(headers)
            self._header_values.truncate(headers)
            self._header_bytes = header_bytes

    def take(self) -> RecordColumns:
        """The columns. The filler is finished."""
        if self._taken:
            raise ValueError("the columns were taken already")
        self._taken = True
        headers = None
        if self._header_offsets is not None:
            headers = HeaderColumn(
                length=self.rows,
                offsets=self._header_offsets,
                keys=self._header_keys.column(),
                values=self._header_values.column(),
            )
        return RecordColumns(
            rows=self.rows,
            topics=self._topics,
            partitions=self._partitions,
            offsets=self._offsets,
            timestamps=self._timestamps,
            timestamp_types=self._timestamp_types,
            keys=self._keys.column(),
            values=self._values.column(),
            headers=headers,
        )
