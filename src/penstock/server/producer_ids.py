"""Hands out producer ids from a block that the controller has allocated durably; asks for the next one when it is used
up.

Ids of a block that was not used up before a stop are never handed out: the next start gets a new block. So an id is
given once for ever, and a crash costs at most a block of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable


class ProducerIds:
    def __init__(self, allocate: Callable[[], Awaitable[range]]) -> None:
        self._allocate = allocate
        self._block = iter(range(0))
        self._lock = asyncio.Lock()

    async def next_id(self) -> int:
        producer_id = next(self._block, None)
        if producer_id is not None:
            return producer_id
        async with self._lock:
            # Another request may have brought the new block while this one waited.
            producer_id = next(self._block, None)
            if producer_id is None:
                self._block = iter(await self._allocate())
                producer_id = next(self._block)
        return producer_id
