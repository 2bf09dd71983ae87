"""Windows at the end of keys, as Kafka Streams writes them.

Tumbling and hopping: the start (8 bytes, big endian); the end follows from the size. Session: the end, then the start.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.sql.schema import WindowedKey

Numbers = NDArray[Any]

_START: Final = struct.Struct(">q")
_END_START: Final = struct.Struct(">qq")


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowedKeys:
    """The keys without their windows; `starts` and `ends` are None where a key has none, with an error."""

    keys: pa.Array
    starts: pa.Array
    ends: pa.Array
    errors: dict[int, str]


def split_windows(data: pa.Array, windowed: WindowedKey) -> WindowedKeys:
    size = _suffix_size(windowed)
    lengths = pc.binary_length(data)
    sound = pc.fill_null(pc.greater_equal(lengths, size), False)
    suffixes = pc.if_else(sound, pc.binary_slice(data, -size), bytes(size)).cast(pa.binary(size))
    starts, ends = _bounds(suffixes, windowed)
    missing = numpy.logical_not(sound.to_numpy(zero_copy_only=False))
    return WindowedKeys(
        keys=pc.if_else(sound, pc.binary_slice(data, 0, -size), None),
        starts=pa.array(starts, pa.int64(), mask=missing),
        ends=pa.array(ends, pa.int64(), mask=missing),
        errors={int(row): _trouble(lengths[int(row)].as_py()) for row in missing.nonzero()[0]},
    )


def _trouble(length: int | None) -> str:
    return "the key has no window: " + ("it is null" if length is None else f"it is {length} bytes")


def _suffix_size(windowed: WindowedKey) -> int:
    return _END_START.size if windowed.type == "SESSION" else _START.size


def _bounds(suffixes: pa.Array, windowed: WindowedKey) -> tuple[Numbers, Numbers]:
    """Starts and ends from suffixes of one size, which lie one behind the other."""
    words = numpy.frombuffer(suffixes.buffers()[1], ">i8").astype(numpy.int64)
    words = words[suffixes.offset * suffixes.type.byte_width // 8 :]
    if windowed.type == "SESSION":
        pairs = words[: 2 * len(suffixes)].reshape(-1, 2)
        return pairs[:, 1], pairs[:, 0]
    starts = words[: len(suffixes)]
    return starts, starts + (windowed.size_ms or 0)


def append_window(key: bytes | None, start: int, end: int, windowed: WindowedKey) -> bytes:
    suffix = _END_START.pack(end, start) if windowed.type == "SESSION" else _START.pack(start)
    return (key or b"") + suffix


def append_windows(
    keys: Sequence[bytes | None], starts: Sequence[int], ends: Sequence[int], windowed: WindowedKey
) -> list[bytes | None]:
    if windowed.type == "SESSION":
        return [append_window(*each, windowed) for each in zip(keys, starts, ends, strict=True)]
    suffixes = {start: _START.pack(start) for start in set(starts)}
    return [(key or b"") + suffixes[start] for key, start in zip(keys, starts, strict=True)]
