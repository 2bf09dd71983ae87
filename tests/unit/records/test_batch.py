"""The header, in-place changes, building and reading, with batches of other clients as the measure."""

from __future__ import annotations

from types import ModuleType

import pytest
from aiokafka.record.default_records import _DefaultRecordBatchBuilderPy, _DefaultRecordBatchPy  # type: ignore[import-untyped]
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder  # type: ignore[import-untyped]

from penstock.base.errors import ErrorCode, KafkaError
from penstock.records.batch import (
    HEADER_SIZE,
    BatchHeader,
    TimestampType,
    crc_is_valid,
    increment_sequence,
    iter_batches,
    read_header,
    set_base_offset_and_epoch,
    set_max_timestamp,
)
from penstock.records.builder import (
    ControlType,
    EndTransactionMarker,
    build_batch,
    end_transaction_marker,
    find_record_by_timestamp,
    read_end_transaction_marker,
    read_records,
)
from penstock.records.compression import Codec
from penstock.records.record import DecodedRecord, Record

NOW = 1_700_000_000_000
per_kernel = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)

blobs = st.one_of(st.none(), st.binary(max_size=200))
headers = st.lists(st.tuples(st.text(max_size=10), blobs), max_size=3).map(tuple)
record_lists = st.lists(st.builds(Record, st.integers(0, 2**42), blobs, blobs, headers), min_size=1, max_size=20)


def with_javas_leader_epoch(batch: bytes) -> bytes:
    """Python clients write 0 for the leader epoch that a broker sets, Java and we write -1; no CRC covers it."""
    changed = bytearray(batch)
    set_base_offset_and_epoch(changed, 0, 0, -1)
    return bytes(changed)


@per_kernel
@given(items=record_lists)
def test_plain_batches_are_those_of_kafka_python(kernel: ModuleType, items: list[Record]) -> None:
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=False,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=1 << 20,
    )
    for offset, item in enumerate(items):
        builder.append(offset, item.timestamp, item.key, item.value, list(item.headers))
    assert build_batch(items) == with_javas_leader_epoch(builder.build())


@per_kernel
@given(items=record_lists)
def test_plain_batches_are_those_of_aiokafka(kernel: ModuleType, items: list[Record]) -> None:
    builder = _DefaultRecordBatchBuilderPy(2, 0, 1, 5, 2, 7, 1 << 20)
    for offset, item in enumerate(items):
        builder.append(offset, item.timestamp, item.key, item.value, list(item.headers))
    ours = build_batch(items, transactional=True, producer_id=5, producer_epoch=2, base_sequence=7)
    assert ours == with_javas_leader_epoch(builder.build())


@pytest.mark.parametrize("codec", list(Codec))
@per_kernel
@given(items=record_lists, base_offset=st.integers(0, 2**62))
def test_round_trip_with_every_codec(kernel: ModuleType, codec: Codec, items: list[Record], base_offset: int) -> None:
    batch = build_batch(items, codec=codec, base_offset=base_offset)
    header = read_header(batch)
    assert header.codec is codec
    assert (header.base_offset, header.last_offset, header.count) == (
        base_offset,
        base_offset + len(items) - 1,
        len(items),
    )
    assert header.next_offset == base_offset + len(items)
    assert crc_is_valid(batch, 0, len(batch))
    expected = [DecodedRecord(base_offset + index, *item) for index, item in enumerate(items)]
    assert read_records(batch, 0, header) == expected
    assert read_records(memoryview(b"??" + batch + b"!!"), 2, header) == expected


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_other_clients_read_our_batches(kernel: ModuleType, codec: Codec) -> None:
    items = [Record(NOW + index, b"k%d" % index, b"v" * index, (("h", b"x"), ("n", None))) for index in range(50)]
    batch = build_batch(items, codec=codec, base_offset=300)
    for reader in (DefaultRecordBatch(batch), _DefaultRecordBatchPy(bytearray(batch))):
        assert reader.validate_crc()
        theirs = [(r.offset, r.timestamp, r.key, r.value, tuple(r.headers)) for r in reader]
        assert theirs == [(300 + index, *item) for index, item in enumerate(items)]


