"""The metadata file: one line per version, in the order they were committed.

    <CRC-32C of the JSON, 8 hex digits> <JSON of metadata.deltas.VersionedDeltas>\\n

The first line may be a snapshot, the whole image at its version; every other line is the change to the version after
the line before it. A change is durable when its line is complete and synced, and only then acknowledged; the next one
is written after that. So a crash can spoil nothing but the end of the file: a last line that is cut off or fails its
checksum was never acknowledged and is removed on the next start. Anything else that does not read means the file was
damaged or written by a newer version, and is reported rather than repaired.

The file is created, and replaced by a snapshot when it has grown, by writing a new one beside it and renaming it.
Everything here blocks and runs in a worker.
"""

from __future__ import annotations

from collections.abc import Sequence

import crc32c

from penstock.base.ports import File, Files
from penstock.metadata.deltas import Delta, VersionedDeltas, decode_deltas, encode_deltas, image_as_deltas
from penstock.metadata.image import ClusterImage, ImageBuilder
from penstock.metadata.store import MetadataCorruptError

_CHECKSUM_CHARS = 8
_GROWTH_FACTOR = 4
REWRITE_BYTES_MIN = 256 * 1024


def encode_line(version: int, deltas: Sequence[Delta], *, snapshot: bool = False) -> bytes:
    body = encode_deltas(version, deltas, snapshot=snapshot)
    return b"%08x %s\n" % (crc32c.crc32c(body), body)


def encode_snapshot(image: ClusterImage) -> bytes:
    return encode_line(image.version, list(image_as_deltas(image)), snapshot=True)


def read_image(data: bytes, path: str) -> tuple[ClusterImage, int]:
    """The image after the last whole line, and how many bytes hold it."""
    builder = ImageBuilder(ClusterImage())
    position = 0
    while position < len(data):
        end = data.find(b"\n", position)
        body = None if end < 0 else _checked_body(data[position:end])
        if body is None:
            _check_nothing_follows(data, end, path)
            break
        _replay(builder, body, f"{path}, byte {position}", first=position == 0)
        position = end + 1
    return builder.build(), position


def _checked_body(line: bytes) -> bytes | None:
    """The JSON of a line, or None when its checksum does not fit."""
    body = line[_CHECKSUM_CHARS + 1 :]
    return body if line[: _CHECKSUM_CHARS + 1] == b"%08x " % crc32c.crc32c(body) else None


def _check_nothing_follows(data: bytes, end: int, path: str) -> None:
    """A bad line is a torn one only when no good line comes after it."""
    while end >= 0:
        start = end + 1
        end = data.find(b"\n", start)
        if end >= 0 and _checked_body(data[start:end]) is not None:
            raise MetadataCorruptError(
                f"{path} is damaged before byte {start}, and good changes follow. Restore the file from a copy."
            )


def _replay(builder: ImageBuilder, body: bytes, place: str, *, first: bool) -> None:
    try:
        line: VersionedDeltas = decode_deltas(body)
        if line.snapshot and not first:
            raise ValueError("a snapshot that is not the first line")
        if not line.snapshot and line.version != builder.version + 1:
            raise ValueError(f"version {line.version} after version {builder.version}")
        if line.version:
            builder.apply(line.version, line.deltas)
    except (ValueError, KeyError, IndexError) as error:
        raise MetadataCorruptError(f"{place}: {error}") from error


class MetadataFile:
    """The open file, appended to by one writer at a time."""

    def __init__(self, files: Files, path: str, *, rewrite_bytes_min: int = REWRITE_BYTES_MIN) -> None:
        self._files = files
        self._path = path
        self._rewrite_bytes_min = rewrite_bytes_min
        self._file: File | None = None
        self._size = 0
        self._base_size = 0

    def open(self) -> ClusterImage:
        """Read the image, cut off a torn last line, and be ready to append."""
        if not self._files.exists(self._path):
            self._files.write_atomically(self._path, b"")
        data = self._files.read(self._path)
        image, good = read_image(data, self._path)
        self._file = self._files.open(self._path, create=False)
        if good < len(data):
            self._file.truncate(good)
            self._file.sync()
        self._size = good
        self._base_size = data.find(b"\n", 0, good) + 1
        return image

    def append(self, line: bytes) -> None:
        """Durable on return. On OSError the file ends where it ended before, or refuses every later append."""
        file = self._writable()
        try:
            file.append(line)
            file.sync()
        except OSError:
            # Until the cut is known to have worked no line may follow what could be half a line.
            self._file = None
            file.truncate(self._size)
            file.sync()
            self._file = file
            raise
        self._size += len(line)

    def needs_rewrite(self) -> bool:
        return self._size > max(self._rewrite_bytes_min, _GROWTH_FACTOR * self._base_size)

    def rewrite(self, image: ClusterImage) -> None:
        """Replace all lines by a snapshot. After a failure the file is one of the two, and both say the same."""
        snapshot = encode_snapshot(image)
        old = self._writable()
        self._file = None
        try:
            self._files.write_atomically(self._path, snapshot)
        finally:
            old.close()
            self._file = self._files.open(self._path, create=False)
            self._size = self._file.size()
            self._base_size = self._size

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _writable(self) -> File:
        if self._file is None:
            raise OSError(f"{self._path} could not be repaired after a failed write")
        return self._file
