"""Records and columns for consumers: the same records as every reader sees, and nothing of a damaged batch."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.records import pure_kernel
from penstock.records.batch import CODEC_MASK, CONTROL_MASK, read_header
from penstock.records.builder import build_batch, seal_batch
from penstock.records.columns import BinaryColumn, LongColumn, RecordColumns
from penstock.records.compression import Codec
from penstock.records.errors import InvalidRecords
from penstock.records.record import ConsumerRecord, Record
from tests.unit.records.strategies import per_kernel, record_lists

append_times = st.none() | st.integers(0, 2**40)


def encode(items: list[Record]) -> bytes:
    return bytes(pure_kernel.encode_records(items, items[0].timestamp, 0)[0])


def decode(
    kernel: SimpleNamespace, items: list[Record], base: int, append_time: int | None, start: int
) -> list[ConsumerRecord]:
    data = encode(items)
    span = (data, 0, len(data), len(items), base, items[0].timestamp, append_time)
    records: list[ConsumerRecord] = kernel.decode_consumer_records(*span, "t", 3, 9, start)
    return records


def fill(
    filler: Any, items: list[Record], base: int, start: int, append_time: int | None = None, topic: int = 0
) -> int:
    data = encode(items)
    span = (data, 0, len(data), len(items), base, items[0].timestamp, append_time)
    rows: int = filler.fill(*span, topic, 3, start)
    return rows


def binary_array(column: BinaryColumn, kind: Any) -> Any:
    buffers = [None if part is None else pa.py_buffer(part) for part in (column.validity, column.offsets, column.data)]
    return pa.Array.from_buffers(kind, column.length, buffers, column.null_count)


def rows_of(columns: RecordColumns) -> list[tuple[object, ...]]:
    """Through Arrow, which checks the buffers."""

    def numbers(kind: Any, data: bytearray) -> list[int]:
        array = pa.Array.from_buffers(kind, columns.rows, [None, pa.py_buffer(data)])
        array.validate(full=True)
        assert len(data) * 8 == columns.rows * kind.bit_width
        result: list[int] = array.to_pylist()
        return result

    keys = binary_array(columns.keys, pa.binary())
    values = binary_array(columns.values, pa.binary())
    headers: list[Any] = [[]] * columns.rows
    for array in (keys, values):
        array.validate(full=True)
    if columns.headers is not None:
        header = columns.headers
        children = [binary_array(header.keys, pa.string()), binary_array(header.values, pa.binary())]
        struct = pa.StructArray.from_arrays(children, ["key", "value"])
        lists = pa.Array.from_buffers(
            pa.list_(struct.type), columns.rows, [None, pa.py_buffer(header.offsets)], children=[struct]
        )
        lists.validate(full=True)
        headers = lists.to_pylist()
    return list(
        zip(
            numbers(pa.int32(), columns.topics),
            numbers(pa.int32(), columns.partitions),
            numbers(pa.int64(), columns.offsets),
            numbers(pa.int64(), columns.timestamps),
            numbers(pa.int8(), columns.timestamp_types),
            keys.to_pylist(),
            values.to_pylist(),
            [tuple((item["key"], item["value"]) for item in row) for row in headers],
            strict=True,
        )
    )


@per_kernel
@given(items=record_lists, base=st.integers(0, 2**62), append_time=append_times, skip=st.integers(-1, 25))
def test_consumers_get_the_records_from_their_position_on(
    client_kernel: SimpleNamespace, items: list[Record], base: int, append_time: int | None, skip: int
) -> None:
    decoded = decode(client_kernel, items, base, append_time, base + skip)
    assert decoded == [
        ConsumerRecord(
            "t", 3, base + index, *((item.timestamp, 0) if append_time is None else (append_time, 1)), *item[1:], 9
        )
        for index, item in enumerate(items)
        if index >= skip
    ]
    assert all(type(record) is ConsumerRecord for record in decoded)


@per_kernel
@given(
    batches=st.lists(st.tuples(record_lists, append_times, st.integers(0, 25)), max_size=4),
    headers=st.booleans(),
    base=st.integers(0, 2**61),
)
def test_columns_hold_the_same_records(
    client_kernel: SimpleNamespace, batches: list[tuple[list[Record], int | None, int]], headers: bool, base: int
) -> None:
    filler = client_kernel.ColumnFiller(10_000, headers=headers)
    expected: list[tuple[object, ...]] = []
    for topic, (items, append_time, skip) in enumerate(batches):
        records = decode(client_kernel, items, base, append_time, base + skip)
        assert fill(filler, items, base, base + skip, append_time, topic) == len(records)
        assert filler.next_offset == base + len(items)
        expected += [(topic, *record[1:7], record.headers if headers else ()) for record in records]
    assert filler.rows == len(expected)
    assert not filler.full
    assert rows_of(filler.take()) == expected


@per_kernel
@given(items=record_lists, rows_max=st.integers(1, 8), bytes_max=st.integers(0, 900), headers=st.booleans())
def test_a_full_filler_is_followed_by_another(
    client_kernel: SimpleNamespace, items: list[Record], rows_max: int, bytes_max: int, headers: bool
) -> None:
    offset = 100
    seen: list[tuple[object, ...]] = []
    while offset < 100 + len(items):
        filler = client_kernel.ColumnFiller(rows_max, bytes_max, headers)
        rows = fill(filler, items, 100, offset)
        assert 0 < rows <= rows_max
        offset = filler.next_offset
        assert filler.full or offset == 100 + len(items)
        columns = filler.take()
        assert rows == 1 or max(len(columns.keys.data), len(columns.values.data)) <= bytes_max
        seen += rows_of(columns)
    expected = decode(client_kernel, items, 100, None, 0)
    assert seen == [(0, *record[1:7], record.headers if headers else ()) for record in expected]


SPECIAL = CODEC_MASK | CONTROL_MASK


def run(filler: Any, frame: bytes, start: int = 0, from_offset: int = 0) -> tuple[int, int]:
    result: tuple[int, int] = filler.fill_run(frame, start, len(frame), SPECIAL, crc32c, 2, 3, from_offset)
    return result


@per_kernel
@given(
    batches=st.lists(record_lists, min_size=1, max_size=4),
    skip=st.integers(0, 30),
    rows_max=st.integers(1, 40),
    stamped=st.booleans(),
)
def test_a_run_of_batches_is_what_its_batches_are(
    client_kernel: SimpleNamespace, batches: list[list[Record]], skip: int, rows_max: int, stamped: bool
) -> None:
    frame, base, expected = b"", 0, []
    kind = "LogAppendTime" if stamped else "CreateTime"
    for items in batches:
        frame += build_batch(items, base_offset=base, leader_epoch=7, timestamp_type=kind, log_append_time=99)
        expected += decode(client_kernel, items, base, 99 if stamped else None, skip)
        base += len(items)
    position, offset, seen = 0, skip, []
    while position < len(frame):
        filler = client_kernel.ColumnFiller(rows_max)
        position, offset = run(filler, frame, position, offset)
        assert filler.full == (filler.rows == rows_max)
        assert not filler.rows or filler.leader_epoch == 7
        seen += rows_of(filler.take())
    assert offset == max(base, skip)
    assert seen == [(2, *record[1:7], ()) for record in expected]


def test_a_run_ends_where_a_closer_look_is_needed(client_kernel: SimpleNamespace) -> None:
    plain = build_batch([Record(0, None, b"a")])
    second = {"base_offset": 1}
    bad_crc = bytearray(build_batch([Record(0, None, b"b")], **second))  # type: ignore[arg-type]
    bad_crc[-1] ^= 1
    old = bytearray(build_batch([Record(0, None, b"b")], **second))  # type: ignore[arg-type]
    old[16] = 1
    for special in (
        bytes(bad_crc),
        bytes(old),
        build_batch([Record(0, None, b"b")], base_offset=1, codec=Codec.GZIP),
        build_batch([Record(0, None, b"b")], base_offset=1, control=True),
        build_batch([Record(0, None, b"b")], base_offset=1)[:-1],
        b"\xff" * 80,
        b"",
    ):
        filler = client_kernel.ColumnFiller(10)
        assert run(filler, plain + special) == (len(plain), 1)
        assert filler.rows == 1
        assert run(filler, plain + special, len(plain), 1) == (len(plain), 1)


def test_records_that_do_not_hold_together_end_a_run(client_kernel: SimpleNamespace) -> None:
    header = read_header(build_batch([Record(0, None, b"a")]))
    lying = bytearray(build_batch([Record(0, None, b"a")]))
    seal_batch(lying, header._replace(count=2))
    filler = client_kernel.ColumnFiller(10)
    assert run(filler, bytes(lying)) == (0, 0)
    assert filler.rows == 0


def test_a_full_filler_does_not_take_the_offset_of_another_partition(client_kernel: SimpleNamespace) -> None:
    filler = client_kernel.ColumnFiller(10, 3)
    run(filler, build_batch([Record(0, None, b"abc")], base_offset=5000), 0, 5000)
    assert run(filler, build_batch([Record(0, None, b"d")])) == (0, 0)
    assert filler.full


def test_a_run_below_the_position_is_passed_over(client_kernel: SimpleNamespace) -> None:
    frame = build_batch([Record(0, None, b"a")] * 3)
    filler = client_kernel.ColumnFiller(10)
    assert run(filler, frame, 0, 50) == (len(frame), 50)
    with pytest.raises(ValueError, match="range"):
        run(filler, frame, len(frame) + 1)


def test_a_filler_of_no_rows_is_full(client_kernel: SimpleNamespace) -> None:
    for rows_max in (0, -5):
        filler = client_kernel.ColumnFiller(rows_max)
        assert filler.full
        assert fill(filler, [Record(1, b"k", b"v")], 0, 0) == 0
        assert rows_of(filler.take()) == []


def test_taken_fillers_are_finished(client_kernel: SimpleNamespace) -> None:
    filler = client_kernel.ColumnFiller(5)
    filler.take()
    with pytest.raises(ValueError, match="taken already"):
        filler.take()
    with pytest.raises(ValueError, match="taken already"):
        fill(filler, [Record(1, b"k", b"v")], 0, 0)


def test_header_keys_that_are_not_utf8_become_text(client_kernel: SimpleNamespace) -> None:
    data = encode([Record(0, None, None, (("A?B", b"x"), ("ключ", None)))]).replace(b"A?B", b"A\xffB")
    filler = client_kernel.ColumnFiller(5, headers=True)
    filler.fill(data, 0, len(data), 1, 0, 0, None, 0, 0, 0)
    assert rows_of(filler.take())[0][-1] == (("A\ufffdB", b"x"), ("ключ", None))


@per_kernel
@given(first=record_lists, second=record_lists, seed=st.integers(0, 2**32), headers=st.booleans())
def test_a_damaged_batch_leaves_nothing_behind(
    client_kernel: SimpleNamespace, first: list[Record], second: list[Record], seed: int, headers: bool
) -> None:
    filler = client_kernel.ColumnFiller(10_000, headers=headers)
    fill(filler, first, 0, 0)
    data = encode(second)[: -1 - seed % 3] or b"\x80"
    with pytest.raises(InvalidRecords):
        filler.fill(data, 0, len(data), len(second), 500, 0, None, 1, 1, 0)
    assert (filler.rows, filler.next_offset, filler.full) == (len(first), len(first), False)
    fill(filler, second, 1000, 0)
    untouched = client_kernel.ColumnFiller(10_000, headers=headers)
    fill(untouched, first, 0, 0)
    fill(untouched, second, 1000, 0)
    assert filler.take() == untouched.take()


def test_big_batches_fill_without_the_interpreters_lock(client_kernel: SimpleNamespace) -> None:
    items = [Record(index, b"key", b"v" * 90) for index in range(5000)]
    filler = client_kernel.ColumnFiller(10_000)
    assert fill(filler, items, 0, 0) == 5000
    columns = filler.take()
    stamps = LongColumn(length=5000, data=columns.timestamps)
    writer = client_kernel.BatchWriter(1 << 30)
    assert client_kernel.encode_columns(writer, columns.keys, columns.values, stamps, columns.headers, 0, 5000) == 5000
    assert writer.take()[61:] == encode(items)


def test_ranges_outside_of_the_buffer_are_refused(client_kernel: SimpleNamespace) -> None:
    data = encode([Record(1, b"k", b"v")])
    for position, end in ((-1, 1), (0, len(data) + 1), (5, 4)):
        with pytest.raises(ValueError, match="no range of a buffer"):
            client_kernel.decode_consumer_records(data, position, end, 1, 0, 0, None, "t", 0, 0, 0)
        with pytest.raises(ValueError, match="no range of a buffer"):
            client_kernel.ColumnFiller(5).fill(data, position, end, 1, 0, 0, None, 0, 0, 0)


def outcomes(kernel: SimpleNamespace, data: bytes, count: int, base: int, start: int) -> list[object]:
    span = (data, 0, len(data), count, base, base)
    results: list[object] = []
    for append_time in (None, 7):
        try:
            results.append(kernel.decode_consumer_records(*span, append_time, "t", 0, 1, start))
        except InvalidRecords as error:
            results.append(error.message)
        for rows_max, headers in ((2, False), (2, True), (50, True)):
            filler = kernel.ColumnFiller(rows_max, 40, headers)
            try:
                results.append(filler.fill(*span, append_time, 0, 1, start))
            except InvalidRecords as error:
                results.append(error.message)
            results += [filler.rows, filler.full, filler.next_offset, filler.take()]
    return results


class TestBothKernelsAgree:
    @settings(parent=per_kernel, max_examples=300)
    @given(data=st.binary(max_size=60), count=st.integers(-1, 5), base=st.integers(0, 2**63 - 1))
    def test_on_noise(
        self, both_kernels: tuple[SimpleNamespace, SimpleNamespace], data: bytes, count: int, base: int
    ) -> None:
        pure, compiled = both_kernels
        assert outcomes(pure, data, count, base, 0) == outcomes(compiled, data, count, base, 0)

    @settings(parent=per_kernel, max_examples=300)
    @given(items=record_lists, seed=st.integers(0, 2**32), start=st.integers(0, 20))
    def test_on_damaged_records(
        self, both_kernels: tuple[SimpleNamespace, SimpleNamespace], items: list[Record], seed: int, start: int
    ) -> None:
        pure, compiled = both_kernels
        rng = random.Random(seed)
        data = bytearray(encode(items))
        for _ in range(rng.randrange(3)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        damaged = bytes(data[: len(data) - rng.randrange(3)])
        assert outcomes(pure, damaged, len(items), 1000, 1000 + start) == outcomes(
            compiled, damaged, len(items), 1000, 1000 + start
        )
