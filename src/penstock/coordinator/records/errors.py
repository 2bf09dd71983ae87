"""What can be wrong with a coordinator's record."""

from __future__ import annotations


class UnknownRecordTypeError(Exception):
    """A kind of record this broker does not know, such as one of a newer protocol; to be skipped."""

    def __init__(self, record_type: int) -> None:
        super().__init__(f"record type {record_type} is unknown")
        self.record_type = record_type


class RecordFormatError(Exception):
    """A record of a known kind whose bytes cannot be read."""
