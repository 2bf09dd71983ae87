"""Reads a topic into its store, for ever.

All followers of a server run on one event loop; decoding and SQLite work run in its threads. A follower starts where
the store's position is, so nothing is applied twice and nothing is missed. What it cannot decode is reported and left
out; what it cannot read (the cluster is away) it tries again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator

import pyarrow

from penstock import aio
from penstock.base.types import TopicPartition
from penstock.client.errors import KafkaError
from penstock.sql.formats.decoding import DELETED, BadRecord, RowDecoder
from penstock.sql.formats.rows import python_rows
from penstock.sql.kafka import KafkaAccess
from penstock.sql.schema import PSEUDO_COLUMNS, WINDOW_COLUMNS
from penstock.sql.stores.table_store import Change, TableStore

log = logging.getLogger(__name__)

_POLL_MS = 1_000
_BACKOFF_S = 1.0


class Follower:
    def __init__(self, store: TableStore, kafka: KafkaAccess, report: Callable[[list[BadRecord]], None]) -> None:
        self._store = store
        self._kafka = kafka
        self._report = report
        self._decoder = RowDecoder(store.source)
        self._asker: aio.Consumer | None = None
        """Kept for the questions about the end: joins ask before every batch."""
        self._asking = asyncio.Lock()

    async def run(self) -> None:
        try:
            await self._run()
        finally:
            await self._close_asker()

    async def _run(self) -> None:
        while True:
            try:
                await self._follow()
            except KafkaError as error:
                log.warning("The table %s cannot be read for now: %s", self._store.source.name, error)
                await asyncio.sleep(_BACKOFF_S)
            except Exception as error:
                # A store that fails (a full disk, say) must tell its readers instead of leaving them waiting.
                log.exception("The store of the table %s stopped", self._store.source.name)
                self._store.fail(error)
                raise

    async def end(self) -> dict[int, int]:
        """Where the topic ends now, for readers of committed records."""
        async with self._asking:
            try:
                if self._asker is None:
                    self._asker = self._new_consumer("ends")
                ends = await self._asker.end_offsets(await self._partitions(self._asker))
            except BaseException:
                await self._close_asker()
                raise
        return {partition.partition: offset for partition, offset in ends.items()}

    async def _close_asker(self) -> None:
        asker, self._asker = self._asker, None
        if asker is not None:
            await asker.close()

    async def _follow(self) -> None:
        async with self._new_consumer(f"table-{self._store.source.name}") as consumer:
            partitions = await self._partitions(consumer)
            consumer.assign(partitions)
            for partition in partitions:
                consumer.seek(partition, self._store.position.get(partition.partition, 0))
            while True:
                batch = await consumer.consume_arrow(_POLL_MS, headers=bool(self._store.source.schema.headers))
                position = {each.partition: await consumer.position(each) for each in partitions}
                if position != self._store.position:
                    await asyncio.to_thread(self._apply, batch, position)

    def _apply(self, batch: pyarrow.RecordBatch, position: dict[int, int]) -> None:
        decoded = self._decoder.decode(batch)
        if decoded.errors:
            self._report(decoded.errors)
        self._store.apply(changes_of(decoded.batch, self._store), position)

    def _new_consumer(self, role: str) -> aio.Consumer:
        settings = {"auto.offset.reset": "earliest", "isolation.level": "read_committed", "enable.auto.commit": False}
        return aio.Consumer(self._kafka.config(role, settings))

    async def _partitions(self, consumer: aio.Consumer) -> list[TopicPartition]:
        topic = self._store.source.topic
        return [TopicPartition(topic, info.partition) for info in await consumer.partitions_for(topic)]


def changes_of(batch: pyarrow.RecordBatch, store: TableStore) -> Iterator[Change]:
    """The rows of a decoded batch as changes of the store's table."""
    schema = store.source.schema
    deleted = batch.column(DELETED).to_pylist()
    keys = python_rows(batch, {column.name: column.type for column in schema.key})
    values = python_rows(batch, {column.name: column.type for column in schema.columns})
    windows = python_rows(batch, WINDOW_COLUMNS) if store.layout.windowed else [None] * batch.num_rows
    places = python_rows(batch, PSEUDO_COLUMNS)
    for key, window, row, gone, place in zip(keys, windows, values, deleted, places, strict=True):
        yield Change(key, window, None if gone else row, *place)
