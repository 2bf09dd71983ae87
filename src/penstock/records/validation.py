"""What a leader checks before it appends what a producer sent: Kafka's rules in Kafka's order, with Kafka's codes.

A partition's records field must hold exactly one batch of format v2. The header is held against itself and against the
topic, the checksum is verified, and the records are walked without building objects: their count, sizes and offset
deltas must be what the header says, for a batch with a good checksum and a lying count would poison every reader.
Compressed batches are opened for that walk into a bounded buffer. In the common case the batch is returned where it is;
it is copied only when the topic asks for another codec.

Deviations from Kafka, all on the strict side: offset deltas must be 0, 1, 2... (Kafka ignores or rewrites them), sizes
inside compressed batches are checked as in plain ones, and what makes Kafka answer UNKNOWN_SERVER_ERROR (an unknown
codec, data that does not decompress, linked LZ4 blocks) gets a code that says what is wrong and is not retried.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import NamedTuple

from crc32c import crc32c

from penstock.base.errors import ErrorCode, KafkaError
from penstock.records.batch import (
    ATTRIBUTES_OFFSET,
    CODEC_MASK,
    CONTROL_MASK,
    HEADER,
    HEADER_SIZE,
    LENGTH_OFFSET,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_OFFSET,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_MASK,
    BatchHeader,
    TimestampType,
    read_header,
    set_max_timestamp,
)
from penstock.records.buffers import Buffer
from penstock.records.builder import seal_batch
from penstock.records.compression import (
    Codec,
    DecompressedTooLarge,
    DecompressionFailed,
    compress,
    decompress,
    lz4_frame_defect,
)
from penstock.records.errors import InvalidRecords, RecordError, RejectedRecords
from penstock.records.kernel import list_rejected, walk_records

DECOMPRESSED_BYTES_MAX = 64 * 1024 * 1024
"""How far a batch may unfold by default. 64 times the default `max.message.bytes` leaves room for very regular data
and keeps a bomb below what a broker under load may use."""
DECOMPRESSED_RATIO_ALWAYS_ALLOWED = 16
"""A large batch may unfold this many times even beyond the bound: its sender has already paid for the bytes."""
RECORD_ERRORS_MAX = 1000
"""Refused records named in one answer; the whole batch is refused anyway."""

_ZSTD_SINCE_PRODUCE_VERSION = 7
_LEGACY_OVERHEAD_MIN = 14
_INT32 = struct.Struct(">i")
_INT64_MAX = 2**63 - 1
_INT64_MIN = -(2**63)
_ALL_TIMES = (_INT64_MIN, _INT64_MAX)
_NO_TIMES = (_INT64_MAX, _INT64_MIN)
_CODEC_ID_MAX = max(Codec).value
CREATE_TIME = TimestampType.CREATE_TIME
_unpack_header = HEADER.unpack_from
_new_tuple = tuple.__new__


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceRules:
    """What a topic wants of the batches it accepts; made once per topic configuration, not per request."""

    codec: Codec | None = None
    """The codec to store batches with (`compression.type`); None keeps the producer's."""
    compression_level: int | None = None
    """The level for `codec`; None is its default."""
    max_message_bytes: int = 1048588
    timestamp_type: str = TimestampType.CREATE_TIME
    before_max_ms: int = _INT64_MAX
    after_max_ms: int = 3_600_000
    compacted: bool = False
    headers_only: bool = False
    """Trust the records part, and check the header alone (`penstock.produce.validation=headers`)."""
    decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX


class ValidatedBatch(NamedTuple):
    """A batch that may be appended. `buffer` is writable and holds this batch alone, base offset still 0."""

    buffer: memoryview
    header: BatchHeader
    max_timestamp: int


class _Plain(NamedTuple):
    """The uncompressed records of a batch: the receive buffer itself, or what it was decompressed into."""

    buffer: Buffer
    start: int
    end: int


