"""What a shard does by itself: it aborts transactions that are open for too long, and forgets ids nobody uses."""

from __future__ import annotations

import logging
from collections.abc import Callable

from penstock.coordinator.runtime.shard import CoordinatorRecord, Result, ScheduleTimer
from penstock.coordinator.transaction.operations.ending import fence
from penstock.coordinator.transaction.producer_ids import ProducerIdNeededError
from penstock.coordinator.transaction.shard import TransactionShard

ABORT_TIMER = "abort timed-out transactions"
EXPIRE_TIMER = "forget expired transactional ids"
RECORDS_AT_ONCE_MAX = 500
"""So that a turn of the loop stays short; what is left comes in the next."""

log = logging.getLogger(__name__)


class Upkeep:
    """`producer_id_needed` is to bring a fresh id, for the next turn."""

    def __init__(self, producer_id_needed: Callable[[], None]) -> None:
        self._producer_id_needed = producer_id_needed

    def start(self, shard: TransactionShard) -> None:
        settings, timers = shard.settings(), shard.context.timers
        timers.schedule(ABORT_TIMER, settings.abort_interval_ms, self.abort_timed_out)
        timers.schedule(EXPIRE_TIMER, settings.expiration_interval_ms, self.forget_expired)

    def abort_timed_out(self, shard: TransactionShard) -> Result[int]:
        now_ms = shard.now_ms
        overdue = [metadata for each in shard.ongoing if (metadata := shard.transactions[each]).timed_out(now_ms)]
        records: list[CoordinatorRecord] = []
        for metadata in overdue[:RECORDS_AT_ONCE_MAX]:
            try:
                records.append(shard.record(fence(shard, metadata)))
            except ProducerIdNeededError:
                self._producer_id_needed()
                continue
            log.info(
                "aborting the transaction of %r: it is open for more than %d ms",
                metadata.transactional_id,
                metadata.timeout_ms,
            )
        delay_ms = 0 if len(overdue) > RECORDS_AT_ONCE_MAX else shard.settings().abort_interval_ms
        return _result(records, ScheduleTimer(key=ABORT_TIMER, delay_ms=delay_ms, operation=self.abort_timed_out))

    def forget_expired(self, shard: TransactionShard) -> Result[int]:
        settings, now_ms = shard.settings(), shard.now_ms
        expired = [
            each for each, metadata in shard.transactions.items() if metadata.expired(now_ms, settings.id_expiration_ms)
        ]
        records = [shard.tombstone(each) for each in expired[:RECORDS_AT_ONCE_MAX]]
        delay_ms = 0 if len(expired) > RECORDS_AT_ONCE_MAX else settings.expiration_interval_ms
        return _result(records, ScheduleTimer(key=EXPIRE_TIMER, delay_ms=delay_ms, operation=self.forget_expired))


def _result(records: list[CoordinatorRecord], again: ScheduleTimer) -> Result[int]:
    return Result(records, len(records), is_atomic=False, timers=(again,))
