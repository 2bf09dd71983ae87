"""The transaction coordinator as handlers see it: requests in, answers when they are committed.

It is the shell around the shards: it finds the shard of a transactional id, brings fresh producer ids to operations
that need one, and carries a decided transaction through its markers to its completion.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ports import Tasks
from penstock.coordinator.runtime.runtime import CoordinatorRuntime
from penstock.coordinator.runtime.shard import Result, ShardContext
from penstock.coordinator.transaction.answers import Answer, DescribedTransaction, ListedTransaction, Verified
from penstock.coordinator.transaction.marker_queue import LeaderOf, PendingTransaction
from penstock.coordinator.transaction.markers import MarkerSender, Peers
from penstock.coordinator.transaction.operations.ending import EndTransaction, complete_transaction, end_transaction
from penstock.coordinator.transaction.operations.looking import (
    TransactionFilter,
    describe_transaction,
    list_transactions,
)
from penstock.coordinator.transaction.operations.owning import InitProducerId, init_producer_id
from penstock.coordinator.transaction.operations.partitions import (
    PartitionsOfTransaction,
    add_partitions,
    verify_partitions,
)
from penstock.coordinator.transaction.operations.upkeep import Upkeep
from penstock.coordinator.transaction.producer_ids import ProducerIdNeededError, SpareProducerIds
from penstock.coordinator.transaction.settings import TransactionSettings
from penstock.coordinator.transaction.shard import TransactionShard

DRAIN_MS: Final = 500

log = logging.getLogger(__name__)


class TransactionCoordinator:
    """`make_shard` is for the runtime, which is then handed over with `attach` before the first request."""

    def __init__(
        self,
        *,
        settings: Callable[[], TransactionSettings],
        next_producer_id: Callable[[], Awaitable[int]],
        peers: Peers,
        leader_of: LeaderOf,
        tasks: Tasks,
    ) -> None:
        self._settings = settings
        self._tasks = tasks
        self._producer_ids = SpareProducerIds(next_producer_id)
        self._upkeep = Upkeep(self._fetch_producer_id)
        self._runtime: CoordinatorRuntime[TransactionShard] | None = None
        self.markers = MarkerSender(
            peers=peers, leader_of=leader_of, tasks=tasks, settings=settings, written=self._markers_written
        )

    def make_shard(self, context: ShardContext) -> TransactionShard:
        return TransactionShard(
            context,
            settings=self._settings,
            producer_ids=self._producer_ids,
            outbox=self.markers,
            duties=self._upkeep,
        )

    def attach(self, runtime: CoordinatorRuntime[TransactionShard]) -> None:
        self._runtime = runtime

    @property
    def runtime(self) -> CoordinatorRuntime[TransactionShard]:
        assert self._runtime is not None
        return self._runtime

    async def stop(self) -> None:
        """Before the runtime. Markers that are on their way may arrive; the others are the next coordinator's."""
        await self.markers.drain(DRAIN_MS)
        self.close()

    def close(self) -> None:
        """Before the runtime: no more markers are sent."""
        self.markers.close()

    # -- Requests ------------------------------------------------------------------------------------------------------

    async def init_producer_id(self, request: InitProducerId) -> Answer:
        if not request.transactional_id:
            return Answer(ErrorCode.INVALID_REQUEST)
        if not 0 < request.timeout_ms <= self._settings().timeout_max_ms:
            return Answer(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
        return await self._write(
            "init producer id", request.transactional_id, lambda shard: init_producer_id(shard, request)
        )

    async def add_partitions(self, request: PartitionsOfTransaction) -> Answer:
        if not request.transactional_id:
            return Answer(ErrorCode.INVALID_REQUEST)
        # Often the end of the last transaction has been answered and its markers are on their way: a matter of
        # milliseconds, while the client's pause before its next attempt is a long time.
        partition = self.runtime.partition_for(request.transactional_id)
        completion = self.markers.completion(partition, request.transactional_id, self._settings().completion_wait_ms)
        if completion is not None:
            await asyncio.shield(completion)
        return await self._write(
            "add partitions to transaction", request.transactional_id, lambda shard: add_partitions(shard, request)
        )

    def verify_partitions(self, request: PartitionsOfTransaction) -> Verified:
        if not request.transactional_id:
            return dict.fromkeys(request.partitions, ErrorCode.INVALID_REQUEST)
        try:
            partition = self.runtime.partition_for(request.transactional_id)
            return self.runtime.read(partition, lambda shard: verify_partitions(shard, request))
        except KafkaError as error:
            return dict.fromkeys(request.partitions, error.code)

    async def end_transaction(self, request: EndTransaction) -> Answer:
        if not request.transactional_id:
            return Answer(ErrorCode.INVALID_REQUEST)
        return await self._write(
            "end transaction", request.transactional_id, lambda shard: end_transaction(shard, request)
        )

    def describe_transaction(self, transactional_id: str) -> DescribedTransaction:
        if not transactional_id:
            return DescribedTransaction(transactional_id, ErrorCode.INVALID_REQUEST)
        try:
            partition = self.runtime.partition_for(transactional_id)
            return self.runtime.read(partition, lambda shard: describe_transaction(shard, transactional_id))
        except KafkaError as error:
            return DescribedTransaction(transactional_id, error.code)

    def list_transactions(self, wanted: TransactionFilter) -> list[ListedTransaction]:
        """KafkaError while a shard is loading: the list would not be whole."""
        found = self.runtime.read_all(lambda shard: list_transactions(shard, wanted))
        return [each for of_shard in found for each in of_shard]

    async def _write(
        self, name: str, transactional_id: str, operation: Callable[[TransactionShard], Result[Answer]]
    ) -> Answer:
        """An operation that lacks a producer id is run again when there is one. Never raises KafkaError."""
        while True:
            try:
                partition = self.runtime.partition_for(transactional_id)
                return await self.runtime.write(partition, name, operation, self._settings().write_timeout_ms)
            except ProducerIdNeededError:
                try:
                    await self._producer_ids.refill()
                except KafkaError as error:
                    log.warning("no new producer id for %r: %s", transactional_id, error.message)
                    return Answer(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            except KafkaError as error:
                return Answer(error.code)

    # -- The end of a transaction --------------------------------------------------------------------------------------

    def _markers_written(self, transaction: PendingTransaction) -> None:
        self._tasks.spawn(self._complete(transaction), name=f"complete {transaction.transactional_id}")

    async def _complete(self, transaction: PendingTransaction) -> None:
        if not self.markers.holds(transaction):
            return
        try:
            await self.runtime.write(
                transaction.partition,
                "complete transaction",
                lambda shard: complete_transaction(shard, transaction.transactional_id, transaction.producer),
                self._settings().write_timeout_ms,
            )
        except KafkaError as error:
            # Whatever the code says: the transaction is ours as long as its shard is here. When it goes, the markers
            # forget it, and whoever loads the shard goes on.
            if self.markers.holds(transaction):
                log.info("the completion of %r is tried again: %s", transaction, error.message)
                self.markers.retry_completion(transaction)
        else:
            self.markers.done(transaction)

    def _fetch_producer_id(self) -> None:
        self._tasks.spawn(self._refill(), name="producer id for an aborted transaction")

    async def _refill(self) -> None:
        try:
            await self._producer_ids.refill()
        except KafkaError as error:
            log.warning("no new producer id to abort a transaction: %s", error.message)
