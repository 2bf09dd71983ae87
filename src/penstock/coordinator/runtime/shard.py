"""What a coordinator is made of: shards, operations on them, the records and answers that come out.

A shard is the state machine of one partition. An *operation* is a plain function on a shard; it looks at the newest
state (uncommitted included) and returns a `Result`: records, an answer, timers. It changes no hard state: the runtime
appends the records and replays each of them, and only `replay` writes to the shard's timeline structures. The answer is
given when the records are committed. A *query* is a function on a shard that reads the `..._committed` views alone.

Soft state (who waits for an answer, sessions' deadlines) is the shard's own; `on_complete` of a result tells how the
write ended, and `rolled_back` that hard state went back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from penstock.base.errors import KafkaError
from penstock.base.ports import Clock
from penstock.coordinator.runtime.timeline import Timeline

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class CoordinatorRecord(NamedTuple):
    """A record as it goes into the log. `value` None is a tombstone."""

    key: bytes
    value: bytes | None


class ProducerIdentity(NamedTuple):
    """On whose behalf records are part of a transaction."""

    id: int
    epoch: int


NO_PRODUCER = ProducerIdentity(-1, -1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleTimer:
    """Run `operation` on the shard in `delay_ms`, as a write; a timer with the same key is replaced.

    With `retry` it is run again a little later when its write failed for any other reason than the shard's end.
    """

    key: str
    delay_ms: int
    operation: Callable[[Any], Result[Any]]
    retry: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelTimer:
    key: str


TimerEffect = ScheduleTimer | CancelTimer


@dataclass(frozen=True, slots=True)
class Result(Generic[R_co]):
    """What an operation decided.

    `is_atomic`: all records in one batch, or none of them; otherwise as many batches as it takes.
    `replay`: False when the shard has the state already (then `on_complete` must undo it on failure).
    `on_complete`: called once when the records are committed (None) or are not going to be (the error).
    `timers`: set and cancelled after the append worked.
    """

    records: Sequence[CoordinatorRecord]
    response: R_co
    is_atomic: bool = True
    replay: bool = True
    timers: Sequence[TimerEffect] = ()
    on_complete: Callable[[KafkaError | None], None] | None = None


class ShardTimers(Protocol):
    """A shard's own timers; gone when it is unloaded. For soft state that no `Result` goes with."""

    def schedule(self, key: str, delay_ms: int, operation: Callable[[Any], Result[Any]], *, retry: bool = True) -> None:
        """As `ScheduleTimer`. Cheap to call again and again with a later deadline, as heartbeats do."""

    def cancel(self, key: str) -> None: ...

    def is_scheduled(self, key: str) -> bool: ...


class ShardContext:
    """What a shard is built with. `leader_epoch` follows the partition's."""

    __slots__ = ("clock", "leader_epoch", "partition", "timeline", "timers")

    def __init__(
        self, *, partition: int, leader_epoch: int, timeline: Timeline, timers: ShardTimers, clock: Clock
    ) -> None:
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.timeline = timeline
        self.timers = timers
        self.clock = clock


class CoordinatorShard(Protocol):
    """The state machine of one partition."""

    def replay(self, offset: int, producer_id: int, producer_epoch: int, key: bytes, value: bytes | None) -> None:
        """Apply one record. A producer id other than -1: it counts only once its transaction commits.

        `UnknownRecordTypeError`: a kind of record that is not ours; it is skipped.
        """

    def replay_end_transaction(self, producer_id: int, producer_epoch: int, committed: bool) -> None: ...

    def on_loaded(self) -> None:
        """All records are replayed and operations may come; set timers here."""

    def on_unloaded(self) -> None:
        """The shard has ended. Whoever waits on its soft state is to be answered NOT_COORDINATOR."""

    def committed(self, offset: int) -> None:
        """Everything below `offset` is committed, the timeline structures included."""

    def rolled_back(self, offset: int) -> None:
        """Everything at `offset` and above was undone, the timeline structures included."""

    def check_invariants(self) -> None:
        """AssertionError when the state contradicts itself; after every event in tests."""


S = TypeVar("S", bound=CoordinatorShard)
Operation = Callable[[S], Result[R]]
Query = Callable[[S], R]
MakeShard = Callable[[ShardContext], S]
