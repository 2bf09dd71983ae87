"""Batches that grow: what they hold, when they are full, and that columns give the same bytes as objects."""

from __future__ import annotations

import threading
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.records import pure_kernel
from penstock.records.arrow_access import BadColumn
from penstock.records.batch import crc_is_valid, read_header
from penstock.records.builder import build_batch, read_records
from penstock.records.columns import BinaryColumn
from penstock.records.compression import Codec, lz4_frame_defect
from penstock.records.record import Record
from penstock.records.sealing import reseal, seal
from tests.unit.records.strategies import (
    HEADERS,
    WIDE_HEADERS,
    binary_column,
    header_column,
    header_dicts,
    long_column,
    per_kernel,
    record_lists,
)

HEADER_SIZE = 61
NO_BOUND = 1 << 30


def written(kernel: SimpleNamespace, items: list[Record], size_max: int = NO_BOUND) -> bytes:
    writer = kernel.BatchWriter(size_max)
    writer.extend(items, 0)
    return bytes(writer.take())


@per_kernel
@given(items=record_lists, size_max=st.integers(0, 2000))
def test_a_writer_takes_what_fits_and_never_refuses_the_first(
    client_kernel: SimpleNamespace, items: list[Record], size_max: int
) -> None:
    writer = client_kernel.BatchWriter(size_max)
    indices = [writer.append(*item) for item in items]
    taken = [item for item, index in zip(items, indices, strict=True) if index >= 0]
    assert indices[0] == 0
    assert [index for index in indices if index >= 0] == list(range(len(taken)))
    plain, max_timestamp = pure_kernel.encode_records(taken, taken[0].timestamp, HEADER_SIZE)
    assert writer.count == len(taken)
    assert writer.size == len(plain)
    assert writer.base_timestamp == taken[0].timestamp
    assert writer.max_timestamp == max_timestamp
    assert len(taken) == 1 or writer.size <= size_max
    assert writer.take() == plain
    refused = items[indices.index(-1)] if -1 in indices else None
    if refused is not None:
        before = taken[: indices.index(-1)]
        larger, _ = pure_kernel.encode_records([*before, refused], before[0].timestamp, HEADER_SIZE)
        assert len(larger) > size_max


@per_kernel
@given(items=record_lists, size_max=st.integers(0, 2000), start=st.integers(0, 25))
def test_extend_is_append_again_and_again(
    client_kernel: SimpleNamespace, items: list[Record], size_max: int, start: int
) -> None:
    writer = client_kernel.BatchWriter(size_max)
    start = min(start, len(items))
    taken = writer.extend(items, start)
    one_by_one = client_kernel.BatchWriter(size_max)
    expected = 0
    for item in items[start:]:
        if one_by_one.append(*item) < 0:
            break
        expected += 1
    assert taken == expected
    assert writer.take() == one_by_one.take()


@per_kernel
@given(items=record_lists, size_max=st.integers(0, 2000), data=st.data(), keyed=st.booleans())
def test_values_go_in_by_rows(
    client_kernel: SimpleNamespace, items: list[Record], size_max: int, data: st.DataObject, keyed: bool
) -> None:
    keys = [item.key for item in items] if keyed else None
    values = [item.value for item in items]
    rows = data.draw(st.none() | st.lists(st.integers(0, len(items) - 1), max_size=30))
    length = len(items) if rows is None else len(rows)
    stop = data.draw(st.integers(0, length))
    start = data.draw(st.integers(0, stop))
    chosen = (rows if rows is not None else list(range(length)))[start:stop]
    expected = client_kernel.BatchWriter(size_max)
    count = expected.extend([Record(7, keys[at] if keys else None, values[at]) for at in chosen], 0)
    writer = client_kernel.BatchWriter(size_max)
    buffer = None if rows is None else memoryview(b"".join(row.to_bytes(8, "little") for row in rows))
    assert writer.extend_values(7, keys, values, start, stop, buffer) == count
    assert writer.take() == expected.take()


