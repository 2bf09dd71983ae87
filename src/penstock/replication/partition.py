"""The core of one partition on one broker: epochs, in-sync replicas, high watermark, and what readers may see.

Plain values in, effects on the log out; who waits for what is told through `listeners`, and time comes as an argument.

**High watermark.** The smallest log end over the *maximal* ISR: the committed one plus whatever a change that is not
yet decided would add. Counting too many members only delays it, counting too few would show records that can be lost.
It stands still while the ISR is below the minimum. With no replica but this one it is the log end at every append.

**ISR changes** are wishes. `propose_isr` makes one and nothing else happens until the controller has answered:
`commit_isr` takes the new state, `reject_isr` goes back. Answers and metadata with an older partition epoch change
nothing.

**Epochs.** A client may say which leader epoch it believes in: lower than ours means it is behind (FENCED), higher
means we are (UNKNOWN).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.types import TopicPartition
from penstock.metadata.image import NO_LEADER, PartitionState
from penstock.records.validation import ValidatedBatch
from penstock.replication.counters import TopicCounters
from penstock.replication.fetching import DivergingEpoch, FetchIsolation, FetchPartition, FetchResult
from penstock.replication.replica import Replica
from penstock.replication.settings import TopicSettings
from penstock.storage.log import AppendInfo, Log

if TYPE_CHECKING:
    from penstock.replication.delayed import DelayedFetch, DelayedProduce

ALL_ACKS = -1
TO_HIGH_WATERMARK = -1
"""Asks DeleteRecords to delete everything that is committed."""
_FLUSH_NEVER = (1 << 63) - 1

IsEligible = Callable[[int, int], bool]
"""Whether the broker (id, the epoch it fetched with) may join an ISR: it is alive, and it is that life of it."""


class PartitionListener(Protocol):
    """For those who live on a partition, such as a coordinator. Calls come from inside the change: be short."""

    def high_watermark_moved(self, partition: Partition, offset: int) -> None: ...

    def leadership_changed(self, partition: Partition) -> None:
        """It became or stopped being led here, or got a new leader epoch."""

    def partition_stopped(self, partition: Partition) -> None:
        """Deleted, or its disk failed: nothing more will come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IsrProposal:
    """A wish for the controller. `isr` are (broker id, broker epoch)."""

    topic_id: UUID
    partition: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[tuple[int, int], ...]


