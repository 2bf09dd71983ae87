"""Waiting on the loop for what the caller's side needs (`waits`): metadata of a topic, and memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from penstock.client.core.client import ClientCore
from penstock.client.core.types import ClusterSnapshot
from penstock.client.errors import BufferFull, KafkaTimeout
from penstock.client.producer.accumulator import Accumulator
from penstock.client.producer.memory import Ticket
from penstock.client.producer.settings import ProducerSettings
from penstock.client.producer.waits import MemoryWait, Steps, TopicWait, Wait

T = TypeVar("T")


class LoopWaiting:
    """`refresh` is told of metadata that a wait brought, before the one who waited goes on."""

    def __init__(
        self,
        core: ClientCore,
        settings: ProducerSettings,
        accumulator: Accumulator,
        refresh: Callable[[ClusterSnapshot], None],
    ) -> None:
        self._core = core
        self._settings = settings
        self._accumulator = accumulator
        self._refresh = refresh

    async def drive(self, steps: Steps[T]) -> T:
        """Do what `steps` wants to wait for, for `max.block.ms` in all."""
        deadline = self._core.ports.clock.monotonic() + self._settings.max_block_ms / 1000
        try:
            wait = next(steps)
            while True:
                try:
                    answer = await self.serve(wait, deadline)
                except BaseException as error:  # noqa: BLE001 - the generator decides what becomes of it
                    wait = steps.throw(error)
                else:
                    wait = steps.send(answer)
        except StopIteration as stop:
            result: T = stop.value
            return result

    async def serve(self, wait: Wait, deadline: float) -> Ticket | None:
        """Wait for a topic or for memory, on the loop."""
        if isinstance(wait, TopicWait):
            await self._know(wait, deadline)
            return None
        return await self._take_memory(wait, deadline)

    async def _know(self, wait: TopicWait, deadline: float) -> None:
        metadata = self._core.metadata
        left_ms = self._left_ms(deadline)
        info = await metadata.topic(wait.topic, left_ms)
        while wait.partition is not None and wait.partition >= len(info.partitions):
            count = len(info.partitions)
            try:
                snapshot = await metadata.update(self._left_ms(deadline))
            except KafkaTimeout:
                raise KafkaTimeout(
                    f"topic {wait.topic!r} has {count} partitions and no partition {wait.partition}, even after"
                    f" max.block.ms={self._settings.max_block_ms}: choose another one, or add partitions"
                ) from None
            info = snapshot.topics.get(wait.topic, info)
            if wait.partition >= len(info.partitions):
                await asyncio.sleep(min(0.1, max(self._left_ms(deadline), 0.0) / 1000))
        self._refresh(metadata.snapshot)

    async def _take_memory(self, wait: MemoryWait, deadline: float) -> Ticket:
        loop = asyncio.get_running_loop()
        granted: asyncio.Future[None] = loop.create_future()

        def grant() -> None:
            if not granted.done():
                granted.set_result(None)

        def on_grant() -> None:
            loop.call_soon_threadsafe(grant)

        ticket = self._accumulator.memory.ask(wait.size, on_grant)
        self._accumulator.wake()
        try:
            async with asyncio.timeout(max(self._left_ms(deadline), 0.0) / 1000):
                await granted
        except TimeoutError:
            self._accumulator.memory.give_up(ticket)
            raise self.buffer_full() from None
        except BaseException:
            self._accumulator.memory.give_up(ticket)
            raise
        return ticket

    def buffer_full(self) -> BufferFull:
        """The error of one who waited too long for memory."""
        return BufferFull(
            f"buffer.memory={self._settings.buffer_memory} stayed full for max.block.ms="
            f"{self._settings.max_block_ms}: records come faster than they are written; send fewer, or raise one"
        )

    def _left_ms(self, deadline: float) -> float:
        return (deadline - self._core.ports.clock.monotonic()) * 1000
