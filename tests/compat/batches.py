"""What lies on a broker's disk, read with nothing but ``struct``: the code that wrote a file must not judge it."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import NamedTuple

_HEADER = struct.Struct(">qiibIhiqqqhii")
CODEC_NAMES = ("none", "gzip", "snappy", "lz4", "zstd")


class Batch(NamedTuple):
    """The header fields of a record batch (format 2) that the tests look at."""

    base_offset: int
    codec: str
    max_timestamp: int
    producer_id: int
    base_sequence: int
    record_count: int


def batches_of(segment: Path) -> list[Batch]:
    content = segment.read_bytes()
    found: list[Batch] = []
    position = 0
    while position < len(content):
        fields = _HEADER.unpack_from(content, position)
        found.append(
            Batch(
                base_offset=fields[0],
                codec=CODEC_NAMES[fields[5] & 7],
                max_timestamp=fields[8],
                producer_id=fields[9],
                base_sequence=fields[11],
                record_count=fields[12],
            )
        )
        position += 12 + fields[1]
    return found


def first_segment(partition_dir: Path) -> Path:
    return partition_dir / "00000000000000000000.log"