def test_a_taken_writer_is_finished(client_kernel: SimpleNamespace) -> None:
    writer = client_kernel.BatchWriter(100)
    writer.append(1, b"k", b"v")
    assert isinstance(writer.take(), bytearray)
    assert writer.append(1, b"k", b"v") == -1
    assert writer.extend([Record(1, None, None)], 0) == 0
    assert writer.extend_values(1, None, [b"v"], 0, 1) == 0
    assert client_kernel.encode_columns(writer, None, None, None, None, 0, 5) == 0
    with pytest.raises(ValueError, match="taken already"):
        writer.take()


def test_headers_may_be_none_and_bytes_of_any_kind(client_kernel: SimpleNamespace) -> None:
    plain = written(client_kernel, [Record(1, b"k", b"v"), Record(2, b"k", b"v", (("h", b"x"),))])
    writer = client_kernel.BatchWriter(NO_BOUND)
    writer.append(1, bytearray(b"k"), memoryview(b"v"), None)
    writer.append(2, b"k", b"v", [("h", bytearray(b"x"))])
    assert writer.take() == plain


@pytest.mark.parametrize(
    ("record", "error"),
    [
        ((2**63, b"", b""), OverflowError),
        ((0, "text", b""), TypeError),
        ((0, b"", 5), TypeError),
        ((0, b"", b"", ((b"bytes", b""),)), TypeError),
        (("now", b"", b""), TypeError),
    ],
)
def test_what_no_batch_can_hold_leaves_the_batch_as_it_was(
    client_kernel: SimpleNamespace, record: Any, error: type[Exception]
) -> None:
    writer = client_kernel.BatchWriter(NO_BOUND)
    writer.append(1, b"k", b"v")
    with pytest.raises(error):
        writer.append(*record)
    assert writer.count == 1
    assert writer.take() == written(client_kernel, [Record(1, b"k", b"v")])


def test_ranges_outside_of_the_rows_are_refused(client_kernel: SimpleNamespace) -> None:
    writer = client_kernel.BatchWriter(NO_BOUND)
    column = binary_column(pa.array([b"a", b"b"]))
    for start, stop in ((-1, 1), (1, 0), (0, 3)):
        with pytest.raises(ValueError, match="no range of"):
            writer.extend_values(1, None, [b"a", b"b"], start, stop)
        with pytest.raises(ValueError, match="no range of"):
            client_kernel.encode_columns(writer, None, column, None, None, start, stop)
    with pytest.raises(ValueError, match="no range of"):
        writer.extend([], 1)
    for row in (-1, 2, 2**62):
        rows = row.to_bytes(8, "little", signed=True)
        with pytest.raises(ValueError, match="no row of 2"):
            writer.extend_values(1, None, [b"a", b"b"], 0, 1, rows)
        with pytest.raises(ValueError, match="no row of 2"):
            client_kernel.encode_columns(writer, None, column, None, None, 0, 1, rows=rows)
    assert writer.count == 0


@per_kernel
@given(items=record_lists, size_max=st.integers(0, 3000), data=st.data(), wide=st.booleans())
def test_columns_give_the_bytes_that_objects_give(
    client_kernel: SimpleNamespace, items: list[Record], size_max: int, data: st.DataObject, wide: bool
) -> None:
    cut = data.draw(st.integers(0, len(items)))
    binary = pa.large_binary() if wide else pa.binary()
    keys = pa.array([item.key for item in items], binary)[cut:]
    values = pa.array([item.value for item in items], binary)[cut:]
    stamps = pa.array([None if item.timestamp == -1 else item.timestamp for item in items], pa.int64())[cut:]
    headers = pa.array([header_dicts(item.headers) or None for item in items], WIDE_HEADERS if wide else HEADERS)[cut:]
    items = items[cut:]
    rows = data.draw(st.none() | st.permutations(range(len(items))))
    buffer = None if rows is None else b"".join(row.to_bytes(8, "little") for row in rows)
    writer = client_kernel.BatchWriter(size_max)
    columns = (binary_column(keys), binary_column(values), long_column(stamps), header_column(headers))
    count = client_kernel.encode_columns(writer, *columns, 0, len(items), -1, buffer)
    expected = client_kernel.BatchWriter(size_max)
    assert count == expected.extend([items[row] for row in rows] if rows is not None else items, 0)
    assert (writer.count, writer.base_timestamp, writer.max_timestamp) == (
        expected.count,
        expected.base_timestamp,
        expected.max_timestamp,
    )
    assert writer.take() == expected.take()