def validate_produced(
    batch: memoryview, rules: ProduceRules, now_ms: int, api_version: int = _ZSTD_SINCE_PRODUCE_VERSION
) -> ValidatedBatch:
    """Check one partition's records field of a Produce request of `api_version`, and make it ready to append.

    Raises `KafkaError` with the code to answer; `RejectedRecords` also names the records that the topic refuses.
    """
    if len(batch) < HEADER_SIZE:
        raise _short_batch_error(batch)
    header: BatchHeader = _new_tuple(BatchHeader, _unpack_header(batch, 0))
    _, length, _, magic, _, attributes, _, base_timestamp, _, _, _, _, count = header
    size = length + LOG_OVERHEAD
    codec_id = attributes & CODEC_MASK
    if size != len(batch) or magic != MAGIC or (codec_id == 4 and api_version < _ZSTD_SINCE_PRODUCE_VERSION):
        _check_single_batch(batch, header, api_version)
        batch = batch[:size]
    _check_header(batch, header, rules)

    keep_codec = rules.codec is None or rules.codec == codec_id
    plain: _Plain | None = None
    if rules.headers_only and keep_codec and not rules.compacted:
        max_timestamp, min_timestamp, keyless = header.max_timestamp, base_timestamp, -1
    elif codec_id == 0:
        max_timestamp, min_timestamp, keyless = walk_records(
            batch, HEADER_SIZE, size, count, base_timestamp, rules.compacted
        )
    else:
        plain = _open(batch, header, rules)
        max_timestamp, min_timestamp, keyless = walk_records(*plain, count, base_timestamp, rules.compacted)

    if attributes & TIMESTAMP_TYPE_MASK or rules.timestamp_type != CREATE_TIME:
        max_timestamp = _check_append_time(plain, batch, header, rules, now_ms, keyless)
    elif (
        keyless >= 0
        or max_timestamp - now_ms > rules.after_max_ms
        or (now_ms - min_timestamp > rules.before_max_ms and min_timestamp != NO_TIMESTAMP)
    ):
        raise _rejection(plain or _open(batch, header, rules), header, rules, now_ms)

    if not keep_codec:
        return _recompress(plain or _open(batch, header, rules), header, rules, max_timestamp)
    if max_timestamp != header.max_timestamp or header.timestamp_type != rules.timestamp_type:
        header = set_max_timestamp(batch, 0, size, rules.timestamp_type, max_timestamp)
    return _new_tuple(ValidatedBatch, (batch, header, max_timestamp))


def _check_header(batch: memoryview, header: BatchHeader, rules: ProduceRules) -> None:
    """What the header says about itself, in the order of Kafka's answers."""
    base_offset, length, _, _, crc, attributes, last_offset_delta, _, _, producer_id, _, base_sequence, count = header
    if base_offset != 0:
        raise InvalidRecords(f"The base offset of a produced batch must be 0, not {base_offset}.")
    if length + LOG_OVERHEAD > rules.max_message_bytes:
        raise _too_large(length + LOG_OVERHEAD, rules)
    if length + LOG_OVERHEAD < HEADER_SIZE or crc != crc32c(batch[ATTRIBUTES_OFFSET:]):
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"The record batch is damaged: its checksum is not {crc}.")
    if count <= 0 or count != last_offset_delta + 1:
        raise InvalidRecords(
            f"The record batch declares {count} records and the last offset delta {last_offset_delta}."
        )
    if attributes & CONTROL_MASK:
        raise InvalidRecords("Clients are not allowed to write control records.")
    if producer_id >= 0 and base_sequence < 0:
        raise InvalidRecords(f"Producer id {producer_id} comes with the sequence {base_sequence}.")
    if attributes & CODEC_MASK > _CODEC_ID_MAX:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"Unknown compression type id: {attributes & CODEC_MASK}."
        )


def trust_batch(buffer: bytearray | memoryview) -> ValidatedBatch:
    """Take one batch that this process built itself (a marker, a coordinator's records) as it is."""
    view = memoryview(buffer)
    header = read_header(view)
    return ValidatedBatch(view, header, header.max_timestamp)


