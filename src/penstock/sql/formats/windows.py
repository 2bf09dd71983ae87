"""Windows at the end of keys, as Kafka Streams writes them.

Tumbling and hopping: the start (8 bytes, big endian); the end follows from the size. Session: the end, then the start.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from penstock.sql.schema import WindowedKey

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
    keys: list[bytes | None] = []
    bounds: list[tuple[int | None, int | None]] = []
    errors: dict[int, str] = {}
    for index, key in enumerate(data.to_pylist()):
        size = _suffix_size(windowed)
        if key is None or len(key) < size:
            errors[index] = "the key has no window: " + ("it is null" if key is None else f"it is {len(key)} bytes")
            keys.append(None)
            bounds.append((None, None))
        else:
            keys.append(key[:-size])
            bounds.append(_bounds(key[-size:], windowed))
    starts, ends = zip(*bounds, strict=True) if bounds else ((), ())
    return WindowedKeys(
        keys=pa.array(keys, pa.binary()),
        starts=pa.array(starts, pa.int64()),
        ends=pa.array(ends, pa.int64()),
        errors=errors,
    )


def _suffix_size(windowed: WindowedKey) -> int:
    return _END_START.size if windowed.type == "SESSION" else _START.size


def _bounds(suffix: bytes, windowed: WindowedKey) -> tuple[int, int]:
    if windowed.type == "SESSION":
        end, start = _END_START.unpack(suffix)
        return start, end
    (start,) = _START.unpack(suffix)
    return start, start + (windowed.size_ms or 0)


def append_window(key: bytes | None, start: int, end: int, windowed: WindowedKey) -> bytes:
    suffix = _END_START.pack(end, start) if windowed.type == "SESSION" else _START.pack(start)
    return (key or b"") + suffix


def append_windows(
    keys: Sequence[bytes | None], starts: Sequence[int], ends: Sequence[int], windowed: WindowedKey
) -> list[bytes | None]:
    return [append_window(*each, windowed) for each in zip(keys, starts, ends, strict=True)]
