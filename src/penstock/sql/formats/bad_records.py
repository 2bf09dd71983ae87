"""Records that could not be read, and what the processing log says of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from penstock.sql.formats.python_values import base64_text
from penstock.sql.processing_log import entry_of

_RECORD_BYTES_MAX: Final = 64 * 1024
"""Of a key or value in the log; what is longer is cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BadRecord:
    """`target` is the side that could not be read: key or value."""

    topic: str
    partition: int
    offset: int
    target: str
    message: str
    key: bytes | None = None
    value: bytes | None = None

    @property
    def text(self) -> str:
        return f"{self.topic}-{self.partition} at offset {self.offset}: {self.message}"


def log_entry(bad: BadRecord, logger: str, time_ms: int) -> bytes:
    record = bad.key if bad.target == "key" else bad.value
    error = {
        "target": bad.target,
        "errorMessage": f"Failed to deserialize the {bad.target} of {bad.text}",
        "recordB64": None if record is None else base64_text(record[:_RECORD_BYTES_MAX]),
        "cause": [bad.message],
        "topic": bad.topic,
        "partition": bad.partition,
        "offset": bad.offset,
    }
    return entry_of(logger, time_ms, 0, "deserializationError", error)


def summary_entry(topic: str, count: int, logger: str, time_ms: int) -> bytes:
    """For those that were too many to be told one by one."""
    text = f"{count} more records of {topic} could not be deserialized"
    return entry_of(logger, time_ms, 0, "deserializationError", {"errorMessage": text, "topic": topic})