class Partition:
    """A replica on this broker whose log is open.

    Read by the hot path: `is_leader`, `rules` (how to validate a batch), `append_is_commit` (an append is answered at
    once, with any acks), `counters`. `fetch_waiters` and `produce_waiters` belong to `replication.delayed`.
    """

    __slots__ = (
        "_eligible",
        "_lag_time_max_ms",
        "append_is_commit",
        "counters",
        "effective_min_isr",
        "fetch_waiters",
        "is_alone",
        "is_leader",
        "isr",
        "leader",
        "leader_epoch",
        "leader_epoch_start",
        "listeners",
        "log",
        "maximal_isr",
        "node_id",
        "partition_epoch",
        "pending",
        "produce_waiters",
        "remote",
        "replicas",
        "rules",
        "settings",
        "stopped",
        "topic_id",
        "topic_partition",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        topic_id: UUID,
        log: Log,
        *,
        node_id: int,
        settings: TopicSettings,
        counters: TopicCounters,
        lag_time_max_ms: int,
        eligible: IsEligible,
    ) -> None:
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.log = log
        self.node_id = node_id
        self.counters = counters
        self._lag_time_max_ms = lag_time_max_ms
        self._eligible = eligible
        self.replicas: tuple[int, ...] = ()
        self.isr: frozenset[int] = frozenset()
        self.maximal_isr: frozenset[int] = frozenset()
        self.pending: IsrProposal | None = None
        self.remote: dict[int, Replica] = {}
        self.leader = NO_LEADER
        self.leader_epoch = -1
        self.partition_epoch = -1
        self.leader_epoch_start = -1
        self.is_leader = False
        self.is_alone = False
        self.append_is_commit = False
        self.effective_min_isr = 1
        self.stopped: ErrorCode | None = None
        self.fetch_waiters: dict[DelayedFetch, FetchPartition] = {}
        self.produce_waiters: list[DelayedProduce] = []
        self.listeners: list[PartitionListener] = []
        self.update_settings(settings)

    def __repr__(self) -> str:
        role = "leader" if self.is_leader else "follower"
        return f"<Partition {self.topic_partition} {role} epoch={self.leader_epoch} isr={sorted(self.isr)}>"

    # -- Metadata --------------------------------------------------------------------------------------------------

    def update_settings(self, settings: TopicSettings) -> None:
        self.settings = settings
        self.rules = settings.rules
        self._derive()

    def apply_state(self, state: PartitionState, now_ms: int) -> bool:
        """Take over what the metadata says; True when this broker's leadership began, ended or got a new epoch."""
        if state.partition_epoch < self.partition_epoch:
            return False
        was_leader, old_epoch = self.is_leader, self.leader_epoch
        self.replicas = state.replicas
        self.isr = self.maximal_isr = frozenset(state.isr)
        self.pending = None
        self.partition_epoch = state.partition_epoch
        self.leader = state.leader
        self.leader_epoch = state.leader_epoch
        self.is_leader = state.leader == self.node_id
        changed = was_leader != self.is_leader or (self.is_leader and old_epoch != self.leader_epoch)
        if self.is_leader:
            self._lead(now_ms, new_epoch=changed)
        else:
            self.remote.clear()
            self.leader_epoch_start = -1
        self._derive()
        return changed

    def _lead(self, now_ms: int, *, new_epoch: bool) -> None:
        followers = [each for each in self.replicas if each != self.node_id]
        self.remote = {each: self.remote.get(each) or Replica(each) for each in followers}
        if new_epoch:
            self.leader_epoch_start = self.log.log_end_offset
            # Known even before its first record: who asks for the end of an older epoch must get this offset.
            self.log.epochs.assign(self.leader_epoch, self.leader_epoch_start)
            for replica in self.remote.values():
                replica.reset(now_ms=now_ms, in_sync=replica.broker_id in self.isr)

    def _derive(self) -> None:
        self.effective_min_isr = min(self.settings.min_insync_replicas, max(1, len(self.replicas)))
        self.is_alone = self.is_leader and not self.remote
        self.append_is_commit = self.is_alone and self.settings.log.flush_messages == _FLUSH_NEVER

    def stop(self, reason: ErrorCode) -> None:
        """The replica is gone from this broker: whoever still holds it is refused with `reason`."""
        self.stopped = reason
        self.is_leader = False
        self.append_is_commit = False
        self.remote.clear()

    # -- Epochs ----------------------------------------------------------------------------------------------------

    def check_leader_epoch(self, current_leader_epoch: int) -> None:
        """FENCED_LEADER_EPOCH or UNKNOWN_LEADER_EPOCH; -1 is a client that does not say."""
        if current_leader_epoch < 0 or current_leader_epoch == self.leader_epoch:
            return
        behind = current_leader_epoch < self.leader_epoch
        code = ErrorCode.FENCED_LEADER_EPOCH if behind else ErrorCode.UNKNOWN_LEADER_EPOCH
        raise KafkaError(
            code,
            f"{self.topic_partition} is at leader epoch {self.leader_epoch}, the request at {current_leader_epoch}.",
        )

    def check_leader(self, current_leader_epoch: int = -1) -> None:
        if self.stopped is not None:
            raise KafkaError(self.stopped, f"{self.topic_partition} is no longer on broker {self.node_id}.")
        self.check_leader_epoch(current_leader_epoch)
        if not self.is_leader:
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER, f"Broker {self.node_id} does not lead {self.topic_partition}."
            )

    # -- Appending -------------------------------------------------------------------------------------------------

    def append(self, batch: ValidatedBatch, required_acks: int, now_ms: int) -> AppendInfo:
        """Append as leader and advance the high watermark as far as that allows."""
        if not self.is_leader:
            self.check_leader()
        if required_acks == ALL_ACKS and len(self.isr) < self.effective_min_isr:
            raise self._not_enough(ErrorCode.NOT_ENOUGH_REPLICAS)
        log = self.log
        info = log.append_as_leader(batch, self.leader_epoch, now_ms)
        if self.is_alone:
            log.set_high_watermark(log.log_end_offset)
        else:
            self.maybe_advance_high_watermark(now_ms)
        return info

    def check_enough_replicas(self) -> None:
        """For an append that was acknowledged by all of an ISR that became too small meanwhile."""
        if len(self.maximal_isr) < self.effective_min_isr:
            raise self._not_enough(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)

    def _not_enough(self, code: ErrorCode) -> KafkaError:
        return KafkaError(
            code,
            f"The size of the current ISR {sorted(self.isr)} is insufficient to satisfy the min.isr requirement of "
            f"{self.effective_min_isr} for partition {self.topic_partition}.",
        )

    def maybe_advance_high_watermark(self, now_ms: int) -> bool:
        """True when it moved."""
        if not self.is_leader or len(self.isr) < self.effective_min_isr:
            return False
        log = self.log
        leader_end = end = log.log_end_offset
        for replica in self.remote.values():
            if replica.log_end_offset < end and self._counts(replica, leader_end, now_ms):
                end = replica.log_end_offset
        if end <= log.high_watermark:
            return False
        log.set_high_watermark(end)
        return True

    def _counts(self, replica: Replica, leader_end: int, now_ms: int) -> bool:
        """A follower about to join is waited for too: a watermark that runs away would never let it in."""
        if replica.broker_id in self.maximal_isr:
            return True
        caught_up = replica.is_caught_up(leader_end=leader_end, now_ms=now_ms, lag_time_max_ms=self._lag_time_max_ms)
        return caught_up and self._eligible(replica.broker_id, replica.broker_epoch)

    # -- Deleting records ------------------------------------------------------------------------------------------

    def delete_records_before(self, offset: int) -> None:
        """Move the start of the log up to `offset`; -1 stands for the high watermark."""
        self.check_leader()
        config = self.settings.log
        if config.cleanup_compact and not config.cleanup_delete:
            raise KafkaError(
                ErrorCode.POLICY_VIOLATION,
                f"Records of {self.topic_partition} cannot be deleted: its cleanup.policy is compact.",
            )
        wanted = self.log.high_watermark if offset == TO_HIGH_WATERMARK else offset
        if wanted < 0:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE, f"{self.topic_partition} has no offset {wanted} to be deleted up to."
            )
        self.log.delete_records_before(wanted)

    @property
    def low_watermark(self) -> int:
        """The offset below which no replica in sync has records any more."""
        starts = [each.log_start_offset for each in self.remote.values() if each.broker_id in self.isr]
        return min([self.log.log_start_offset, *starts])

    # -- Followers and the ISR ---------------------------------------------------------------------------------------

    def follower(self, replica_id: int, current_leader_epoch: int) -> Replica:
        replica = self.remote.get(replica_id)
        if replica is None:
            known = current_leader_epoch >= 0
            raise KafkaError(
                ErrorCode.UNKNOWN_LEADER_EPOCH if known else ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"Broker {replica_id} has no replica of {self.topic_partition} in leader epoch {self.leader_epoch}.",
            )
        return replica

    def follower_fetched(
        self, replica: Replica, offset: int, *, log_start_offset: int, now_ms: int, broker_epoch: int
    ) -> bool:
        """Note how far the follower is; True when the high watermark moved."""
        if replica.broker_epoch > broker_epoch >= 0:
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"Broker {replica.broker_id} has been at epoch {replica.broker_epoch} since; this is {broker_epoch}.",
            )
        replica.fetched(
            offset,
            log_start_offset=log_start_offset,
            now_ms=now_ms,
            leader_end=self.log.log_end_offset,
            broker_epoch=broker_epoch,
        )
        return self.maybe_advance_high_watermark(now_ms)

    def joining_replica(self) -> int | None:
        """A follower outside the ISR that has all committed records and reached this leader's own."""
        if not self.is_leader or self.pending is not None:
            return None
        floor = max(self.log.high_watermark, self.leader_epoch_start)
        for replica in self.remote.values():
            if (
                replica.broker_id not in self.isr
                and replica.log_end_offset >= floor
                and self._eligible(replica.broker_id, replica.broker_epoch)
            ):
                return replica.broker_id
        return None

    def lagging_replicas(self, now_ms: int) -> frozenset[int]:
        """Members of the ISR that have not been caught up for too long."""
        if not self.is_leader or self.pending is not None:
            return frozenset()
        end = self.log.log_end_offset
        limit = self._lag_time_max_ms
        return frozenset(
            replica.broker_id
            for replica in self.remote.values()
            if replica.broker_id in self.isr
            and not replica.is_caught_up(leader_end=end, now_ms=now_ms, lag_time_max_ms=limit)
        )

    def propose_isr(self, isr: Iterable[int], node_epoch: int) -> IsrProposal:
        """Wish for another ISR; until it is decided the high watermark counts both."""
        wanted = frozenset(isr)
        self.maximal_isr = self.isr | wanted
        epochs = {each: replica.broker_epoch for each, replica in self.remote.items()}
        self.pending = IsrProposal(
            topic_id=self.topic_id,
            partition=self.topic_partition.partition,
            leader_epoch=self.leader_epoch,
            partition_epoch=self.partition_epoch,
            isr=tuple((each, epochs.get(each, node_epoch)) for each in sorted(wanted)),
        )
        return self.pending

    def commit_isr(self, proposal: IsrProposal, state: PartitionState, now_ms: int) -> bool:
        """The controller agreed; True when the high watermark moved."""
        if self.pending is proposal:
            self.apply_state(state, now_ms)
        return self.maybe_advance_high_watermark(now_ms)

    def reject_isr(self, proposal: IsrProposal) -> None:
        if self.pending is proposal:
            self.pending = None
            self.maximal_isr = self.isr

    @property
    def is_under_replicated(self) -> bool:
        return self.is_leader and len(self.isr) < len(self.replicas)

    # -- Reading ---------------------------------------------------------------------------------------------------

    def readable_end(self, isolation: FetchIsolation) -> int:
        log = self.log
        if isolation == FetchIsolation.HIGH_WATERMARK:
            return log.high_watermark
        return log.last_stable_offset if isolation == FetchIsolation.COMMITTED else log.log_end_offset

    def read(
        self, request: FetchPartition, max_bytes: int, isolation: FetchIsolation, min_one_batch: bool
    ) -> FetchResult:
        """Records from the asked offset up to what `isolation` shows; KafkaError for what cannot be read."""
        if not self.is_leader or request.current_leader_epoch >= 0:
            self.check_leader(request.current_leader_epoch)
        log = self.log
        high_watermark, stable = log.high_watermark, log.last_stable_offset
        result = FetchResult(request, ErrorCode.NONE, high_watermark, stable, log.log_start_offset)
        result.partition = self
        if request.last_fetched_epoch >= 0:
            result.diverging_epoch = self._divergence(request)
            if result.diverging_epoch is not None:
                return result
        if isolation == FetchIsolation.HIGH_WATERMARK:
            end = high_watermark
        else:
            end = stable if isolation == FetchIsolation.COMMITTED else log.log_end_offset
        offset = request.fetch_offset
        records = result.records = log.read(offset, max_bytes, up_to_offset=end, min_one_batch=min_one_batch)
        if isolation == FetchIsolation.COMMITTED:
            if records is None:
                result.aborted = []
            else:
                result.aborted = log.aborted_transactions(offset, min(end, log.upper_bound_offset(records)))
        return result

    def readable_bytes(self, request: FetchPartition, isolation: FetchIsolation) -> int:
        """How much `read` would give at most; measured in the index, nothing is read."""
        end = self.readable_end(isolation)
        records = self.log.read(request.fetch_offset, request.max_bytes, up_to_offset=end, min_one_batch=True)
        if records is None:
            return 0
        records.release()
        return records.length

    def _divergence(self, request: FetchPartition) -> DivergingEpoch | None:
        """Whether the reader's last epoch ended earlier here than where it goes on from (KIP-595)."""
        found = self.log.end_offset_for_epoch(request.last_fetched_epoch)
        if found is None or found.epoch < 0:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self.topic_partition} does not know where leader epoch {request.last_fetched_epoch} ended.",
            )
        if request.fetch_offset < self.log.log_start_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self.topic_partition} starts at offset {self.log.log_start_offset}, not {request.fetch_offset}.",
            )
        if found.epoch < request.last_fetched_epoch or found.offset < request.fetch_offset:
            return DivergingEpoch(found.epoch, found.offset)
        return None
