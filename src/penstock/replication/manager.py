"""The broker's replicas: finding a partition, appending to it, reading from it, waiting for it.

`append` and `read_now` are synchronous and are the broker's hot path. What cannot be answered at once becomes a future:
`completion` for an append that must be flushed or replicated first, `fetch` for a read that found too little.

The metadata store calls `on_metadata`; a leader's wishes for another ISR leave through `alter_isr`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from uuid import UUID

from penstock.base import metric_names as names
from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.metrics import Metrics
from penstock.base.ports import Clock, Tasks
from penstock.base.types import TopicPartition
from penstock.metadata.deltas import Delta
from penstock.metadata.image import ClusterImage
from penstock.records.validation import ValidatedBatch, validate_produced
from penstock.replication.delayed import ProducePurgatory
from penstock.replication.hosted import HostedPartitions, Logs
from penstock.replication.isr import AlterIsr, IsrMaintenance
from penstock.replication.partition import ALL_ACKS, Partition
from penstock.replication.reading import Reader
from penstock.replication.settings import SettingsFor
from penstock.storage.log import AppendInfo

PARKED_MAX = 100_000

log = logging.getLogger(__name__)


class ReplicaManager:
    def __init__(
        self,
        node_id: int,
        logs: Logs,
        *,
        clock: Clock,
        tasks: Tasks,
        metrics: Metrics,
        settings_for: SettingsFor,
        lag_time_max_ms: int = 30_000,
        alter_isr: AlterIsr | None = None,
        parked_max: int = PARKED_MAX,
    ) -> None:
        self._node_id = node_id
        self._logs = logs
        self._clock = clock
        self._tasks = tasks
        self._hosted = HostedPartitions(
            node_id,
            logs,
            clock=clock,
            metrics=metrics,
            settings_for=settings_for,
            lag_time_max_ms=lag_time_max_ms,
            roles=self,
        )
        self._by_name = self._hosted.by_name
        self._by_id = self._hosted.by_id
        self._reader = Reader(
            self._hosted,
            clock=clock,
            tasks=tasks,
            metrics=metrics,
            parked_max=parked_max,
            follower_fetched=self._follower_fetched,
        )
        self.fetch = self._reader.fetch
        self.read_now = self._reader.read_now
        self._fetches = self._reader.purgatory
        self._produces = ProducePurgatory(tasks, metrics=metrics, parked_max=parked_max)
        self._isr = IsrMaintenance(
            alter_isr,
            self.partitions,
            self.watermark_moved,
            node_epoch=self._node_epoch,
            clock=clock,
            tasks=tasks,
            metrics=metrics,
            lag_time_max_ms=lag_time_max_ms,
        )
        self._add_gauges(metrics)

    def _add_gauges(self, metrics: Metrics) -> None:
        def led(test: Callable[[Partition], bool]) -> Callable[[], float]:
            return lambda: sum(1 for each in self._by_name.values() if each.is_leader and test(each))

        metrics.gauge(names.PARTITION_COUNT, lambda: len(self._by_name))
        metrics.gauge(names.OFFLINE_REPLICA_COUNT, lambda: len(self._hosted.offline))
        metrics.gauge(names.LEADER_COUNT, led(lambda _: True))
        metrics.gauge(names.UNDER_REPLICATED_PARTITIONS, led(lambda each: each.is_under_replicated))
        metrics.gauge(names.UNDER_MIN_ISR_PARTITION_COUNT, led(lambda each: len(each.isr) < each.effective_min_isr))
        metrics.gauge(names.AT_MIN_ISR_PARTITION_COUNT, led(lambda each: len(each.isr) == each.effective_min_isr))

    # -- Life ------------------------------------------------------------------------------------------------------

    async def start(self, image: ClusterImage) -> None:
        """Take up every partition that `image` gives this broker."""
        await self._hosted.start(image)
        self._isr.start()

    async def on_metadata(self, old: ClusterImage, new: ClusterImage, deltas: Sequence[Delta]) -> None:
        await self._hosted.on_metadata(old, new, deltas)

    def stop(self) -> None:
        """Answer everybody who waits; the logs are closed by their own manager."""
        self._isr.stop()
        self._fetches.close()
        for partition in self._by_name.values():
            self._produces.failed(partition, self._not_leader(partition))

    def log_directory_failed(self, path: str, partitions: Sequence[TopicPartition]) -> None:
        """A disk does not work any more: its partitions go offline, the others go on."""
        for place in partitions:
            self._hosted.fail(place, f"log directory {path} failed")

    # -- Looking up ------------------------------------------------------------------------------------------------

    def partition(self, topic: str, index: int) -> Partition:
        """The partition led here; KafkaError with the code that tells a client what to do about it."""
        partition = self._by_name.get((topic, index))
        if partition is None:
            raise self._hosted.missing_error(topic, index)
        if not partition.is_leader:
            raise self._not_leader(partition)
        return partition

    def partition_by_id(self, topic_id: UUID, index: int) -> Partition:
        partition = self._by_id.get((topic_id, index))
        if partition is None:
            raise self._hosted.missing_id_error(topic_id, index)
        if not partition.is_leader:
            raise self._not_leader(partition)
        return partition

    def partitions(self) -> Iterator[Partition]:
        """All replicas here, led or not."""
        return iter(self._by_name.values())

    def _not_leader(self, partition: Partition) -> KafkaError:
        return KafkaError(
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            f"Broker {self._node_id} does not lead {partition.topic_partition}; {partition.leader} does.",
        )

    # -- Appending -------------------------------------------------------------------------------------------------

    def append(
        self, partition: Partition, records: memoryview, required_acks: int, now_ms: int, api_version: int = 13
    ) -> AppendInfo:
        """Validate one partition's records of a produce request and append them.

        They are committed when `partition.append_is_commit`; otherwise ask `completion` what to wait for.
        """
        counters = partition.counters
        try:
            batch = validate_produced(records, partition.rules, now_ms, api_version)
            info = partition.append(batch, required_acks, now_ms)
        except KafkaError:
            counters.count_rejected(len(records))
            raise
        size = len(records)
        counters.produces.value += 1
        counters.produces_all.value += 1
        counters.bytes_in.value += size
        counters.bytes_in_all.value += size
        messages = batch.header.count
        counters.messages_in.value += messages
        counters.messages_in_all.value += messages
        if partition.fetch_waiters or partition.produce_waiters or partition.listeners:
            self._appended(partition, len(batch.buffer), info)
        return info

    def append_own(self, partition: Partition, batch: ValidatedBatch, required_acks: int = ALL_ACKS) -> AppendInfo:
        """Append what this broker wrote itself, such as a coordinator's records."""
        info = partition.append(batch, required_acks, self._clock.time_ms())
        self._appended(partition, len(batch.buffer), info)
        return info

    def _appended(self, partition: Partition, size: int, info: AppendInfo) -> None:
        if info.duplicate:
            return
        if partition.fetch_waiters:
            self._fetches.appended(partition, size)
        if partition.produce_waiters:
            self._produces.advanced(partition)
        if partition.log.high_watermark > info.first_offset:
            for listener in list(partition.listeners):
                listener.high_watermark_moved(partition, partition.log.high_watermark)

    def completion(
        self, partition: Partition, info: AppendInfo, required_acks: int, timeout_ms: int
    ) -> asyncio.Future[None] | None:
        """What an append still has to wait for before it is answered; None when nothing."""
        log = partition.log
        waits = required_acks == ALL_ACKS and log.high_watermark <= info.last_offset
        if log.unflushed_messages >= partition.settings.log.flush_messages:
            done: asyncio.Future[None] = self._tasks.future()
            work = self._flush_then_wait(partition, info, timeout_ms if waits else None, done)
            self._tasks.spawn(work, name=f"flush {partition.topic_partition}")
            return done
        return self._produces.wait(partition, info.last_offset + 1, timeout_ms) if waits else None

    def wait_for_high_watermark(self, partition: Partition, offset: int, timeout_ms: int) -> asyncio.Future[None]:
        """Done when everything below `offset` is committed. KafkaError: REQUEST_TIMED_OUT, NOT_LEADER_OR_FOLLOWER
        when leadership is lost meanwhile, NOT_ENOUGH_REPLICAS_AFTER_APPEND when the ISR became too small."""
        return self._produces.wait(partition, offset, timeout_ms)

    async def _flush_then_wait(
        self, partition: Partition, info: AppendInfo, timeout_ms: int | None, done: asyncio.Future[None]
    ) -> None:
        try:
            await self._logs.flush(partition.log)
            if timeout_ms is not None:
                await self._produces.wait(partition, info.last_offset + 1, timeout_ms)
        except KafkaError as error:
            if not done.done():
                done.set_exception(error)
        else:
            if not done.done():
                done.set_result(None)

    async def delete_records(self, topic: str, index: int, offset: int) -> int:
        """Delete what lies before an offset, durably; the low watermark after that."""
        partition = self.partition(topic, index)
        partition.delete_records_before(offset)
        await self._logs.trim(partition.log)
        partition.check_leader()
        return partition.low_watermark

    # -- What the metadata and followers bring about ---------------------------------------------------------------

    def role_changed(self, partition: Partition) -> None:
        self._fetches.failed(partition)
        if not partition.is_leader:
            self._produces.failed(partition, self._not_leader(partition))
        for listener in list(partition.listeners):
            listener.leadership_changed(partition)

    def stopped(self, partition: Partition) -> None:
        self._fetches.failed(partition)
        reason = partition.stopped or ErrorCode.NOT_LEADER_OR_FOLLOWER
        self._produces.failed(
            partition, KafkaError(reason, f"{partition.topic_partition} is no longer on broker {self._node_id}.")
        )
        for listener in list(partition.listeners):
            listener.partition_stopped(partition)

    def watermark_moved(self, partition: Partition) -> None:
        """For every advance of the high watermark but that of an append."""
        if partition.fetch_waiters:
            self._fetches.advanced(partition)
        if partition.produce_waiters:
            self._produces.advanced(partition)
        for listener in list(partition.listeners):
            listener.high_watermark_moved(partition, partition.log.high_watermark)

    def _follower_fetched(self, partition: Partition, moved: bool) -> None:
        if moved:
            self.watermark_moved(partition)
        self._isr.maybe_expand(partition)

    def _node_epoch(self) -> int:
        registration = self._hosted.image.brokers.get(self._node_id)
        return -1 if registration is None else registration.epoch
