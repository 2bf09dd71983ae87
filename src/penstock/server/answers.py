"""What a request may be answered with: bytes, bytes mixed with slices of log files, either of these later, or nothing.

An answer is a whole frame including its size. The order of the answers is the session's business, not the handler's.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Protocol

from penstock.server.residency import ReadableFile


class FileSlice(Protocol):
    """A range of a log's file that stays readable until `release`."""

    @property
    def file(self) -> ReadableFile: ...

    @property
    def position(self) -> int: ...

    @property
    def length(self) -> int: ...

    @property
    def near_end(self) -> bool:
        """So close to the log's end that it is surely in the page cache."""

    @property
    def valid(self) -> bool:
        """False once the file has been truncated under the slice."""

    def release(self) -> None: ...


Parts = list[bytes | FileSlice]
Ready = bytes | Parts
Answer = Ready | Awaitable[Ready | None] | None


class Awaited:
    """The place in the queue of an answer that is not there yet."""

    __slots__ = ("answer", "done")

    def __init__(self) -> None:
        self.answer: Ready | None = None
        self.done = False


def memory_of(answer: Ready) -> int:
    """Slices take none: they stay in their file."""
    if isinstance(answer, bytes):
        return len(answer)
    return sum(len(part) for part in answer if isinstance(part, bytes))


def release(answer: Ready, *, keep: FileSlice | None = None) -> None:
    """Release the slices of an answer that will not be sent, but for one that is still in use."""
    if isinstance(answer, bytes):
        return
    for part in answer:
        if not isinstance(part, bytes) and part is not keep:
            part.release()
