"""Members by aiokafka, all on one event loop."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from typing import Any

import aiokafka
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.errors import KafkaError

from tests.compat.members.wire import COMMIT_MS, FETCH_WAIT_MS, HEARTBEAT_MS, POLL_MS, Join, Reporter, serve

ASSIGNORS = {one.name: one for one in (RangePartitionAssignor, RoundRobinPartitionAssignor, StickyPartitionAssignor)}


class AioKafkaMember(aiokafka.ConsumerRebalanceListener):  # type: ignore[misc]
    def __init__(self, join: Join, loop: asyncio.AbstractEventLoop) -> None:
        self._join = join
        self._report = Reporter(join.member)
        self._leaving = threading.Event()
        self._consumer: Any = None
        asyncio.run_coroutine_threadsafe(self._run(), loop)

    def leave(self) -> None:
        self._leaving.set()

    async def _run(self) -> None:
        join = self._join
        self._consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=join.bootstrap,
            group_id=join.group,
            group_instance_id=join.instance,
            partition_assignment_strategy=(ASSIGNORS[join.assignor],),
            session_timeout_ms=join.session_ms,
            heartbeat_interval_ms=HEARTBEAT_MS,
            auto_offset_reset="earliest",
            # By hand after they are printed: its own commits come from a task that may run ahead of the report.
            enable_auto_commit=False,
            isolation_level=join.isolation,
            fetch_max_wait_ms=FETCH_WAIT_MS,
        )
        self._consumer.subscribe([join.topic], listener=self)
        await self._consumer.start()
        committed = time.monotonic()
        while not self._leaving.is_set():
            await self._poll()
            if time.monotonic() - committed > COMMIT_MS / 1000:
                await self._commit()
                committed = time.monotonic()
        await self._commit()
        await self._consumer.stop()
        self._report.left()

    async def _poll(self) -> None:
        try:
            read = await self._consumer.getmany(timeout_ms=POLL_MS)
        except KafkaError as problem:
            self._report.failed(problem)
            return
        self._report.records({place.partition: [one.offset for one in records] for place, records in read.items()})

    async def _commit(self) -> None:
        try:
            await self._consumer.commit()
        except KafkaError as problem:
            # A rebalance is under way: the records will be delivered again.
            if not problem.retriable and type(problem).__name__ not in ("CommitFailedError", "IllegalStateError"):
                self._report.failed(problem)

    async def on_partitions_assigned(self, assigned: set[Any]) -> None:
        self._report.gained((one.partition for one in assigned), self._consumer._coordinator.generation)

    async def on_partitions_revoked(self, revoked: set[Any]) -> None:
        self._report.gave_up(one.partition for one in revoked)
        await self._commit()


def main() -> None:
    logging.disable(logging.CRITICAL)
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    serve(lambda join: AioKafkaMember(join, loop))


if __name__ == "__main__":
    main()