def _open(batch: memoryview, header: BatchHeader, rules: ProduceRules) -> _Plain:
    codec_id = header.attributes & CODEC_MASK
    if codec_id == Codec.NONE:
        return _Plain(batch, HEADER_SIZE, len(batch))
    codec = header.codec
    packed = batch[HEADER_SIZE:]
    if codec is Codec.LZ4 and (defect := lz4_frame_defect(packed)):
        raise InvalidRecords(f"The lz4 data of the batch is not what Kafka's clients read: {defect}.")
    limit = max(rules.decompressed_bytes_max, DECOMPRESSED_RATIO_ALWAYS_ALLOWED * len(batch))
    try:
        plain = decompress(codec, packed, max_bytes=limit)
    except DecompressionFailed as error:
        raise InvalidRecords(f"The {codec.config_name} data of the batch cannot be decompressed: {error}.") from error
    except DecompressedTooLarge as error:
        # The producer's answer to this code is to split the batch, which is what helps an honest one.
        raise KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE, f"The record batch decompresses to more than {limit} bytes."
        ) from error
    return _Plain(plain, 0, len(plain))


def _check_append_time(
    plain: _Plain | None,
    batch: memoryview,
    header: BatchHeader,
    rules: ProduceRules,
    now_ms: int,
    keyless: int,
) -> int:
    """The cases in which the broker's clock is involved on either side; returns the timestamp of all records.

    A batch that claims LogAppendTime has one timestamp for all its records, the largest in its header. Kafka refuses it
    on a topic with LogAppendTime, and takes it on one with CreateTime if that timestamp is there and within bounds.
    """
    claims_append_time = header.attributes & TIMESTAMP_TYPE_MASK
    timestamp = header.max_timestamp if rules.timestamp_type == CREATE_TIME else now_ms
    if keyless >= 0 or (claims_append_time and not _claimed_time_is_fine(header, rules, now_ms)):
        raise _rejection(plain or _open(batch, header, rules), header, rules, now_ms)
    return timestamp


def _claimed_time_is_fine(header: BatchHeader, rules: ProduceRules, now_ms: int) -> bool:
    """Whether a batch that claims LogAppendTime may be taken all the same."""
    return (
        rules.timestamp_type == CREATE_TIME
        and header.max_timestamp != NO_TIMESTAMP
        and now_ms - rules.before_max_ms <= header.max_timestamp <= now_ms + rules.after_max_ms
    )


def _recompress(plain: _Plain, header: BatchHeader, rules: ProduceRules, max_timestamp: int) -> ValidatedBatch:
    target = rules.codec or Codec.NONE
    records = memoryview(plain.buffer)[plain.start : plain.end]
    batch = bytearray(HEADER_SIZE)
    batch += records if target is Codec.NONE else compress(target, records, rules.compression_level)
    if len(batch) > rules.max_message_bytes:
        raise _too_large(len(batch), rules)
    attributes = header.attributes & ~(CODEC_MASK | TIMESTAMP_TYPE_MASK) | target
    if rules.timestamp_type == TimestampType.LOG_APPEND_TIME:
        attributes |= TIMESTAMP_TYPE_MASK
    header = seal_batch(batch, header._replace(attributes=attributes, max_timestamp=max_timestamp))
    return ValidatedBatch(memoryview(batch), header, max_timestamp)


def _short_batch_error(field: memoryview) -> KafkaError:
    """What is shorter than a header is damaged if it shows an impossible length or magic, and no batch otherwise."""
    _check_next_size(field)
    if len(field) > MAGIC_OFFSET and len(field) >= _size_at_start(field):
        if field[MAGIC_OFFSET] != MAGIC:
            return InvalidRecords(f"Only record batches of magic 2 are accepted, not {field[MAGIC_OFFSET]}.")
        return KafkaError(ErrorCode.CORRUPT_MESSAGE, "The record batch is smaller than its header.")
    return InvalidRecords("The request must have one whole record batch per partition.")


