"""Fresh producer ids for operations, which cannot wait.

An operation takes one; when there is none it ends with `ProducerIdNeededError`, its caller fetches one and runs it
again. An id that was taken for an append that failed is never used again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable

from penstock.base.errors import ErrorCode, KafkaError


class ProducerIdNeededError(KafkaError):
    def __init__(self) -> None:
        super().__init__(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "A new producer id is on its way.")


class SpareProducerIds:
    def __init__(self, next_id: Callable[[], Awaitable[int]]) -> None:
        self._next_id = next_id
        self._spare: deque[int] = deque()

    def take(self) -> int:
        if not self._spare:
            raise ProducerIdNeededError
        return self._spare.popleft()

    async def refill(self) -> None:
        self._spare.append(await self._next_id())
