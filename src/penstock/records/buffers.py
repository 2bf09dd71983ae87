"""The one name for "bytes in any clothing" that this package takes."""

from __future__ import annotations

Buffer = bytes | bytearray | memoryview