def test_header_fields_and_flags() -> None:
    batch = build_batch(
        [Record(NOW, b"k", b"v"), Record(NOW - 5, None, None)],
        base_offset=7,
        codec=Codec.LZ4,
        producer_id=11,
        producer_epoch=3,
        base_sequence=2**31 - 1,
        transactional=True,
        leader_epoch=4,
    )
    header = read_header(batch)
    assert isinstance(header, BatchHeader)
    assert header.size_in_bytes == len(batch) == header.length + 12
    assert (header.leader_epoch, header.magic, header.base_timestamp, header.max_timestamp) == (4, 2, NOW, NOW)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (11, 3, 2**31 - 1)
    assert header.last_sequence == 0
    assert header.has_producer_id
    assert header.is_transactional
    assert not header.is_control
    assert header.timestamp_type == "CreateTime"
    assert header.delete_horizon_ms is None
    assert header._replace(attributes=0x40).delete_horizon_ms == NOW


def test_defaults_mean_no_producer() -> None:
    header = read_header(build_batch([Record(NOW, None, b"v")]))
    assert not header.has_producer_id
    assert header.last_sequence == -1
    assert header.leader_epoch == -1


def test_an_unknown_codec_is_a_damaged_batch() -> None:
    header = read_header(build_batch([Record(NOW, None, b"v")]))._replace(attributes=6)
    with pytest.raises(KafkaError, match="unknown codec 6") as caught:
        _ = header.codec
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


def test_an_empty_batch_as_compaction_leaves_it(kernel: ModuleType) -> None:
    batch = build_batch([], producer_id=1, producer_epoch=0, base_sequence=5)
    assert len(batch) == HEADER_SIZE
    assert read_records(batch, 0, read_header(batch)) == []
    assert find_record_by_timestamp(batch, 0, read_header(batch), 0) is None


def test_sequences_wrap() -> None:
    assert increment_sequence(5, 3) == 8
    assert increment_sequence(2**31 - 1, 1) == 0
    assert increment_sequence(2**31 - 2, 3) == 1


def test_base_offset_and_epoch_need_no_new_checksum() -> None:
    batch = bytearray(b"--" + build_batch([Record(NOW, b"k", b"v")]))
    set_base_offset_and_epoch(batch, 2, 2**40, 9)
    header = read_header(batch, 2)
    assert (header.base_offset, header.leader_epoch) == (2**40, 9)
    assert crc_is_valid(batch, 2, len(batch) - 2)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_log_append_time_is_everybodys_timestamp(kernel: ModuleType, codec: Codec) -> None:
    batch = bytearray(build_batch([Record(5, b"k", b"v"), Record(9, b"k", b"v")], codec=codec))
    header = set_max_timestamp(batch, 0, len(batch), TimestampType.LOG_APPEND_TIME, NOW)
    assert header == read_header(batch)
    assert header.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert header.codec is codec
    assert crc_is_valid(batch, 0, len(batch))
    assert [record.timestamp for record in read_records(batch, 0, header)] == [NOW, NOW]
    assert find_record_by_timestamp(batch, 0, header, NOW) == (NOW, 0)
    assert find_record_by_timestamp(batch, 0, header, NOW + 1) is None


def test_built_with_log_append_time() -> None:
    batch = build_batch([Record(5, b"k", b"v")], timestamp_type="LogAppendTime", log_append_time=NOW)
    header = read_header(batch)
    assert (header.timestamp_type, header.base_timestamp, header.max_timestamp) == ("LogAppendTime", 5, NOW)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.SNAPPY])
def test_find_record_by_timestamp(kernel: ModuleType, codec: Codec) -> None:
    batch = build_batch([Record(t, b"k", b"v") for t in (10, 30, 20, 30)], codec=codec, base_offset=100)
    header = read_header(batch)
    assert find_record_by_timestamp(batch, 0, header, 0) == (10, 100)
    assert find_record_by_timestamp(batch, 0, header, 11) == (30, 101)
    assert find_record_by_timestamp(batch, 0, header, header.max_timestamp) == (30, 101)
    assert find_record_by_timestamp(batch, 0, header, 31) is None


