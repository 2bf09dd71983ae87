"""Keeping the in-sync replicas of led partitions true: asking the controller to add and remove members.

A follower that has caught up joins, one that has not been caught up for `replica.lag.time.max.ms` leaves. There is one
wish per partition at a time; a refused one is given up, and the next fetch or the next look finds out whether it is
still wanted.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator

from penstock.base import metric_names as names
from penstock.base.errors import KafkaError
from penstock.base.metrics import Metrics
from penstock.base.ports import Clock, Tasks, Timer
from penstock.metadata.image import PartitionState
from penstock.replication.partition import IsrProposal, Partition

AlterIsr = Callable[[IsrProposal], Awaitable[PartitionState]]
"""Brings a wish to the controller; KafkaError when it is refused."""

log = logging.getLogger(__name__)


class IsrMaintenance:
    def __init__(
        self,
        alter_isr: AlterIsr | None,
        partitions: Callable[[], Iterator[Partition]],
        watermark_moved: Callable[[Partition], None],
        *,
        node_epoch: Callable[[], int],
        clock: Clock,
        tasks: Tasks,
        metrics: Metrics,
        lag_time_max_ms: int,
    ) -> None:
        self._alter_isr = alter_isr
        self._partitions = partitions
        self._watermark_moved = watermark_moved
        self._node_epoch = node_epoch
        self._clock = clock
        self._tasks = tasks
        self._interval_s = lag_time_max_ms / 2000
        self._timer: Timer | None = None
        self._shrinks = metrics.counter(names.ISR_SHRINKS)
        self._expands = metrics.counter(names.ISR_EXPANDS)

    def start(self) -> None:
        if self._alter_isr is not None:
            self._timer = self._tasks.call_later(self._interval_s, self._look)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        now_ms = self._clock.time_ms()
        for partition in self._partitions():
            if partition.remote:
                self.maybe_shrink(partition, now_ms)
        self.start()

    def maybe_expand(self, partition: Partition) -> None:
        if self._alter_isr is not None and (joining := partition.joining_replica()) is not None:
            self._propose(self._alter_isr, partition, partition.isr | {joining})

    def maybe_shrink(self, partition: Partition, now_ms: int) -> None:
        if self._alter_isr is not None and (lagging := partition.lagging_replicas(now_ms)):
            self._propose(self._alter_isr, partition, partition.isr - lagging)

    def _propose(self, alter_isr: AlterIsr, partition: Partition, isr: frozenset[int]) -> None:
        before = len(partition.isr)
        proposal = partition.propose_isr(isr, self._node_epoch())
        log.info("%s: asking for ISR %s instead of %s", partition.topic_partition, sorted(isr), sorted(partition.isr))

        async def ask() -> None:
            try:
                state = await alter_isr(proposal)
            except KafkaError as error:
                log.info("%s: ISR %s was refused: %s", partition.topic_partition, sorted(isr), error)
                partition.reject_isr(proposal)
                return
            counter = self._expands if len(isr) > before else self._shrinks
            counter.value += 1
            if partition.commit_isr(proposal, state, self._clock.time_ms()):
                self._watermark_moved(partition)

        self._tasks.spawn(ask(), name=f"alter ISR of {partition.topic_partition}")
