"""Writes the markers of transactions whose end is decided, over the wire, until every partition has its own.

Brokers are asked with WriteTxnMarkers, also this one: so nothing changes when there are more. Markers decided in the
same turn of the loop, or while a request is under way, go out together. What fails is tried again after a pause that
grows, at whoever leads the partition by then, without an end: only this releases the partition's readers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ports import Tasks
from penstock.base.types import TopicPartition
from penstock.coordinator.transaction.marker_queue import LeaderOf, Marker, MarkerQueue, PendingTransaction
from penstock.coordinator.transaction.metadata import TransactionMetadata, by_topic
from penstock.coordinator.transaction.settings import TransactionSettings
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

_QUIET_ATTEMPTS: Final = 5
"""Failures before the log speaks of them; a leader that moves makes one or two."""

log = logging.getLogger(__name__)


class Peers(Protocol):
    """Requests to brokers; `penstock.network.pool.ChannelPool` is one."""

    def send(
        self, node_id: int, api_key: int, message: object, *, timeout_ms: float | None = None, at_least: int = 0
    ) -> asyncio.Future[Any]: ...


class MarkerSender:
    """A shard's outbox. `written` is called when every partition of a transaction has its marker; it must end with
    `done`, when the coordinator has noted it, or with `retry_completion`."""

    def __init__(
        self,
        *,
        peers: Peers,
        leader_of: LeaderOf,
        tasks: Tasks,
        settings: Callable[[], TransactionSettings],
        written: Callable[[PendingTransaction], None],
    ) -> None:
        self._peers = peers
        self._tasks = tasks
        self._settings = settings
        self._written = written
        self._queue = MarkerQueue(leader_of)
        self._completions: dict[tuple[int, str], asyncio.Future[None]] = {}
        self._flush_planned = False
        self._closed = False

    @property
    def pending_count(self) -> int:
        return len(self._queue)

    def holds(self, transaction: PendingTransaction) -> bool:
        return not self._closed and self._queue.holds(transaction)

    # -- From the shards -----------------------------------------------------------------------------------------------

    def prepared(self, partition: int, coordinator_epoch: int, metadata: TransactionMetadata) -> None:
        transaction = PendingTransaction(partition, coordinator_epoch, metadata)
        if not self._closed and self._queue.add(transaction):
            self._route(transaction, transaction.remaining.copy())

    def unloaded(self, partition: int) -> None:
        self._queue.drop_partition(partition)
        for key in [key for key in self._completions if key[0] == partition]:
            _wake(self._completions.pop(key))

    def done(self, transaction: PendingTransaction) -> None:
        """The coordinator has noted that every marker is written, or has nothing to do with it any more."""
        self._queue.drop(transaction)
        waiting = self._completions.pop(transaction.key, None)
        if waiting is not None:
            _wake(waiting)

    def completion(self, partition: int, transactional_id: str, wait_ms: int) -> asyncio.Future[None] | None:
        """Done when what is being written for this id is, or after `wait_ms`; None when nothing is."""
        key = (partition, transactional_id)
        if self._closed or wait_ms <= 0 or not self._queue.has(key):
            return None
        waiting = self._completions.get(key)
        if waiting is None or waiting.done():
            waiting = self._completions[key] = self._tasks.future()
            self._tasks.call_later(wait_ms / 1000, lambda: self._give_up(key, waiting))
        return waiting

    def _give_up(self, key: tuple[int, str], waiting: asyncio.Future[None]) -> None:
        if self._completions.get(key) is waiting:
            del self._completions[key]
        _wake(waiting)

    def retry_completion(self, transaction: PendingTransaction) -> None:
        self._later(transaction, lambda: self._written(transaction))

    async def drain(self, wait_ms: int) -> None:
        """Wait for what is being written at this moment, though not for long."""
        waiting = [self.completion(*key, wait_ms) for key in self._queue.pending_keys()]
        for each in waiting:
            if each is not None:
                await each

    def close(self) -> None:
        """What is not written is written by whoever loads the shards next."""
        self._closed = True

    # -- Sending -------------------------------------------------------------------------------------------------------

    def _route(self, transaction: PendingTransaction, partitions: set[TopicPartition]) -> None:
        waiting = self._queue.route(transaction, partitions)
        if waiting:
            self._again(transaction, waiting, "no leader")
        if not transaction.remaining:
            self._written(transaction)
        self._plan_flush()

    def _plan_flush(self) -> None:
        if not self._flush_planned and self._queue.ready_nodes():
            self._flush_planned = True
            self._tasks.call_soon(self._flush)

    def _flush(self) -> None:
        self._flush_planned = False
        if self._closed:
            return
        settings = self._settings()
        for node in self._queue.ready_nodes():
            markers = self._queue.take(node, settings.markers_per_request_max)
            if markers:
                self._tasks.spawn(self._ask(node, markers, settings.marker_timeout_ms), name=f"markers to {node}")

    async def _ask(self, node: int, markers: Sequence[Marker], timeout_ms: int) -> None:
        reason = ""
        answers: Mapping[int, Mapping[TopicPartition, ErrorCode]] = {}
        try:
            response = await self._peers.send(
                node, ApiKey.WRITE_TXN_MARKERS, _request(markers), timeout_ms=timeout_ms, at_least=1
            )
            answers = _codes(response)
        except KafkaError as error:
            reason = error.message
        self._queue.returned(node)
        for marker in markers:
            self._note(marker, answers.get(marker.transaction.producer.id, {}), reason)
        self._plan_flush()

    def _note(self, marker: Marker, codes: Mapping[TopicPartition, ErrorCode], reason: str) -> None:
        transaction = marker.transaction
        if not self.holds(transaction):
            return
        again = self._queue.answered(marker, codes)
        if again:
            why = reason or ", ".join(sorted({codes[each].name for each in again if each in codes})) or "no answer"
            self._again(transaction, again, why)
        elif self._queue.holds(transaction) and not transaction.remaining:
            self._written(transaction)

    def _again(self, transaction: PendingTransaction, partitions: set[TopicPartition], reason: str) -> None:
        if transaction.attempts >= _QUIET_ATTEMPTS:
            log.warning("markers of %r will be tried again: %s", transaction, reason)
        self._later(transaction, lambda: self._route(transaction, partitions))

    def _later(self, transaction: PendingTransaction, act: Callable[[], None]) -> None:
        settings = self._settings()
        pause_ms = min(settings.marker_backoff_ms << min(transaction.attempts, 20), settings.marker_backoff_max_ms)
        transaction.attempts += 1
        self._tasks.call_later(pause_ms / 1000, lambda: act() if self.holds(transaction) else None)


def _request(markers: Sequence[Marker]) -> WriteTxnMarkersRequest:
    return WriteTxnMarkersRequest(
        markers=[
            WritableTxnMarker(
                producer_id=transaction.producer.id,
                producer_epoch=transaction.producer.epoch,
                transaction_result=transaction.commit,
                topics=[
                    WritableTxnMarkerTopic(name=topic, partition_indexes=indexes)
                    for topic, indexes in by_topic(partitions).items()
                ],
                coordinator_epoch=transaction.coordinator_epoch,
                transaction_version=transaction.version,
            )
            for transaction, partitions in markers
        ]
    )


def _codes(response: WriteTxnMarkersResponse) -> dict[int, dict[TopicPartition, ErrorCode]]:
    found: dict[int, dict[TopicPartition, ErrorCode]] = {}
    for marker in response.markers:
        codes = found.setdefault(marker.producer_id, {})
        for topic in marker.topics:
            for each in topic.partitions:
                codes[TopicPartition(topic.name, each.partition_index)] = ErrorCode.of(each.error_code)
    return found


def _wake(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)
