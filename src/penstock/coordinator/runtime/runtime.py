"""The coordinator runtime: one shard per partition of a topic that is led here.

`load` and `unload` follow the partition's leadership. `write` runs an operation at once, replays and appends its
records, and gives its answer when the high watermark has passed them, and all that the operation may have seen. `read`
runs a query on committed state. Everything runs on the loop, so operations never meet; they are appended in the order
in which they ran.

Errors are KafkaErrors that clients understand: NOT_COORDINATOR when the partition is not led here,
COORDINATOR_LOAD_IN_PROGRESS while it loads, COORDINATOR_NOT_AVAILABLE when a write is not committed in time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Final, Generic

from penstock.base.errors import KafkaError
from penstock.base.ports import Clock, Tasks
from penstock.coordinator.placement import partition_for
from penstock.coordinator.runtime.hosted import HostedShard
from penstock.coordinator.runtime.loading import Loader
from penstock.coordinator.runtime.log import CoordinatorLog
from penstock.coordinator.runtime.shard import NO_PRODUCER, MakeShard, Operation, ProducerIdentity, Query, R, S
from penstock.coordinator.runtime.states import ShardState, not_active_error, not_coordinator
from penstock.coordinator.runtime.timers import TimerQueue
from penstock.records.compression import Codec

LOADS_AT_ONCE_MAX: Final = 4
DEFAULT_WRITE_TIMEOUT_MS: Final = 5000

log = logging.getLogger(__name__)


class CoordinatorRuntime(Generic[S]):
    """`partition_count` is asked at every look-up of a key, since the topic is made on first use."""

    def __init__(
        self,
        topic: str,
        source: CoordinatorLog,
        *,
        clock: Clock,
        tasks: Tasks,
        make_shard: MakeShard[S],
        partition_count: Callable[[], int],
        write_timeout_ms: int = DEFAULT_WRITE_TIMEOUT_MS,
        codec: Codec = Codec.NONE,
        checks_invariants: bool = False,
    ) -> None:
        self.topic = topic
        self._log = source
        self._clock = clock
        self._tasks = tasks
        self._make_shard = make_shard
        self._partition_count = partition_count
        self._write_timeout_ms = write_timeout_ms
        self._codec = codec
        self._checks_invariants = checks_invariants
        self._timers = TimerQueue(clock, tasks)
        self._hosted: dict[int, HostedShard[S]] = {}
        self._loads_at_once = asyncio.Semaphore(LOADS_AT_ONCE_MAX)
        self._is_closed = False
        self.load_time_max_s = 0.0
        """The longest that any partition took to load."""

    # -- Leadership ------------------------------------------------------------------------------------------------

    def load(self, partition: int, leader_epoch: int) -> None:
        """The partition is led here in `leader_epoch`; older epochs than the known one change nothing."""
        if self._is_closed:
            return
        hosted = self._hosted.get(partition)
        if hosted is None:
            try:
                self._log.subscribe(partition, self)
            except KafkaError as error:
                log.warning("%s-%d is not led here after all: %s", self.topic, partition, error.message)
                return
            hosted = self._hosted[partition] = self._new_hosted(partition)
        elif leader_epoch <= hosted.leader_epoch:
            return
        if hosted.state in (ShardState.LOADING, ShardState.ACTIVE):
            hosted.change_epoch(leader_epoch)
            return
        self._start_loading(hosted, leader_epoch)

    def unload(self, partition: int, leader_epoch: int | None = None) -> None:
        """The partition is not led here any more, since `leader_epoch`; None: whatever the epoch, it is gone."""
        hosted = self._hosted.get(partition)
        if hosted is None or (leader_epoch is not None and leader_epoch < hosted.leader_epoch):
            return
        del self._hosted[partition]
        self._log.unsubscribe(partition, self)
        hosted.close()

    def close(self) -> None:
        """Stop: whoever waits gets NOT_COORDINATOR, and so does everybody from now on."""
        self._is_closed = True
        for partition in list(self._hosted):
            self.unload(partition)
        self._timers.close()

    def _new_hosted(self, partition: int) -> HostedShard[S]:
        return HostedShard(
            f"{self.topic}-{partition}",
            partition,
            self._log,
            clock=self._clock,
            tasks=self._tasks,
            timers=self._timers,
            make_shard=self._make_shard,
            write_timeout_ms=self._write_timeout_ms,
            codec=self._codec,
            checks_invariants=self._checks_invariants,
            reload=self._start_loading,
        )

    def _start_loading(self, hosted: HostedShard[S], leader_epoch: int) -> None:
        try:
            loader = hosted.start_loading(leader_epoch)
        except KafkaError as error:
            log.error("%s cannot be loaded: %s", hosted.name, error.message)
            hosted.fail()
            return
        if loader is not None:
            self._tasks.spawn(self._load(hosted, loader), name=f"load {hosted.name}")

    async def _load(self, hosted: HostedShard[S], loader: Loader) -> None:
        async with self._loads_at_once:
            await hosted.load(loader)
            self.load_time_max_s = max(self.load_time_max_s, hosted.load_time_s)

    # -- What the log tells ------------------------------------------------------------------------------------------

    def high_watermark_moved(self, partition: int, offset: int) -> None:
        hosted = self._hosted.get(partition)
        if hosted is not None:
            hosted.high_watermark_moved(offset)

    def leadership_changed(self, partition: int, leader_epoch: int | None) -> None:
        if leader_epoch is None:
            self.unload(partition)
        else:
            self.load(partition, leader_epoch)

    # -- Operations ------------------------------------------------------------------------------------------------

    def partition_for(self, key: str) -> int:
        """Where a group or transactional id lives."""
        return partition_for(key, self._partition_count())

    def write(
        self,
        partition: int,
        name: str,
        operation: Operation[S, R],
        timeout_ms: int | None = None,
        *,
        producer: ProducerIdentity | None = None,
    ) -> asyncio.Future[R]:
        """Run an operation; its answer when it is committed. With a producer its records are part of a transaction."""
        hosted = self._hosted.get(partition)
        if hosted is None:
            future: asyncio.Future[R] = self._tasks.future()
            future.set_exception(not_coordinator(f"{self.topic}-{partition}"))
            return future
        timeout_ms = self._write_timeout_ms if timeout_ms is None else timeout_ms
        return hosted.write(name, operation, timeout_ms, producer or NO_PRODUCER)

    def complete_transaction(
        self,
        partition: int,
        name: str,
        producer: ProducerIdentity,
        *,
        committed: bool,
        coordinator_epoch: int,
        timeout_ms: int | None = None,
    ) -> asyncio.Future[None]:
        """Write a transaction's marker into the partition and apply it to the shard."""
        hosted = self._hosted.get(partition)
        if hosted is None:
            future: asyncio.Future[None] = self._tasks.future()
            future.set_exception(not_coordinator(f"{self.topic}-{partition}"))
            return future
        return hosted.complete_transaction(
            name,
            producer,
            committed=committed,
            coordinator_epoch=coordinator_epoch,
            timeout_ms=self._write_timeout_ms if timeout_ms is None else timeout_ms,
        )

    def read(self, partition: int, query: Query[S, R]) -> R:
        """Run a query, which reads committed state only."""
        hosted = self._hosted.get(partition)
        if hosted is None:
            raise not_coordinator(f"{self.topic}-{partition}")
        return hosted.read(query)

    def read_all(self, query: Query[S, R]) -> list[R]:
        """The same query on every shard; COORDINATOR_LOAD_IN_PROGRESS while one is loading."""
        for hosted in self._hosted.values():
            if hosted.state in (ShardState.INITIAL, ShardState.LOADING):
                raise not_active_error(hosted.state, hosted.name)
        return [hosted.read(query) for hosted in self._hosted.values() if hosted.state is ShardState.ACTIVE]

    # -- What there is -----------------------------------------------------------------------------------------------

    def state(self, partition: int) -> ShardState | None:
        """None: not here."""
        hosted = self._hosted.get(partition)
        return None if hosted is None else hosted.state

    def leader_epoch(self, partition: int) -> int:
        """The epoch in which the partition is led here, which is the coordinator's epoch; -1 when it is not."""
        hosted = self._hosted.get(partition)
        return -1 if hosted is None else hosted.leader_epoch

    def active_partitions(self) -> Iterable[int]:
        return [each.partition for each in self._hosted.values() if each.state is ShardState.ACTIVE]

    def active_shards(self) -> Iterator[S]:
        return (each.active_shard() for each in self._hosted.values() if each.state is ShardState.ACTIVE)

    def hosted_partitions(self) -> Iterable[int]:
        return list(self._hosted)

    def count_in(self, state: ShardState) -> int:
        return sum(1 for each in self._hosted.values() if each.state is state)

    def check_invariants(self) -> None:
        for hosted in self._hosted.values():
            hosted.check_invariants()