def test_columns_that_are_not_there_are_null(client_kernel: SimpleNamespace) -> None:
    writer = client_kernel.BatchWriter(NO_BOUND)
    assert client_kernel.encode_columns(writer, None, None, None, None, 0, 3, 9) == 3
    assert writer.take() == written(client_kernel, [Record(9, None, None)] * 3)


def test_many_rows_grow_the_batch_and_stop_at_its_bound(client_kernel: SimpleNamespace) -> None:
    values = [b"%d" % index for index in range(100_000)]
    column = binary_column(pa.array(values))
    writer = client_kernel.BatchWriter(600_000)
    count = client_kernel.encode_columns(writer, None, column, None, None, 0, len(values), 5)
    assert 30_000 < count < 100_000
    assert 600_000 - 20 < writer.size <= 600_000
    assert writer.take() == written(client_kernel, [Record(5, None, value) for value in values[:count]])


DAMAGED_OFFSETS = {
    "beyond the data": (0, 1, 9),
    "backwards": (0, 2, 1),
    "negative": (-1, 1, 2),
}


@pytest.mark.parametrize("name", DAMAGED_OFFSETS)
@pytest.mark.parametrize("wide", [False, True])
def test_damaged_columns_are_refused(client_kernel: SimpleNamespace, name: str, wide: bool) -> None:
    width = 8 if wide else 4
    offsets = b"".join(number.to_bytes(width, "little", signed=True) for number in DAMAGED_OFFSETS[name])
    column = BinaryColumn(length=2, offsets=offsets, data=b"ab", wide=wide)
    with pytest.raises(BadColumn):
        client_kernel.encode_columns(client_kernel.BatchWriter(NO_BOUND), None, column, None, None, 0, 2)
    with pytest.raises(BadColumn):
        client_kernel.partition_column(column, 3)
    headers = replace(header_column(pa.array([[], []], HEADERS)), offsets=offsets, wide=wide)
    with pytest.raises(BadColumn):
        client_kernel.encode_columns(client_kernel.BatchWriter(NO_BOUND), None, None, None, headers, 0, 2)


def test_columns_with_short_buffers_are_refused(client_kernel: SimpleNamespace) -> None:
    def encode(**columns: Any) -> None:
        given = [columns.get(name) for name in ("keys", "values", "timestamps", "headers")]
        client_kernel.encode_columns(client_kernel.BatchWriter(NO_BOUND), *given, 0, 2)

    good = binary_column(pa.array([b"a", b"b", None]))
    longs = long_column(pa.array([1, 2, None]))
    for bad in (
        {"values": replace(good, offset=1)},
        {"values": replace(good, length=2, offset=2**61)},
        {"keys": replace(good, offset=-1)},
        {"keys": replace(good, length=9)},
        {"keys": replace(good, length=9, offsets=bytes(100))},
        {"timestamps": replace(longs, data=bytes(15), length=2)},
        {"timestamps": replace(longs, length=1000, data=bytes(8000))},
    ):
        with pytest.raises(BadColumn):
            encode(**bad)


def test_header_keys_of_columns_must_be_text(client_kernel: SimpleNamespace) -> None:
    def encode(key: bytes | None) -> None:
        struct = pa.struct([("key", pa.binary()), ("value", pa.binary())])
        headers = header_column(pa.array([[{"key": key, "value": b"x"}]], pa.list_(struct)))
        client_kernel.encode_columns(client_kernel.BatchWriter(NO_BOUND), None, None, None, headers, 0, 1)

    encode("ключ".encode())
    with pytest.raises(BadColumn, match="not UTF-8"):
        encode(b"\xff")
    with pytest.raises(BadColumn, match="no key"):
        encode(None)


