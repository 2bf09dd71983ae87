"""What a leader accepts. The codes were compared with what Apache Kafka 4.3.1 answers to the same bytes.

Where a code differs on purpose the test says so: Kafka takes wrong offset deltas and lying sizes inside compressed
batches, and answers UNKNOWN_SERVER_ERROR to data that does not decompress.
"""

from __future__ import annotations

import struct
from types import ModuleType
from typing import Any

import cramjam
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.base.errors import ErrorCode, KafkaError
from penstock.records import pure_kernel
from penstock.records.batch import (
    CRC_OFFSET,
    HEADER,
    HEADER_SIZE,
    BatchHeader,
    compute_crc,
    crc_is_valid,
    read_header,
)
from penstock.records.builder import build_batch, read_records
from penstock.records.compression import Codec, compress
from penstock.records.errors import RejectedRecords
from penstock.records.record import Record
from penstock.records.validation import (
    RECORD_ERRORS_MAX,
    ProduceRules,
    ValidatedBatch,
    trust_batch,
    validate_produced,
)

pytestmark = pytest.mark.usefixtures("kernel")

NOW = 1_700_000_000_000
HOUR = 3_600_000
PLAIN = ProduceRules()
COMPACTED = ProduceRules(compacted=True)
APPEND_TIME = ProduceRules(timestamp_type="LogAppendTime")
REAL_CODECS = [codec for codec in Codec if codec is not Codec.NONE]
TWO_RECORDS = [Record(NOW, b"k", b"v"), Record(NOW + 1, b"k2", b"v2")]
GOOD = build_batch(TWO_RECORDS)


def sealed(batch: bytes, **changes: Any) -> bytes:
    """The batch with other header fields and a fitting checksum."""
    changed = bytearray(batch)
    HEADER.pack_into(changed, 0, *read_header(changed)._replace(**changes))
    struct.pack_into(">I", changed, CRC_OFFSET, compute_crc(changed, 0, len(changed)))
    return bytes(changed)


def batch_of(records_part: bytes, count: int, codec: int = 0, **changes: Any) -> bytes:
    """A batch with any bytes in the place of the records."""
    header = BatchHeader(
        0, HEADER_SIZE + len(records_part) - 12, -1, 2, 0, codec, count - 1, NOW, NOW, -1, -1, -1, count
    )
    return sealed(HEADER.pack(*header) + records_part, **changes)


def plain_records(records: list[Record]) -> bytes:
    return bytes(pure_kernel.encode_records(records, NOW, 0)[0])


def check(batch: bytes, rules: ProduceRules = PLAIN, api_version: int = 9) -> ValidatedBatch:
    return validate_produced(memoryview(bytearray(batch)), rules, NOW, api_version)


def refusal(batch: bytes, rules: ProduceRules = PLAIN, api_version: int = 9) -> KafkaError:
    with pytest.raises(KafkaError) as caught:
        check(batch, rules, api_version)
    return caught.value


