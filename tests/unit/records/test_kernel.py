"""The inner loop: what it accepts, what it refuses, and that both kernels agree on every byte string."""

from __future__ import annotations

import random
from types import ModuleType

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from penstock.records import pure_kernel
from penstock.records.errors import InvalidRecords
from penstock.records.record import DecodedRecord, Record

try:
    from penstock.records import _kernel
except ImportError:
    _kernel = None  # type: ignore[assignment]

per_kernel = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)

int64s = st.integers(-(2**63), 2**63 - 1)
timestamps = st.one_of(st.integers(-2, 2**41), int64s)
blobs = st.one_of(st.none(), st.binary(max_size=40), st.binary(min_size=60, max_size=300))
header_lists = st.lists(st.tuples(st.text(max_size=10), st.one_of(st.none(), st.binary(max_size=100))), max_size=4)
records = st.builds(Record, timestamps, blobs, blobs, header_lists.map(tuple))
record_lists = st.lists(records, min_size=1, max_size=12)


def varint(value: int) -> bytes:
    raw = value << 1 ^ value >> 63
    output = bytearray()
    while raw >= 0x80:
        output.append(raw & 0x7F | 0x80)
        raw >>= 7
    output.append(raw)
    return bytes(output)


def sized(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data


def record_bytes(
    *,
    offset_delta: int = 0,
    timestamp_delta: int = 0,
    key: bytes | None = b"k",
    value: bytes | None = b"v",
    headers: bytes = b"\x00",
    size_error: int = 0,
) -> bytes:
    body = b"\x00" + varint(timestamp_delta) + varint(offset_delta) + sized(key) + sized(value) + headers
    return varint(len(body) + size_error) + body


def walk(kernel: ModuleType, data: bytes, count: int, *, require_keys: bool = False) -> tuple[int, int, int]:
    result: tuple[int, int, int] = kernel.walk_records(data, 0, len(data), count, 1000, require_keys)
    return result


def wrap(value: int) -> int:
    return (value + 2**63) % 2**64 - 2**63


@per_kernel
@given(items=record_lists, reserve=st.integers(0, 70))
def test_records_survive_a_round_trip(kernel: ModuleType, items: list[Record], reserve: int) -> None:
    base_timestamp = items[0].timestamp
    data, max_timestamp = kernel.encode_records(items, base_timestamp, reserve)
    assert isinstance(data, bytearray)
    assert bytes(data[:reserve]) == bytes(reserve)
    decoded = kernel.decode_records(data, reserve, len(data), len(items), 500, base_timestamp, None)
    assert decoded == [DecodedRecord(500 + index, *item) for index, item in enumerate(items)]
    assert all(type(record) is DecodedRecord for record in decoded)
    assert max_timestamp == max(-1, *(item.timestamp for item in items))
    walked = kernel.walk_records(memoryview(data), reserve, len(data), len(items), base_timestamp, False)
    stamped = [item.timestamp for item in items if item.timestamp != -1]
    assert walked == (max_timestamp, min(stamped, default=2**63 - 1), -1)


@per_kernel
@given(items=record_lists, target=timestamps)
def test_find_timestamp_gives_the_first_record_at_or_after_it(
    kernel: ModuleType, items: list[Record], target: int
) -> None:
    data, _ = kernel.encode_records(items, items[0].timestamp, 0)
    found = kernel.find_timestamp(data, 0, len(data), len(items), items[0].timestamp, target)
    expected = next(((i, item.timestamp) for i, item in enumerate(items) if item.timestamp >= target), None)
    assert found == expected


def test_log_append_time_replaces_every_timestamp(kernel: ModuleType) -> None:
    data, _ = kernel.encode_records([Record(5, b"a", None), Record(9, None, b"b")], 5, 0)
    decoded = kernel.decode_records(data, 0, len(data), 2, 0, 5, 77)
    assert [record.timestamp for record in decoded] == [77, 77]


def test_header_keys_that_are_not_utf8_are_read_with_replacement_characters(kernel: ModuleType) -> None:
    data = record_bytes(headers=varint(1) + sized(b"\xff") + sized(b"x"))
    (record,) = kernel.decode_records(data, 0, len(data), 1, 0, 0, None)
    assert record.headers == (("�", b"x"),)


def test_any_negative_size_means_null_as_in_kafka(kernel: ModuleType) -> None:
    body = b"\x00" + varint(0) + varint(0) + varint(-5) + varint(-9) + b"\x00"
    data = varint(len(body)) + body
    assert walk(kernel, data, 1, require_keys=True)[2] == 0
    (record,) = kernel.decode_records(data, 0, len(data), 1, 0, 0, None)
    assert record.key is None
    assert record.value is None


def test_timestamps_wrap_as_javas_do(kernel: ModuleType) -> None:
    data = record_bytes(timestamp_delta=2**63 - 1)
    assert kernel.walk_records(data, 0, len(data), 1, 2**63 - 1, False) == (-1, -2, -1)


def test_a_record_without_a_key_is_reported_and_does_not_count_for_the_timestamps(kernel: ModuleType) -> None:
    data = b"".join(
        (
            record_bytes(timestamp_delta=1),
            record_bytes(offset_delta=1, timestamp_delta=50, key=None),
            record_bytes(offset_delta=2, timestamp_delta=-50, key=None),
        )
    )
    assert walk(kernel, data, 3, require_keys=True) == (1001, 1001, 1)
    assert walk(kernel, data, 3) == (1050, 950, -1)


def test_list_rejected_names_records_up_to_the_limit(kernel: ModuleType) -> None:
    data = b"".join(
        record_bytes(offset_delta=index, timestamp_delta=delta, key=key)
        for index, (delta, key) in enumerate([(0, b"k"), (5, b"k"), (9, None), (-1001, b"k"), (-9, b"k")])
    )
    arguments = (data, 0, len(data), 5, 1000)
    assert kernel.list_rejected(*arguments, True, 999, 1001, 10) == [(1, 1005), (2, None), (4, 991)]
    assert kernel.list_rejected(*arguments, False, 999, 1001, 10) == [(1, 1005), (2, 1009), (4, 991)]
    assert kernel.list_rejected(*arguments, False, 999, 1001, 2) == [(1, 1005), (2, 1009)]


GOOD = record_bytes()
HUGE_VARINT = b"\xff\xff\xff\xff\xff\x0f"
LYING = {
    "nothing where a record should be": (b"", 1, "Record 0 has a variable-length number"),
    "fewer records than declared": (GOOD, 2, "Record 1 has a variable-length number"),
    "a huge declared count": (GOOD, 2**31 - 1, "Record 1 has a variable-length number"),
    "more records than declared": (GOOD + record_bytes(offset_delta=1), 1, "Bytes remain after the 1 records"),
    "trailing bytes": (GOOD + b"\x00", 1, "Bytes remain after the 1 records"),
    "size beyond the batch": (record_bytes(size_error=1), 1, "Record 0 claims a size"),
    "size below the fields": (record_bytes(size_error=-1), 1, "Record 0"),
    "size above the fields": (record_bytes(size_error=1) + b"\x00", 1, "Record 0 is longer than its fields"),
    "negative size": (varint(-1) + GOOD, 1, "Record 0 claims a size"),
    "empty record": (b"\x00" + GOOD, 1, "Record 0 has a key, value or header"),
    "record of one byte": (b"\x02\x00", 1, "Record 0 has a variable-length number"),
    "wrong first delta": (record_bytes(offset_delta=1), 1, "Record 0 does not have the offset delta 0"),
    "repeated delta": (GOOD + GOOD, 2, "Record 1 does not have the offset delta 1"),
    "gap": (GOOD + record_bytes(offset_delta=2), 2, "Record 1 does not have the offset delta 1"),
    "negative delta": (record_bytes(offset_delta=-1), 1, "Record 0 does not have the offset delta 0"),
    "six-byte varint as size": (HUGE_VARINT + GOOD, 1, "Record 0 has a variable-length number"),
    "eleven-byte varlong": (
        (lambda body: varint(len(body)) + body)(b"\x00" + b"\x80" * 10 + b"\x00" * 5),
        1,
        "Record 0 has a variable-length number",
    ),
    "key beyond the record": (
        (lambda body: varint(len(body)) + body)(b"\x00\x00\x00" + varint(100) + b"kk\x00"),
        1,
        "Record 0 has a key, value or header",
    ),
    "value beyond the record": (
        (lambda body: varint(len(body)) + body)(b"\x00\x00\x00\x01" + varint(2**31 - 1) + b"\x00"),
        1,
        "Record 0 has a key, value or header",
    ),
    "negative header count": (record_bytes(headers=varint(-1)), 1, "Record 0 claims an impossible number of headers"),
    "huge header count": (
        record_bytes(headers=varint(2**31 - 1)),
        1,
        "Record 0 claims an impossible number of headers",
    ),
    "header with a null key": (
        record_bytes(headers=varint(1) + varint(-1) + sized(b"")),
        1,
        "Record 0 has a header with a negative key size",
    ),
    "header key beyond the record": (
        record_bytes(headers=varint(1) + varint(50) + b"x"),
        1,
        "Record 0 has a key, value or header",
    ),
    "header without a value": (record_bytes(headers=varint(1) + sized(b"x")), 1, "Record 0 has a variable-length"),
    "fewer headers than bytes": (
        record_bytes(headers=varint(0) + sized(b"x")),
        1,
        "Record 0 is longer than its fields",
    ),
}


@pytest.mark.parametrize("name", LYING)
def test_lying_records_are_refused(kernel: ModuleType, name: str) -> None:
    data, count, message = LYING[name]
    with pytest.raises(InvalidRecords, match=message):
        walk(kernel, data, count)


def test_a_range_outside_the_buffer_is_a_mistake_of_the_caller(kernel: ModuleType) -> None:
    for position, end in ((-1, 1), (0, len(GOOD) + 1), (5, 4)):
        with pytest.raises(ValueError, match="no range of a buffer"):
            kernel.walk_records(GOOD, position, end, 1, 0, False)
        with pytest.raises(ValueError, match="no range of a buffer"):
            kernel.decode_records(GOOD, position, end, 1, 0, 0, None)


def test_keys_and_values_may_be_any_bytes_like_object(kernel: ModuleType) -> None:
    plain, _ = kernel.encode_records([Record(1, b"key", b"value", (("h", b"x"),))], 1, 0)
    other, _ = kernel.encode_records([(1, bytearray(b"key"), memoryview(b"value"), [("h", bytearray(b"x"))])], 1, 0)
    assert plain == other


@pytest.mark.parametrize(
    ("record", "error"),
    [
        (Record(2**63, b"", b""), OverflowError),
        (Record(-(2**63) - 1, b"", b""), OverflowError),
        (Record(0, "text", b""), TypeError),  # type: ignore[arg-type]
        (Record(0, b"", b"", ((b"bytes", b""),)), TypeError),  # type: ignore[arg-type]
    ],
)
def test_values_that_no_batch_can_hold(kernel: ModuleType, record: Record, error: type[Exception]) -> None:
    with pytest.raises(error):
        kernel.encode_records([record], 0, 0)


def outcome(kernel: ModuleType, function: str, *arguments: object) -> object:
    try:
        return getattr(kernel, function)(*arguments)
    except InvalidRecords as error:
        return error.message


def assert_kernels_agree(data: bytes, count: int, base: int) -> None:
    span = (data, 0, len(data), count)
    for function, rest in (
        ("walk_records", (base, False)),
        ("walk_records", (base, True)),
        ("decode_records", (base, base, None)),
        ("decode_records", (base, base, 7)),
        ("find_timestamp", (base, base)),
        ("list_rejected", (base, True, base - 5, min(base + 5, 2**63 - 1), 3)),
    ):
        assert outcome(pure_kernel, function, *span, *rest) == outcome(_kernel, function, *span, *rest), function


@pytest.mark.skipif(_kernel is None, reason="the compiled kernel is not built: `pip install -e .` with a C compiler")
class TestBothKernelsAgree:
    @settings(deadline=None, max_examples=400)
    @given(data=st.binary(max_size=60), count=st.integers(-1, 5), base=st.integers(0, 2**63 - 1))
    @example(data=b"\x80" * 12, count=1, base=0)
    def test_on_noise(self, data: bytes, count: int, base: int) -> None:
        assert_kernels_agree(data, count, base)

    @settings(deadline=None, max_examples=300)
    @given(items=record_lists, seed=st.integers(0, 2**32), cut=st.integers(0, 40))
    def test_on_damaged_records(self, items: list[Record], seed: int, cut: int) -> None:
        base = 1_000_000
        data, _ = pure_kernel.encode_records(items, base, 0)
        assert (data, _) == _kernel.encode_records(items, base, 0)
        rng = random.Random(seed)
        for _ in range(rng.randrange(3)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        assert_kernels_agree(bytes(data[: len(data) - cut] if rng.random() < 0.3 else data), len(items), base)
