"""What can be wrong inside a batch, in one vocabulary that both kernels share.

The kernels find a defect as a number and a record index; the sentence is made here, so the compiled and the pure
kernel cannot drift apart in what they tell a client.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from penstock.base.errors import ErrorCode, KafkaError


class Defect(IntEnum):
    """Structural defects of the records part of a batch, as the kernels count them."""

    RECORD_SIZE = 1
    VARINT = 2
    FIELD_SIZE = 3
    HEADER_COUNT = 4
    HEADER_KEY_SIZE = 5
    OFFSET_DELTA = 6
    BODY_NOT_CONSUMED = 7
    TRAILING_BYTES = 8


_SENTENCES = {
    Defect.RECORD_SIZE: "Record {index} claims a size that does not fit in the batch.",
    Defect.VARINT: "Record {index} has a variable-length number that is cut off or too long.",
    Defect.FIELD_SIZE: "Record {index} has a key, value or header that does not fit in the record.",
    Defect.HEADER_COUNT: "Record {index} claims an impossible number of headers.",
    Defect.HEADER_KEY_SIZE: "Record {index} has a header with a negative key size.",
    Defect.OFFSET_DELTA: "Record {index} does not have the offset delta {index}.",
    Defect.BODY_NOT_CONSUMED: "Record {index} is longer than its fields.",
    Defect.TRAILING_BYTES: "Bytes remain after the {index} records that the batch declares.",
}


class RecordError(NamedTuple):
    """One refused record of a batch, as Produce v8+ answers it (KIP-467)."""

    batch_index: int
    message: str


class InvalidRecords(KafkaError):  # noqa: N818 - named for what it holds against the sender
    """The records of a batch do not have the shape that its header promises."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.INVALID_RECORD, message)

    @classmethod
    def of(cls, defect: int, index: int) -> InvalidRecords:
        return cls(_SENTENCES[Defect(defect)].format(index=index))


class RejectedRecords(KafkaError):  # noqa: N818 - see above
    """Well-formed records that the topic does not accept; names each of them."""

    def __init__(self, code: ErrorCode, message: str, record_errors: tuple[RecordError, ...]) -> None:
        super().__init__(code, message)
        self.record_errors = record_errors