class TestInPlace:
    def test_a_good_batch_comes_back_where_it_was(self) -> None:
        field = memoryview(bytearray(GOOD))
        result = validate_produced(field, PLAIN, NOW)
        assert result.buffer is field
        assert result.header == read_header(GOOD)
        assert result.max_timestamp == NOW + 1
        assert bytes(field) == GOOD

    @pytest.mark.parametrize("codec", REAL_CODECS)
    def test_compressed_batches_are_opened_but_not_changed(self, codec: Codec) -> None:
        batch = build_batch(TWO_RECORDS, codec=codec)
        for rules in (PLAIN, ProduceRules(codec=codec), COMPACTED):
            result = check(batch, rules)
            assert bytes(result.buffer) == batch
            assert result.max_timestamp == NOW + 1

    def test_raw_snappy(self) -> None:
        batch = batch_of(bytes(cramjam.snappy.compress_raw(plain_records(TWO_RECORDS))), 2, 2, max_timestamp=NOW + 1)
        assert bytes(check(batch).buffer) == batch

    def test_idempotent_and_transactional_batches(self) -> None:
        batch = build_batch(TWO_RECORDS, producer_id=4, producer_epoch=1, base_sequence=9, transactional=True)
        header = check(batch).header
        assert (header.producer_id, header.base_sequence, header.last_sequence) == (4, 9, 10)

    def test_a_wrong_largest_timestamp_is_corrected(self) -> None:
        result = check(sealed(GOOD, max_timestamp=NOW + 10**10))
        assert result.max_timestamp == result.header.max_timestamp == NOW + 1
        assert result.header == read_header(result.buffer)
        assert bytes(result.buffer) == GOOD

    @settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
    @given(
        timestamps=st.lists(st.integers(-1, NOW + HOUR), min_size=1, max_size=20),
        codec=st.sampled_from(Codec),
    )
    def test_the_largest_timestamp_is_found(self, timestamps: list[int], codec: Codec) -> None:
        result = check(build_batch([Record(t, b"k", b"v") for t in timestamps], codec=codec))
        assert result.max_timestamp == max(timestamps)

    def test_own_batches_are_trusted(self) -> None:
        batch = bytearray(build_batch(TWO_RECORDS, control=True))
        result = trust_batch(batch)
        assert (result.header, result.max_timestamp) == (read_header(batch), NOW + 1)
        assert result.buffer.obj is batch


class TestOneWholeBatch:
    @pytest.mark.parametrize("size", [0, 11, 12, 16, 17, 60, 61, len(GOOD) - 1])
    def test_less_than_a_batch(self, size: int) -> None:
        assert refusal(GOOD[:size]).code is ErrorCode.INVALID_RECORD

    def test_two_batches(self) -> None:
        assert refusal(GOOD + GOOD).code is ErrorCode.INVALID_RECORD

    @pytest.mark.parametrize("rest", [b"xx", GOOD[:11], GOOD[:16], GOOD[:40], GOOD[:-1]])
    def test_a_fragment_behind_the_batch_is_cut_off(self, rest: bytes) -> None:
        result = check(GOOD + rest)
        assert bytes(result.buffer) == GOOD

    @pytest.mark.parametrize("rest", [bytes(12), bytes(17), GOOD[:16] + b"\x09"])
    def test_damage_behind_the_batch(self, rest: bytes) -> None:
        assert refusal(GOOD + rest).code is ErrorCode.CORRUPT_MESSAGE

    @pytest.mark.parametrize("length", [-1, 0, 13, -(2**31)])
    def test_impossible_lengths(self, length: int) -> None:
        assert refusal(GOOD[:8] + struct.pack(">i", length) + GOOD[12:]).code is ErrorCode.CORRUPT_MESSAGE
        assert refusal(GOOD[:8] + struct.pack(">i", length)).code is ErrorCode.CORRUPT_MESSAGE

    @pytest.mark.parametrize("length", [len(GOOD), 2**31 - 1])
    def test_lengths_beyond_the_field(self, length: int) -> None:
        assert refusal(GOOD[:8] + struct.pack(">i", length) + GOOD[12:]).code is ErrorCode.INVALID_RECORD

    @pytest.mark.parametrize("size", [26, 52, 60])
    def test_smaller_than_a_header(self, size: int) -> None:
        # Kafka answers UNKNOWN_SERVER_ERROR to the smallest of these.
        start = GOOD[:8] + struct.pack(">i", size - 12) + GOOD[12:]
        assert refusal(start[:size]).code is ErrorCode.CORRUPT_MESSAGE
        assert refusal(start).code is ErrorCode.CORRUPT_MESSAGE

    @pytest.mark.parametrize(
        ("magic", "code"),
        [
            (0, ErrorCode.INVALID_RECORD),
            (1, ErrorCode.INVALID_RECORD),
            (3, ErrorCode.CORRUPT_MESSAGE),
            (255, ErrorCode.CORRUPT_MESSAGE),
        ],
    )
    def test_other_magics(self, magic: int, code: ErrorCode) -> None:
        assert refusal(GOOD[:16] + bytes([magic]) + GOOD[17:]).code is code
        short = GOOD[:8] + struct.pack(">i", 14) + GOOD[12:16] + bytes([magic]) + GOOD[17:26]
        assert refusal(short).code is code

    def test_zstd_needs_produce_version_7(self) -> None:
        batch = build_batch(TWO_RECORDS, codec=Codec.ZSTD)
        assert refusal(batch, api_version=6).code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        assert check(batch, api_version=7).header.codec is Codec.ZSTD
        assert check(build_batch(TWO_RECORDS, codec=Codec.LZ4), api_version=3).header.codec is Codec.LZ4