def test_crc_is_valid_notices_damage_and_truncation() -> None:
    batch = bytearray(build_batch([Record(NOW, b"k", b"v")]))
    assert crc_is_valid(batch, 0, len(batch))
    assert not crc_is_valid(batch, 0, len(batch) + 1)
    assert not crc_is_valid(batch, 0, HEADER_SIZE - 1)
    batch[-1] ^= 1
    assert not crc_is_valid(batch, 0, len(batch))


class TestIterBatches:
    ONE = build_batch([Record(NOW, b"k", b"v")], base_offset=0)
    TWO = build_batch([Record(NOW, b"k", b"v" * 50)], base_offset=1)

    def test_whole_batches(self) -> None:
        found = list(iter_batches(self.ONE + self.TWO))
        assert [(position, header.base_offset) for position, header in found] == [(0, 0), (len(self.ONE), 1)]

    @pytest.mark.parametrize("cut", [1, 30, 60, 61, 100])
    def test_a_partial_batch_at_the_end_is_not_given(self, cut: int) -> None:
        assert len(list(iter_batches(self.ONE + self.TWO[:cut]))) == 1

    @pytest.mark.parametrize(("position", "byte"), [(16, 1), (8, 0xFF), (11, 1)])
    def test_what_is_no_batch_raises(self, position: int, byte: int) -> None:
        data = bytearray(self.ONE)
        data[position] = byte
        with pytest.raises(KafkaError, match="No record batch at position 0") as caught:
            list(iter_batches(data))
        assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


class TestTransactionMarkers:
    @pytest.mark.parametrize("control_type", list(ControlType))
    def test_round_trip(self, kernel: ModuleType, control_type: ControlType) -> None:
        batch = end_transaction_marker(
            control_type, producer_id=7, producer_epoch=2, coordinator_epoch=33, timestamp=NOW, base_offset=12
        )
        header = read_header(batch)
        assert header.is_control
        assert header.is_transactional
        assert header.base_sequence == -1
        # Java's marker batch has 78 bytes: 61 of header and one record of 17.
        assert len(batch) == 78
        assert read_end_transaction_marker(batch, 0, header) == EndTransactionMarker(control_type, 33)

    def test_other_control_records_are_no_markers(self, kernel: ModuleType) -> None:
        batch = build_batch([Record(NOW, b"\x00\x00\x00\x02", b"leader change")], control=True)
        assert read_end_transaction_marker(batch, 0, read_header(batch)) is None
        assert read_end_transaction_marker(build_batch([], control=True), 0, read_header(build_batch([]))) is None

    @pytest.mark.parametrize(("key", "value"), [(None, b""), (b"\x00", b""), (b"\x00\x00\x00\x01", b"\x00\x00")])
    def test_malformed_ones(self, kernel: ModuleType, key: bytes | None, value: bytes) -> None:
        batch = build_batch([Record(NOW, key, value)], control=True)
        with pytest.raises(KafkaError):
            read_end_transaction_marker(batch, 0, read_header(batch))


class TestReadingDamagedBatches:
    def test_cut_off(self, kernel: ModuleType) -> None:
        batch = build_batch([Record(NOW, b"k", b"v")])
        with pytest.raises(KafkaError, match="cut off") as caught:
            read_records(batch[:-1], 0, read_header(batch))
        assert caught.value.code is ErrorCode.CORRUPT_MESSAGE

    def test_not_decompressible(self, kernel: ModuleType) -> None:
        batch = build_batch([Record(NOW, b"k", b"v")])
        with pytest.raises(KafkaError, match="cannot be decompressed") as caught:
            read_records(batch, 0, read_header(batch)._replace(attributes=1))
        assert caught.value.code is ErrorCode.CORRUPT_MESSAGE

    def test_larger_than_the_reader_allows(self, kernel: ModuleType) -> None:
        batch = build_batch([Record(NOW, b"k", bytes(100_000))], codec=Codec.ZSTD)
        with pytest.raises(KafkaError, match="more than 50000 bytes") as caught:
            read_records(batch, 0, read_header(batch), max_bytes=50_000)
        assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE
