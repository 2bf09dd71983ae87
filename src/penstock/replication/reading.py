"""Reading many partitions for one fetch, under Kafka's limits.

Partitions are read in the order of the request. Each gives at most its own limit and what is left of the total; the
first one that has anything gives at least one whole batch even if that is beyond both limits, since a reader could
never get past a large batch otherwise. An error of one partition is that partition's answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.metrics import Metrics
from penstock.base.ports import Clock, Tasks
from penstock.base.types import ZERO_UUID
from penstock.replication.delayed import DelayedFetch, FetchPurgatory
from penstock.replication.fetching import CONSUMER, FetchIsolation, FetchPartition, FetchResult
from penstock.replication.hosted import HostedPartitions
from penstock.replication.partition import Partition

FollowerFetched = Callable[[Partition, bool], None]
"""Told of each partition a follower fetched, and whether that moved the high watermark."""


class Reader:
    def __init__(
        self,
        hosted: HostedPartitions,
        *,
        clock: Clock,
        tasks: Tasks,
        metrics: Metrics,
        parked_max: int,
        follower_fetched: FollowerFetched,
    ) -> None:
        self._hosted = hosted
        self._by_name = hosted.by_name
        self._by_id = hosted.by_id
        self._clock = clock
        self._follower_fetched = follower_fetched
        self.purgatory = FetchPurgatory(tasks, self._read_parked, metrics=metrics, parked_max=parked_max)

    def fetch(
        self,
        requests: Sequence[FetchPartition],
        *,
        min_bytes: int,
        max_bytes: int,
        max_wait_ms: int,
        isolation: FetchIsolation,
        replica_id: int = CONSUMER,
        replica_epoch: int = -1,
    ) -> list[FetchResult] | asyncio.Future[list[FetchResult]]:
        """Results in the order of the request, now or when there is enough to answer."""
        if replica_id >= 0:
            isolation = FetchIsolation.LOG_END
        results = self.read_now(requests, max_bytes, isolation, replica_id=replica_id, replica_epoch=replica_epoch)
        wanted = min(min_bytes, max_bytes)
        if max_wait_ms <= 0 or not requests or self.purgatory.is_full or _is_answer(results, wanted):
            return _counted(results)
        parked = DelayedFetch(
            requests, min_bytes=wanted, max_bytes=max_bytes, isolation=isolation, replica_id=replica_id
        )
        return self.purgatory.park(parked, results, max_wait_ms)

    def read_now(
        self,
        requests: Sequence[FetchPartition],
        max_bytes: int,
        isolation: FetchIsolation,
        min_one_batch: bool = True,
        *,
        replica_id: int = CONSUMER,
        replica_epoch: int = -1,
    ) -> list[FetchResult]:
        """What there is at this moment; the caller owns the records in it."""
        results: list[FetchResult] = []
        for request in requests:
            try:
                partition = self._find(request)
                limit = request.max_bytes if request.max_bytes < max_bytes else max_bytes
                if replica_id < 0:
                    result = partition.read(request, limit, isolation, min_one_batch)
                else:
                    result = self._read_for_follower(
                        partition, request, limit, min_one_batch, replica_id, replica_epoch
                    )
            except KafkaError as error:
                result = self._failure(request, error)
            except OSError as error:
                result = self._failure(request, KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)))
            records = result.records
            if records is not None:
                max_bytes = max(0, max_bytes - records.length)
                min_one_batch = False
            results.append(result)
        return results

    def _find(self, request: FetchPartition) -> Partition:
        name, topic_id, index = request.topic, request.topic_id, request.partition
        if name is None:
            assert topic_id is not None
            partition = self._by_id.get((topic_id, index))
            if partition is None:
                raise self._hosted.missing_id_error(topic_id, index)
            return partition
        partition = self._by_name.get((name, index))
        if partition is None:
            raise self._hosted.missing_error(name, index)
        if topic_id is not None and partition.topic_id != topic_id:
            raise KafkaError(
                ErrorCode.INCONSISTENT_TOPIC_ID, f"Topic {name} has the id {partition.topic_id}, not {topic_id}."
            )
        return partition

    def _read_for_follower(
        self,
        partition: Partition,
        request: FetchPartition,
        max_bytes: int,
        min_one_batch: bool,
        replica_id: int,
        replica_epoch: int,
    ) -> FetchResult:
        partition.check_leader(request.current_leader_epoch)
        replica = partition.follower(replica_id, request.current_leader_epoch)
        result = partition.read(request, max_bytes, FetchIsolation.LOG_END, min_one_batch)
        if result.diverging_epoch is None:
            moved = partition.follower_fetched(
                replica,
                request.fetch_offset,
                log_start_offset=request.log_start_offset,
                now_ms=self._clock.time_ms(),
                broker_epoch=replica_epoch,
            )
            self._follower_fetched(partition, moved)
        return result

    def _read_parked(self, fetch: DelayedFetch) -> list[FetchResult]:
        # A follower's position was noted when its fetch arrived: now it would only look fresher than it is.
        return _counted(self.read_now(fetch.requests, fetch.max_bytes, fetch.isolation))

    def _failure(self, request: FetchPartition, error: KafkaError) -> FetchResult:
        if request.topic is not None:
            partition = self._by_name.get((request.topic, request.partition))
        else:
            partition = self._by_id.get((request.topic_id or ZERO_UUID, request.partition))
        if partition is not None:
            partition.counters.count_failed_fetch()
        return FetchResult(request, error.code, message=error.message)


def _is_answer(results: Sequence[FetchResult], wanted: int) -> bool:
    """Enough bytes, or something that the reader must learn of at once."""
    total = 0
    for result in results:
        if result.error is not ErrorCode.NONE or result.diverging_epoch is not None:
            return True
        if result.records is not None:
            total += result.records.length
    return total >= wanted


def _counted(results: list[FetchResult]) -> list[FetchResult]:
    for result in results:
        partition = result.partition
        if partition is None:
            continue
        counters = partition.counters
        counters.fetches.value += 1
        counters.fetches_all.value += 1
        if result.records is not None:
            size = result.records.length
            counters.bytes_out.value += size
            counters.bytes_out_all.value += size
    return results