class TestHeader:
    @pytest.mark.parametrize("position", [21, 30, 57, 61, len(GOOD) - 1])
    def test_a_wrong_checksum(self, position: int) -> None:
        batch = bytearray(GOOD)
        batch[position] ^= 0x40
        assert refusal(bytes(batch)).code is ErrorCode.CORRUPT_MESSAGE

    def test_the_base_offset_must_be_zero(self) -> None:
        assert refusal(sealed(GOOD, base_offset=5)).code is ErrorCode.INVALID_RECORD

    def test_max_message_bytes_counts_the_whole_batch(self) -> None:
        assert check(GOOD, ProduceRules(max_message_bytes=len(GOOD)))
        error = refusal(GOOD, ProduceRules(max_message_bytes=len(GOOD) - 1))
        assert error.code is ErrorCode.MESSAGE_TOO_LARGE
        assert str(len(GOOD)) in error.message

    @pytest.mark.parametrize(
        "changes",
        [
            {"count": 3},
            {"count": 1},
            {"count": 0},
            {"count": -1},
            {"count": 0, "last_offset_delta": -1},
            {"count": 3, "last_offset_delta": 2},
            {"count": 1, "last_offset_delta": 0},
            {"count": 2**31 - 1, "last_offset_delta": 2**31 - 2},
            {"last_offset_delta": -1},
            {"last_offset_delta": 2**31 - 1, "count": -(2**31)},
        ],
    )
    @pytest.mark.parametrize("codec", list(Codec))
    def test_lying_counts(self, changes: dict[str, int], codec: Codec) -> None:
        batch = build_batch(TWO_RECORDS, codec=codec)
        assert refusal(sealed(batch, **changes)).code is ErrorCode.INVALID_RECORD

    def test_control_batches_are_not_for_clients(self) -> None:
        assert refusal(build_batch(TWO_RECORDS, control=True)).code is ErrorCode.INVALID_RECORD

    def test_a_producer_id_needs_a_sequence(self) -> None:
        assert refusal(sealed(GOOD, producer_id=5, producer_epoch=0)).code is ErrorCode.INVALID_RECORD
        assert check(sealed(GOOD, producer_id=-2))

    @pytest.mark.parametrize("codec", [5, 6, 7])
    def test_unknown_codecs(self, codec: int) -> None:
        # Kafka answers UNKNOWN_SERVER_ERROR.
        for rules in (PLAIN, ProduceRules(headers_only=True)):
            assert refusal(sealed(GOOD, attributes=codec), rules).code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


