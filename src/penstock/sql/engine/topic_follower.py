"""A topic that is followed into a queue of rows until its reader goes: push queries and PRINT.

New partitions are read from their beginning, for all they hold is newer than the query. A topic that is deleted
meanwhile ends the query with an error.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from penstock import aio
from penstock.base.types import TopicPartition
from penstock.client.core.loop_thread import LoopThread
from penstock.client.errors import KafkaError, KafkaTimeout
from penstock.sql.engine.reading import READING, REFRESH_MS, cannot_read, look_up_partitions
from penstock.sql.engine.rows import RowQueue
from penstock.sql.errors import SqlError
from penstock.sql.kafka import KafkaAccess

_FULL_PAUSE_S: Final = 0.05

_END_TIMEOUT_S: Final = 5.0

_RUNNING: Final[set[asyncio.Task[None]]] = set()
"""An event loop alone does not keep its tasks alive."""


async def end_followers() -> None:
    """Those of this event loop, whose queues have ended: each closes its connections when it sees that."""
    loop = asyncio.get_running_loop()
    running = {task for task in _RUNNING if task.get_loop() is loop}
    if running:
        await asyncio.wait(running, timeout=_END_TIMEOUT_S)


@dataclass(slots=True, kw_only=True)
class TopicFollower:
    """`read` puts what there is, or comes soon, into the queue. `remedy` is told to whoever misses the topic."""

    topic: str
    queue: RowQueue
    kafka: KafkaAccess
    role: str
    from_beginning: bool
    read: Callable[[aio.Consumer], Awaitable[None]]
    remedy: str

    def start(self, thread: LoopThread, timeout_s: float) -> None:
        """Begin; when this returns, every record that comes later will be seen. Raises why it cannot begin."""
        thread.run(self._begin(), timeout_s)

    async def _begin(self) -> None:
        loop = asyncio.get_running_loop()
        positioned: asyncio.Future[None] = loop.create_future()
        task = loop.create_task(self._run(positioned))
        _RUNNING.add(task)
        task.add_done_callback(_RUNNING.discard)
        try:
            await positioned
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait({task})
            raise

    async def _run(self, positioned: asyncio.Future[None]) -> None:
        try:
            await self._follow(positioned)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            failure = cannot_read(self.topic, error) if isinstance(error, KafkaError) else error
            self.queue.end(failure)
            if not positioned.done():
                positioned.set_exception(failure)
            elif not isinstance(failure, SqlError):
                raise

    async def _follow(self, positioned: asyncio.Future[None]) -> None:
        async with aio.Consumer(self.kafka.config(self.role, READING)) as consumer:
            partitions = await look_up_partitions(consumer, self.topic, self.remedy)
            consumer.assign(partitions)
            await self._position(consumer, partitions)
            if not positioned.done():
                positioned.set_result(None)
            clock = asyncio.get_running_loop().time
            looked_at = clock()
            while not self.queue.ended:
                if self.queue.full:
                    await asyncio.sleep(_FULL_PAUSE_S)
                    continue
                if clock() - looked_at >= REFRESH_MS / 1_000:
                    await self._add_new_partitions(consumer)
                    looked_at = clock()
                await self.read(consumer)

    async def _position(self, consumer: aio.Consumer, partitions: list[TopicPartition]) -> None:
        if self.from_beginning:
            consumer.seek_to_beginning(partitions)
        else:
            for partition, end in (await consumer.end_offsets(partitions)).items():
                consumer.seek(partition, end)

    async def _add_new_partitions(self, consumer: aio.Consumer) -> None:
        """A cluster that cannot be asked now is one to wait for."""
        assigned = consumer.assignment()
        try:
            partitions = await look_up_partitions(consumer, self.topic, self.remedy)
        except KafkaTimeout:
            return
        new = [each for each in partitions if each not in assigned]
        if new:
            consumer.assign([*assigned, *new])
            consumer.seek_to_beginning(new)
