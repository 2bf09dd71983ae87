"""Push queries over a stream or table that exists: its topic is followed, and every change goes out.

Nothing is computed twice: the rows a persistent query made are in its topic, whoever wants to watch them reads there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from penstock import aio
from penstock.base.types import TopicPartition
from penstock.client.core.loop_thread import LoopThread
from penstock.client.errors import KafkaError
from penstock.sql.engine.chains import Chain
from penstock.sql.engine.properties import is_read_from_beginning
from penstock.sql.engine.pull import rows_of
from penstock.sql.engine.rows import Row, RowQueue
from penstock.sql.errors import EngineError
from penstock.sql.formats.decoding import DELETED, Decoded, RowDecoder
from penstock.sql.kafka import KafkaAccess

_POLL_MS = 500
_FULL_PAUSE_S = 0.05


class PushReader:
    """Follows the topic of one chain into a queue, on an event loop it shares with the other push queries."""

    def __init__(self, chain: Chain, queue: RowQueue, kafka: KafkaAccess, properties: Mapping[str, Any]) -> None:
        self._chain = chain
        self._queue = queue
        self._kafka = kafka
        self._from_beginning = is_read_from_beginning(chain.source, properties)
        self._decoder = RowDecoder(chain.source)
        self._positioned = asyncio.Event()

    def start(self, thread: LoopThread, timeout_s: float) -> None:
        """Begin; when this returns, every record that comes later will be seen."""
        thread.run(self._begin(), timeout_s)

    async def _begin(self) -> None:
        task = asyncio.get_running_loop().create_task(self._run())
        waiting = asyncio.create_task(self._positioned.wait())
        await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()

    async def _run(self) -> None:
        try:
            await self._follow()
        except KafkaError as error:
            self._queue.end(EngineError(f"The topic {self._chain.source.topic} cannot be read: {error}"))
        except Exception as error:
            self._queue.end(error)
            raise

    async def _follow(self) -> None:
        settings = {"isolation.level": "read_committed", "auto.offset.reset": "earliest", "enable.auto.commit": False}
        source = self._chain.source
        async with aio.Consumer(self._kafka.config("push", settings)) as consumer:
            infos = await consumer.partitions_for(source.topic)
            partitions = [TopicPartition(source.topic, info.partition) for info in infos]
            consumer.assign(partitions)
            await self._position(consumer, partitions)
            self._positioned.set()
            while not self._queue.ended:
                if self._queue.full:
                    await asyncio.sleep(_FULL_PAUSE_S)
                    continue
                batch = await consumer.consume_arrow(_POLL_MS, headers=bool(source.schema.headers))
                if batch.num_rows:
                    self._queue.put(self._rows(self._decoder.decode(batch)))

    async def _position(self, consumer: aio.Consumer, partitions: list[TopicPartition]) -> None:
        if self._from_beginning:
            consumer.seek_to_beginning(partitions)
        else:
            for partition, end in (await consumer.end_offsets(partitions)).items():
                consumer.seek(partition, end)

    def _rows(self, decoded: Decoded) -> list[Row]:
        """A table's row that does not match is of no interest; a deletion always is."""
        rows = []
        for row in rows_of(decoded.batch, self._chain.source):
            deleted = bool(row.get(DELETED))
            if deleted or self._chain.matches(row):
                rows.append(Row(self._chain.project(row), deleted))
        return rows
