"""The stores of one server, by the name of their table."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from penstock import KafkaTimeout, aio
from penstock.client.core.loop_thread import LoopThread
from penstock.sql.errors import EngineError
from penstock.sql.formats.decoding import BadRecord
from penstock.sql.kafka import KafkaAccess
from penstock.sql.plan.nodes import SourceNode
from penstock.sql.stores.following import Follower
from penstock.sql.stores.table_store import TableReader, TableStore, remove

T = TypeVar("T")

CATCH_UP_TIMEOUT_S = 120.0
_CLOSE_TIMEOUT_S = 30.0
_LOOK_UP_MS = 3_000
"""Whoever asks for a table whose topic was deleted need not wait as long as for a cluster."""


class OpenTable:
    """A store that follows its topic."""

    def __init__(self, store: TableStore, follower: Follower, thread: LoopThread) -> None:
        self.store = store
        self._follower = follower
        self._thread = thread
        self._filled = False
        self._task = thread.run(self._begin())

    async def _begin(self) -> asyncio.Task[None]:
        return asyncio.get_running_loop().create_task(self._follower.run())

    @property
    def reader(self) -> TableReader:
        return self.store.reader

    def wait_until_filled(self, timeout_s: float = CATCH_UP_TIMEOUT_S) -> None:
        """Wait until the store has what the topic had when it was opened; afterwards it only lags a little."""
        if not self._filled:
            self.wait_until_current(timeout_s)
            self._filled = True

    def wait_until_current(self, timeout_s: float = CATCH_UP_TIMEOUT_S) -> None:
        """Wait until the store has what the topic has now."""
        self.wait_for(self._thread.run(self._follower.end(), timeout_s), timeout_s)

    def wait_for(self, position: dict[int, int], timeout_s: float = CATCH_UP_TIMEOUT_S) -> None:
        if not self.store.wait_for(position, timeout_s):
            raise EngineError(
                f"The table {self.store.source.name} did not catch up with its topic {self.store.source.topic} within "
                f"{timeout_s:.0f} s (it is at {dict(self.store.position)}, wanted {position}): look at the broker."
            )

    def close(self) -> None:
        self._thread.run(self._end(), _CLOSE_TIMEOUT_S)
        self.store.close()

    async def _end(self) -> None:
        self._task.cancel()
        await asyncio.wait({self._task})


class Stores:
    """Opens, finds and closes tables. `report` gets the records that could not be decoded."""

    def __init__(self, folder: Path, kafka: KafkaAccess, report: Callable[[list[BadRecord]], None]) -> None:
        self._folder = folder
        self._kafka = kafka
        self._report = report
        self._tables: dict[str, OpenTable] = {}
        self._lock = threading.Lock()
        self._thread = LoopThread("penstock-sql-tables")

    def path(self, name: str) -> Path:
        return self._folder / f"{quote(name, safe='')}.sqlite"

    def open(self, source: SourceNode, retention_ms: int | None = None) -> OpenTable:
        """The table of this source, opened (and filled in the background) if it is not yet."""
        with self._lock:
            table = self._tables.get(source.name)
            if table is None:
                topic_id = self._run(self._topic_id(source.topic))
                store = TableStore(self.path(source.name), source, topic_id, retention_ms)
                follower = Follower(store, self._kafka, self._report)
                table = self._tables[source.name] = OpenTable(store, follower, self._thread)
            return table

    def close_table(self, name: str) -> None:
        """Forget a table that was dropped, with its file."""
        with self._lock:
            table = self._tables.pop(name, None)
        if table is not None:
            table.close()
        remove(self.path(name))

    def close(self) -> None:
        with self._lock:
            for table in self._tables.values():
                table.close()
            self._tables.clear()
        self._thread.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._thread.run(work, CATCH_UP_TIMEOUT_S)

    async def _topic_id(self, topic: str) -> str:
        async with aio.Consumer(self._kafka.config("topics")) as consumer:
            try:
                await consumer.partitions_for(topic, _LOOK_UP_MS)
            except KafkaTimeout:  # Nobody answered yet.
                await consumer.partitions_for(topic)
            return str((await consumer.list_topics())[topic].topic_id)
