"""Kafka's text checkpoints: a version line, a count line, then one entry per line.

Two kinds: offsets per partition in a log directory (`<topic> <partition> <offset>`), and leader epochs in a
partition's own directory (`<epoch> <start offset>`). Both are written whole and atomically. A file that breaks the
form is `MalformedCheckpointError`; since what a checkpoint holds only shortens work, its reader goes on without it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from penstock.base.ports import Files
from penstock.base.types import TopicPartition

log = logging.getLogger(__name__)

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_START_OFFSETS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"

_VERSION = "0"
_INT64_MAX = (1 << 63) - 1


class MalformedCheckpointError(Exception):
    """The content of a checkpoint file is not what the format says."""


def encode_lines(lines: Iterable[str]) -> bytes:
    entries = list(lines)
    return "".join(f"{line}\n" for line in (_VERSION, str(len(entries)), *entries)).encode()


def decode_lines(data: bytes) -> list[list[str]]:
    """The entries, split at white space. An empty file is an empty checkpoint: Kafka creates it before it fills it."""
    try:
        lines = data.decode().splitlines()
    except UnicodeDecodeError as error:
        raise MalformedCheckpointError("not text") from error
    if not lines:
        return []
    if lines[0] != _VERSION:
        raise MalformedCheckpointError(f"unrecognised version {lines[0][:40]!r}, expected {_VERSION}")
    if len(lines) == 1:
        return []
    count = _number(lines[1])
    entries = [line.split() for line in lines[2:]]
    if len(entries) != count:
        raise MalformedCheckpointError(f"expected {count} entries, found {len(entries)}")
    return entries


def _number(text: str) -> int:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 19 or int(digits) > _INT64_MAX:
        raise MalformedCheckpointError(f"not a number: {text[:40]!r}")
    return int(text)


def encode_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    return encode_lines(f"{tp.topic} {tp.partition} {offset}" for tp, offset in offsets.items())


def decode_offsets(data: bytes) -> dict[TopicPartition, int]:
    offsets: dict[TopicPartition, int] = {}
    for parts in decode_lines(data):
        if len(parts) != 3:
            raise MalformedCheckpointError(f"malformed line {' '.join(parts)[:80]!r}")
        offsets[TopicPartition(parts[0], _number(parts[1]))] = _number(parts[2])
    return offsets


def encode_epochs(entries: Iterable[tuple[int, int]]) -> bytes:
    return encode_lines(f"{epoch} {start_offset}" for epoch, start_offset in entries)


def decode_epochs(data: bytes) -> list[tuple[int, int]]:
    entries: list[tuple[int, int]] = []
    for parts in decode_lines(data):
        if len(parts) != 2:
            raise MalformedCheckpointError(f"malformed line {' '.join(parts)[:80]!r}")
        entries.append((_number(parts[0]), _number(parts[1])))
    return entries


class OffsetCheckpoint:
    """One offsets file of one log directory. All methods block."""

    __slots__ = ("_files", "_written", "path")

    def __init__(self, directory: str, name: str, files: Files) -> None:
        self._files = files
        self._written: bytes | None = None
        self.path = f"{directory}/{name}"

    def read(self) -> dict[TopicPartition, int]:
        """The offsets; none when the file is missing, and none with a warning when it is malformed."""
        try:
            return decode_offsets(self._files.read(self.path))
        except FileNotFoundError:
            return {}
        except MalformedCheckpointError as error:
            log.warning("checkpoint %s is malformed and ignored: %s", self.path, error)
            return {}

    def write(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Replace the file, unless the last write had the same content."""
        data = encode_offsets(offsets)
        if data != self._written:
            self._files.write_atomically(self.path, data)
            self._written = data