def _check_single_batch(field: memoryview, header: BatchHeader, api_version: int) -> None:
    """The checks of a records field that is not exactly one batch of magic 2; returns if a whole one comes first and
    only a fragment follows, which Kafka cuts off."""
    _check_next_size(field)
    size = header.size_in_bytes
    if size > len(field):
        raise InvalidRecords("The request must have one whole record batch per partition.")
    if header.magic != MAGIC:
        raise InvalidRecords(f"Only record batches of magic 2 are accepted, not {header.magic}.")
    if header.attributes & CODEC_MASK == Codec.ZSTD and api_version < _ZSTD_SINCE_PRODUCE_VERSION:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"Produce version {api_version} does not allow zstd compression."
        )
    rest = field[size:]
    _check_next_size(rest)
    if len(rest) > MAGIC_OFFSET and len(rest) >= _size_at_start(rest):
        raise InvalidRecords("The request must have exactly one record batch per partition.")


def _check_next_size(field: memoryview) -> None:
    if len(field) < LOG_OVERHEAD:
        return
    length = _size_at_start(field) - LOG_OVERHEAD
    if length < _LEGACY_OVERHEAD_MIN:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"A record batch cannot have the length {length}.")
    if len(field) > MAGIC_OFFSET and field[MAGIC_OFFSET] > MAGIC:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"Unknown magic {field[MAGIC_OFFSET]} of a record batch.")


def _size_at_start(field: memoryview) -> int:
    (length,) = _INT32.unpack_from(field, LENGTH_OFFSET)
    return int(length) + LOG_OVERHEAD


def _too_large(size: int, rules: ProduceRules) -> KafkaError:
    return KafkaError(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"The record batch has {size} bytes, more than the {rules.max_message_bytes} of max.message.bytes.",
    )


def _rejection(plain: _Plain, header: BatchHeader, rules: ProduceRules, now_ms: int) -> KafkaError:
    """Name the refused records. One bad timestamp decides the code, whatever else is wrong."""
    earliest, latest = now_ms - rules.before_max_ms, now_ms + rules.after_max_ms
    if header.attributes & TIMESTAMP_TYPE_MASK:
        # Whatever the records say of themselves, they share the one timestamp that is fine or not.
        bounds = _ALL_TIMES if _claimed_time_is_fine(header, rules, now_ms) else _NO_TIMES
    else:
        bounds = (earliest, latest) if rules.timestamp_type == CREATE_TIME else _ALL_TIMES
    lowest, highest = (min(max(bound, _INT64_MIN), _INT64_MAX) for bound in bounds)
    rejected = list_rejected(
        *plain, header.count, header.base_timestamp, rules.compacted, lowest, highest, RECORD_ERRORS_MAX
    )
    errors = tuple(
        RecordError(index, _record_message(index, timestamp, header, rules, now_ms)) for index, timestamp in rejected
    )
    if errors and all(timestamp is None for _, timestamp in rejected):
        return RejectedRecords(
            ErrorCode.INVALID_RECORD, f"One or more records have been rejected: {errors[0].message}", errors
        )
    return RejectedRecords(
        ErrorCode.INVALID_TIMESTAMP, "One or more records have been rejected due to invalid timestamp.", errors
    )


def _record_message(index: int, timestamp: int | None, header: BatchHeader, rules: ProduceRules, now_ms: int) -> str:
    if timestamp is None:
        return f"Compacted topic cannot accept message without key: record {index}."
    if header.attributes & TIMESTAMP_TYPE_MASK:
        if rules.timestamp_type != CREATE_TIME or header.max_timestamp == NO_TIMESTAMP:
            return "Producer should not set timestamp type to LogAppendTime."
        timestamp = header.max_timestamp
    return (
        f"Timestamp {timestamp} of record {index} is out of range. "
        f"It should be within [{now_ms - rules.before_max_ms}, {now_ms + rules.after_max_ms}]."
    )