@per_kernel
@given(
    offsets=st.lists(st.integers(-3, 12), min_size=4, max_size=4),
    validity=st.none() | st.binary(max_size=1),
    offset=st.integers(-1, 2),
    length=st.integers(-1, 4),
)
def test_both_kernels_agree_on_noise_columns(
    both_kernels: tuple[SimpleNamespace, SimpleNamespace],
    offsets: list[int],
    validity: bytes | None,
    offset: int,
    length: int,
) -> None:
    packed = b"".join(number.to_bytes(4, "little", signed=True) for number in offsets)
    column = BinaryColumn(length=length, offsets=packed, data=b"0123456789", validity=validity, offset=offset)

    def outcome(kernel: SimpleNamespace) -> object:
        writer = kernel.BatchWriter(NO_BOUND)
        try:
            return kernel.encode_columns(writer, None, column, None, None, 0, max(length, 0)), bytes(writer.take())
        except ValueError as error:
            return str(error), bytes(writer.take())

    pure, compiled = both_kernels
    assert outcome(pure) == outcome(compiled)


def test_a_writer_in_use_by_another_thread_says_so_or_waits(client_kernel: SimpleNamespace) -> None:
    values = pa.array([b"x" * 20] * 200_000)
    writer = client_kernel.BatchWriter(NO_BOUND)
    if client_kernel.label == "pure":
        pytest.skip("only the compiled kernel lets other threads run")
    outcomes: set[str] = set()
    done = threading.Event()

    def disturb() -> None:
        while not done.is_set():
            try:
                writer.append(1, None, b"y")
            except RuntimeError:
                outcomes.add("busy")

    thread = threading.Thread(target=disturb)
    thread.start()
    client_kernel.encode_columns(writer, None, binary_column(values), None, None, 0, len(values), 5)
    done.set()
    thread.join(10)
    count = writer.count
    batch = seal(writer.take(), count=count, base_timestamp=5, max_timestamp=5)
    assert len(read_records(batch, 0, read_header(batch))) == count


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("level", [None, 1, 5])
def test_sealed_batches_are_those_of_the_builder(
    client_kernel: SimpleNamespace, codec: Codec, level: int | None
) -> None:
    items = [Record(1000 + index, b"k%d" % index, b"v" * 50, (("h", b"x"),)) for index in range(300)]
    writer = client_kernel.BatchWriter(NO_BOUND)
    writer.extend(items, 0)
    identity = {"producer_id": 7, "producer_epoch": 2, "base_sequence": 99, "transactional": True}
    stamps = {"base_timestamp": writer.base_timestamp, "max_timestamp": writer.max_timestamp}
    batch = seal(writer.take(), count=300, codec=codec, level=level, **stamps, **identity)  # type: ignore[arg-type]
    assert batch == build_batch(items, codec=codec, level=level, **identity)  # type: ignore[arg-type]
    if codec is Codec.LZ4:
        assert lz4_frame_defect(batch[HEADER_SIZE:]) is None


def test_reseal_changes_the_identity_and_the_checksum(client_kernel: SimpleNamespace) -> None:
    items = [Record(5, b"k", b"v")]
    writer = client_kernel.BatchWriter(NO_BOUND)
    writer.append(*items[0])
    batch = seal(writer.take(), count=1, base_timestamp=5, max_timestamp=5, producer_id=1, producer_epoch=0)
    reseal(batch, producer_id=8, producer_epoch=3, base_sequence=2**31 - 1)
    header = read_header(batch)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (8, 3, 2**31 - 1)
    assert crc_is_valid(batch, 0, len(batch))
    assert batch == build_batch(items, producer_id=8, producer_epoch=3, base_sequence=2**31 - 1)
