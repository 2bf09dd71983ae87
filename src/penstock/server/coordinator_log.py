"""The coordinators' port to their logs, filled with the replica manager.

Appends go the way of everybody's, with acks=all. Where `flush.messages` asks for it, records count as committed only
once they are synced.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ports import Tasks
from penstock.coordinator.runtime.log import LogListener
from penstock.records.validation import trust_batch
from penstock.replication.manager import ReplicaManager
from penstock.replication.partition import Partition
from penstock.storage.log import Log
from penstock.storage.segments.slices import FileSlice


class ReplicatedLog:
    """The partitions of one internal topic. Implements `CoordinatorLog`."""

    def __init__(
        self,
        topic: str,
        replicas: ReplicaManager,
        *,
        tasks: Tasks,
        flush: Callable[[Log], Awaitable[None]],
        load_buffer_bytes: int,
    ) -> None:
        self._topic = topic
        self._replicas = replicas
        self._tasks = tasks
        self._flush = flush
        self._load_buffer_bytes = load_buffer_bytes
        self._adapters: dict[int, tuple[Partition, _ListenerAdapter]] = {}

    def start_offset(self, partition: int) -> int:
        return self._led(partition).log.log_start_offset

    def end_offset(self, partition: int) -> int:
        return self._led(partition).log.log_end_offset

    def high_watermark(self, partition: int) -> int:
        return self._led(partition).log.high_watermark

    def batch_bytes_max(self, partition: int) -> int:
        found = self._led(partition)
        return min(found.rules.max_message_bytes, found.settings.log.segment_bytes)

    def append(self, partition: int, batch: bytearray, leader_epoch: int) -> int:
        found = self._led(partition)
        if found.leader_epoch != leader_epoch:
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"{found.topic_partition} is at leader epoch {found.leader_epoch}, its coordinator at {leader_epoch}.",
            )
        return self._replicas.append_own(found, trust_batch(batch)).last_offset

    def open_chunk(self, partition: int, offset: int) -> FileSlice | None:
        found = self._led(partition).log
        return found.read(offset, self._load_buffer_bytes, up_to_offset=found.log_end_offset, min_one_batch=True)

    def subscribe(self, partition: int, listener: LogListener) -> None:
        found = self._led(partition)
        adapter = _ListenerAdapter(listener, self._tasks, self._flush)
        self._adapters[partition] = (found, adapter)
        found.listeners.append(adapter)

    def unsubscribe(self, partition: int, listener: LogListener) -> None:
        entry = self._adapters.pop(partition, None)
        if entry is not None:
            found, adapter = entry
            adapter.is_closed = True
            found.listeners.remove(adapter)

    def _led(self, partition: int) -> Partition:
        return self._replicas.partition(self._topic, partition)


class _ListenerAdapter:
    """What a partition tells, in the coordinator's words."""

    def __init__(self, listener: LogListener, tasks: Tasks, flush: Callable[[Log], Awaitable[None]]) -> None:
        self._listener = listener
        self._tasks = tasks
        self._flush = flush
        self.is_closed = False

    def high_watermark_moved(self, partition: Partition, offset: int) -> None:
        index = partition.topic_partition.partition
        if partition.log.unflushed_messages >= partition.settings.log.flush_messages:
            self._tasks.spawn(self._after_flush(partition, offset), name=f"flush {partition.topic_partition}")
        else:
            self._listener.high_watermark_moved(index, offset)

    async def _after_flush(self, partition: Partition, offset: int) -> None:
        await self._flush(partition.log)
        if not self.is_closed:
            self._listener.high_watermark_moved(partition.topic_partition.partition, offset)

    def leadership_changed(self, partition: Partition) -> None:
        epoch = partition.leader_epoch if partition.is_leader else None
        self._listener.leadership_changed(partition.topic_partition.partition, epoch)

    def partition_stopped(self, partition: Partition) -> None:
        self._listener.leadership_changed(partition.topic_partition.partition, None)