class TestRecords:
    TWO = plain_records(TWO_RECORDS)
    ONE = plain_records(TWO_RECORDS[:1])

    @pytest.mark.parametrize("codec", list(Codec))
    @pytest.mark.parametrize(
        ("records_part", "count"),
        [
            (TWO + b"\x00", 2),
            (TWO[:-1], 2),
            (TWO, 3),
            (TWO, 1),
            (b"", 1),
            (ONE + ONE, 2),  # Kafka takes wrong offset deltas in plain batches
            (bytes([ONE[0] - 2]) + ONE[1:], 1),  # Kafka does not look at record sizes in compressed batches
            (b"\x01" + ONE[1:], 1),
        ],
    )
    def test_records_that_are_not_what_the_header_says(self, codec: Codec, records_part: bytes, count: int) -> None:
        batch = batch_of(compress(codec, records_part), count, codec)
        for rules in (PLAIN, APPEND_TIME, COMPACTED, ProduceRules(codec=Codec.NONE), ProduceRules(codec=Codec.ZSTD)):
            assert refusal(batch, rules).code is ErrorCode.INVALID_RECORD

    @pytest.mark.parametrize("codec", REAL_CODECS)
    def test_data_that_does_not_decompress(self, codec: Codec) -> None:
        # Kafka answers UNKNOWN_SERVER_ERROR to most of these and ignores what follows a gzip member or an LZ4 frame.
        packed = compress(codec, self.TWO)
        for damaged in (b"", packed[:-6], packed + b"xxxxxx", self.TWO):
            assert refusal(batch_of(damaged, 2, codec)).code is ErrorCode.INVALID_RECORD

    def test_lz4_that_java_cannot_read(self) -> None:
        linked = bytes(cramjam.lz4.compress(plain_records([Record(NOW, b"k", b"0123456789" * 20_000)])))
        assert refusal(batch_of(linked, 1, Codec.LZ4)).code is ErrorCode.INVALID_RECORD
        second = self.TWO[len(self.ONE) :]
        two_frames = compress(Codec.LZ4, self.ONE) + compress(Codec.LZ4, second)
        assert refusal(batch_of(two_frames, 2, Codec.LZ4)).code is ErrorCode.INVALID_RECORD

    @pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.ZSTD])
    def test_several_frames_that_java_reads_as_one(self, codec: Codec) -> None:
        packed = compress(codec, self.ONE) + compress(codec, self.TWO[len(self.ONE) :])
        assert check(batch_of(packed, 2, codec)).header.count == 2

    @pytest.mark.parametrize("codec", REAL_CODECS)
    def test_bombs(self, codec: Codec) -> None:
        rules = ProduceRules(decompressed_bytes_max=100_000)
        records = [Record(NOW, b"k", bytes(16_000_000))]
        error = refusal(build_batch(records, codec=codec), rules)
        assert error.code is ErrorCode.MESSAGE_TOO_LARGE
        assert "decompresses to more than" in error.message
        # What unfolds only a few times is allowed whatever the bound: the sender has paid for the bytes.
        honest = build_batch([Record(NOW, b"k", bytes(range(256)))], codec=codec)
        assert check(honest, ProduceRules(decompressed_bytes_max=0))

    def test_keyless_records_on_a_compacted_topic(self) -> None:
        batch = build_batch(
            [Record(NOW, b"k", b"v"), Record(NOW, None, b"v"), Record(NOW, b"", b"v"), Record(NOW, None, None)]
        )
        assert check(batch)
        error = refusal(batch, COMPACTED)
        assert error.code is ErrorCode.INVALID_RECORD
        assert isinstance(error, RejectedRecords)
        assert [record_error.batch_index for record_error in error.record_errors] == [1, 3]
        assert "without key" in error.record_errors[0].message
        for codec in REAL_CODECS:
            packed = build_batch([Record(NOW, None, b"v")], codec=codec)
            assert refusal(packed, COMPACTED).code is ErrorCode.INVALID_RECORD

    def test_record_errors_are_bounded(self) -> None:
        error = refusal(build_batch([Record(NOW, None, b"")] * (RECORD_ERRORS_MAX + 5)), COMPACTED)
        assert isinstance(error, RejectedRecords)
        assert len(error.record_errors) == RECORD_ERRORS_MAX

    def test_headers_only_trusts_the_records(self) -> None:
        rules = ProduceRules(headers_only=True)
        for codec in Codec:
            batch = batch_of(b"anything", 7, codec)
            result = check(batch, rules)
            assert (bytes(result.buffer), result.max_timestamp) == (batch, NOW)
        assert refusal(batch_of(b"anything", 7), ProduceRules(headers_only=True, compacted=True))
        assert refusal(batch_of(b"anything", 7), ProduceRules(headers_only=True, codec=Codec.GZIP))
        future = sealed(GOOD, max_timestamp=NOW + 2 * HOUR)
        assert refusal(future, rules).code is ErrorCode.INVALID_TIMESTAMP


