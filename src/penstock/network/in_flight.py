"""Requests that wait for their answers, oldest first. A broker answers in the order it was asked.

So the next answer belongs to the oldest request; the correlation id only proves that both sides count alike.
"""

from __future__ import annotations

import asyncio
import struct
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Final

Frame = bytes | memoryview

Decode = Callable[[Frame, int], Any]
"""(frame, version) -> result. The frame is the whole answer behind its size; `encoding.body_position` tells where the
body begins. Its memory is the function's to keep: slices of it may be the result. `DecodeError` ends the connection."""

CORRELATION_ID_MAX: Final = 0x7FFFFFFF

_unpack_correlation_id = struct.Struct(">i").unpack_from


class WrongAnswer(Exception):  # noqa: N818 - becomes a ProtocolViolation with an address
    """An answer that no request waits for."""


class PendingRequest:
    __slots__ = ("api_key", "correlation_id", "deadline", "decode", "future", "sent_at", "version")

    def __init__(
        self,
        api_key: int,
        version: int,
        correlation_id: int,
        deadline: float,
        decode: Decode | None,
        future: asyncio.Future[Any],
        sent_at: float = 0.0,
    ) -> None:
        self.api_key = api_key
        self.version = version
        self.correlation_id = correlation_id
        self.deadline = deadline
        self.decode = decode
        self.future = future
        self.sent_at = sent_at


class InFlight:
    __slots__ = ("_next_id", "_requests")

    def __init__(self, first_correlation_id: int = 0) -> None:
        self._requests: deque[PendingRequest] = deque()
        self._next_id = first_correlation_id

    def __len__(self) -> int:
        return len(self._requests)

    def __iter__(self) -> Iterator[PendingRequest]:
        return iter(self._requests)

    def new_correlation_id(self) -> int:
        chosen = self._next_id
        self._next_id = chosen + 1 if chosen < CORRELATION_ID_MAX else 0
        return chosen

    def add(self, request: PendingRequest) -> None:
        self._requests.append(request)

    def match(self, frame: Frame) -> PendingRequest:
        """The request that this answer is for. It stays the oldest until `finish_oldest`."""
        if len(frame) < 4:
            raise WrongAnswer(f"an answer of {len(frame)} bytes is shorter than its header")
        correlation_id = _unpack_correlation_id(frame)[0]
        if not self._requests:
            raise WrongAnswer(f"an answer with correlation id {correlation_id} came, but nothing was asked")
        oldest = self._requests[0]
        if oldest.correlation_id != correlation_id:
            raise WrongAnswer(
                f"an answer with correlation id {correlation_id} came where {oldest.correlation_id} was expected"
            )
        return oldest

    def finish_oldest(self) -> None:
        self._requests.popleft()

    def take_all(self) -> list[PendingRequest]:
        taken = list(self._requests)
        self._requests.clear()
        return taken

    def earliest_deadline(self) -> float | None:
        return min((request.deadline for request in self._requests), default=None)