class TestTimestamps:
    BOUNDED = ProduceRules(before_max_ms=1000, after_max_ms=500)

    @pytest.mark.parametrize("timestamp", [-1, NOW - 1000, NOW, NOW + 500])
    def test_within_bounds(self, timestamp: int) -> None:
        assert check(build_batch([Record(timestamp, b"k", b"v")]), self.BOUNDED).max_timestamp == timestamp

    @pytest.mark.parametrize("codec", list(Codec))
    @pytest.mark.parametrize("timestamp", [-2, 0, NOW - 1001, NOW + 501, 2**63 - 1, -(2**63)])
    def test_out_of_bounds(self, codec: Codec, timestamp: int) -> None:
        records = [Record(NOW, b"k", b"v"), Record(-1, b"k", b"v"), Record(timestamp, b"k", b"v")]
        error = refusal(build_batch(records, codec=codec), self.BOUNDED)
        assert error.code is ErrorCode.INVALID_TIMESTAMP
        assert isinstance(error, RejectedRecords)
        assert [record_error.batch_index for record_error in error.record_errors] == [2]
        assert f"Timestamp {timestamp} of record 2" in error.record_errors[0].message

    def test_the_default_bounds(self) -> None:
        assert check(build_batch([Record(0, b"k", b"v")]))
        assert check(batch_of(TestRecords.ONE, 1, base_timestamp=-5, max_timestamp=-5)).max_timestamp == -1
        assert check(build_batch([Record(NOW + HOUR, b"k", b"v")]))
        for timestamp in (NOW + HOUR + 1, -(2**63)):
            assert refusal(build_batch([Record(timestamp, b"k", b"v")])).code is ErrorCode.INVALID_TIMESTAMP

    def test_one_bad_timestamp_outweighs_missing_keys(self) -> None:
        late = NOW + 2 * HOUR
        assert refusal(build_batch([Record(late, b"k", b""), Record(NOW, None, b"")]), COMPACTED).code is (
            ErrorCode.INVALID_TIMESTAMP
        )
        # Of a record without a key the timestamp is not looked at.
        assert refusal(build_batch([Record(NOW, b"k", b""), Record(late, None, b"")]), COMPACTED).code is (
            ErrorCode.INVALID_RECORD
        )

    @pytest.mark.parametrize("codec", list(Codec))
    def test_log_append_time(self, codec: Codec) -> None:
        batch = build_batch([Record(0, b"k", b"v"), Record(2**50, b"k", b"v")], codec=codec)
        result = check(batch, APPEND_TIME)
        assert result.max_timestamp == result.header.max_timestamp == NOW
        assert result.header == read_header(result.buffer)
        assert result.header.timestamp_type == "LogAppendTime"
        assert crc_is_valid(result.buffer, 0, len(batch))
        assert [r.timestamp for r in read_records(result.buffer, 0, result.header)] == [NOW, NOW]

    def test_a_batch_that_claims_log_append_time(self) -> None:
        claiming = sealed(GOOD, attributes=8)
        assert refusal(claiming, APPEND_TIME).code is ErrorCode.INVALID_TIMESTAMP
        result = check(claiming)
        assert bytes(result.buffer) == GOOD
        assert refusal(sealed(GOOD, attributes=8, max_timestamp=-1)).code is ErrorCode.INVALID_TIMESTAMP
        late = refusal(sealed(GOOD, attributes=8, max_timestamp=NOW + 2 * HOUR))
        assert late.code is ErrorCode.INVALID_TIMESTAMP
        assert isinstance(late, RejectedRecords)
        assert [record_error.batch_index for record_error in late.record_errors] == [0, 1]
        keyless = sealed(build_batch([Record(NOW, None, b"")]), attributes=8)
        assert refusal(keyless, COMPACTED).code is ErrorCode.INVALID_RECORD


class TestRecompression:
    RECORDS = tuple(Record(NOW + index % 3, b"key-%d" % index, b"value" * 10, (("h", b"x"),)) for index in range(100))

    @pytest.mark.parametrize("target", list(Codec))
    @pytest.mark.parametrize("source", list(Codec))
    def test_from_every_codec_to_every_codec(self, source: Codec, target: Codec) -> None:
        batch = build_batch(
            self.RECORDS, codec=source, producer_id=3, producer_epoch=1, base_sequence=8, transactional=True
        )
        field = memoryview(bytearray(batch))
        result = validate_produced(field, ProduceRules(codec=target), NOW)
        header = result.header
        assert (result.buffer is field) == (source is target)
        assert bytes(field) == batch
        assert header == read_header(result.buffer)
        assert header.codec is target
        assert header.size_in_bytes == len(result.buffer)
        assert crc_is_valid(result.buffer, 0, len(result.buffer))
        assert (header.producer_id, header.base_sequence, header.is_transactional) == (3, 8, True)
        assert result.max_timestamp == NOW + 2
        assert read_records(result.buffer, 0, header) == read_records(batch, 0, read_header(batch))
        result.buffer[0] = 1

    def test_with_a_level_and_log_append_time(self) -> None:
        rules = ProduceRules(codec=Codec.GZIP, compression_level=9, timestamp_type="LogAppendTime")
        result = check(build_batch(self.RECORDS, codec=Codec.LZ4), rules)
        assert result.header.timestamp_type == "LogAppendTime"
        assert result.header.max_timestamp == NOW
        assert result.header.codec is Codec.GZIP

    def test_the_result_must_fit_too(self) -> None:
        batch = build_batch(self.RECORDS, codec=Codec.ZSTD)
        rules = ProduceRules(codec=Codec.NONE, max_message_bytes=len(batch))
        assert refusal(batch, rules).code is ErrorCode.MESSAGE_TOO_LARGE

    def test_a_wrong_largest_timestamp_is_corrected(self) -> None:
        result = check(sealed(GOOD, max_timestamp=5), ProduceRules(codec=Codec.ZSTD))
        assert result.header.max_timestamp == NOW + 1


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@given(
    damage=st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), max_size=4),
    cut=st.integers(0, 70),
    reseal=st.booleans(),
    codec=st.sampled_from(Codec),
    rules=st.sampled_from(
        [PLAIN, COMPACTED, APPEND_TIME, ProduceRules(codec=Codec.ZSTD), ProduceRules(headers_only=True)]
    ),
)
def test_damaged_batches_are_refused_with_a_code_or_taken_whole(
    kernel: ModuleType, damage: list[tuple[int, int]], cut: int, reseal: bool, codec: Codec, rules: ProduceRules
) -> None:
    batch = bytearray(build_batch([Record(NOW, b"k%d" % index, b"v" * 30) for index in range(9)], codec=codec))
    for position, byte in damage:
        batch[position % len(batch)] = byte
    if reseal:
        struct.pack_into(">I", batch, CRC_OFFSET, compute_crc(batch, 0, len(batch)))
    try:
        result = validate_produced(memoryview(batch)[: len(batch) - cut], rules, NOW)
    except KafkaError:
        return
    assert crc_is_valid(result.buffer, 0, len(result.buffer))
    assert result.header == read_header(result.buffer)
    assert len(result.buffer) == result.header.size_in_bytes
    if not rules.headers_only:
        assert len(read_records(result.buffer, 0, result.header)) == result.header.count == 9
