"""One member's life in its group, as a state machine: events in, effects out.

`STATES` says which state may follow which. A state is about the conversation with the coordinator; the identity (member
id and generation) has a life of its own: a rebalance keeps it, a refusal takes it away. A member without an identity
has lost its partitions, whatever it still believes to own.

What a poll has to do next is `next_step`. Before a member joins it *prepares*: offsets are committed and partitions
given up while it is still a full member, since the others wait for it. After the assignment came it *completes*: the
listener hears of it. Both are the driver's work, as they call the user.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final

from penstock.base.errors import ErrorCode, KafkaError
from penstock.client.consumer.group.events import (
    NO_MEMBER,
    Completed,
    Effect,
    Event,
    ForgetCoordinator,
    Identity,
    JoinAnswered,
    JoinStarted,
    LeaveWanted,
    Pause,
    PollExpired,
    Prepared,
    Refused,
    RejoinWanted,
    RequestFailed,
    SendJoin,
    SendLeave,
    SendSync,
    SessionExpired,
    SyncAnswered,
    Wake,
)
from penstock.client.errors import ClientError, error_for


class State(enum.Enum):
    UNJOINED = "unjoined"
    """Nothing under way. There may still be an identity, from before a rebalance."""
    JOINING = "joining"
    """JoinGroup was sent; the coordinator waits for the other members. No heartbeats: it does not expect any."""
    SYNCING = "syncing"
    """In the new generation, waiting for the leader's assignment."""
    ARRIVED = "arrived"
    """The assignment is here; the listener was not told yet."""
    STABLE = "stable"
    FENCED = "fenced"
    """Another member has the same group.instance.id. Nothing follows."""


STATES: Final[Mapping[State, frozenset[State]]] = {
    State.UNJOINED: frozenset({State.JOINING}),
    State.JOINING: frozenset({State.SYNCING, State.UNJOINED, State.FENCED}),
    State.SYNCING: frozenset({State.ARRIVED, State.UNJOINED, State.FENCED}),
    State.ARRIVED: frozenset({State.STABLE, State.UNJOINED, State.FENCED}),
    State.STABLE: frozenset({State.JOINING, State.UNJOINED, State.FENCED}),
    State.FENCED: frozenset(),
}
HEARTBEATING: Final = frozenset({State.SYNCING, State.ARRIVED, State.STABLE})
SETTLED: Final = frozenset({State.ARRIVED, State.STABLE})


class Step(enum.Enum):
    """What a poll does next."""

    NOTHING = "nothing"
    PREPARE = "prepare"
    JOIN = "join"
    WAIT = "wait"
    COMPLETE = "complete"


_COORDINATOR_GONE: Final = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})
_IDENTITY_GONE: Final = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION})
_TRY_AGAIN: Final = frozenset({ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS})


class Machine:
    def __init__(self, group_id: str, instance_id: str | None = None) -> None:
        self.group_id = group_id
        self.instance_id = instance_id
        self.state = State.UNJOINED
        self.identity = Identity()
        self.rejoin_reason: str | None = "the member is new"
        self.failure: KafkaError | None = None
        """For the next poll to raise; `take_failure` does."""
        self.is_leader = False
        self.poll_expired = False
        """Whether the identity was given up because the user did not poll."""
        self._is_prepared = False

    # Questions.

    def next_step(self) -> Step:
        match self.state:
            case State.JOINING | State.SYNCING:
                return Step.WAIT
            case State.ARRIVED:
                return Step.COMPLETE
            case State.STABLE if self.rejoin_reason is None:
                return Step.NOTHING
            case State.FENCED:
                return Step.NOTHING
        return Step.JOIN if self._is_prepared else Step.PREPARE

    @property
    def needs_heartbeats(self) -> bool:
        return self.state in HEARTBEATING

    @property
    def may_commit(self) -> bool:
        """Whether the coordinator will take commits under the present identity."""
        return self.state in SETTLED and self.identity.is_member

    @property
    def is_rebalancing(self) -> bool:
        return self.state in (State.JOINING, State.SYNCING)

    def take_failure(self) -> KafkaError | None:
        """Once, except for the one that lasts."""
        failure = self.failure
        if self.state is not State.FENCED:
            self.failure = None
        return failure

    # Events.

    def handle(self, event: Event) -> list[Effect]:
        match event:
            case RejoinWanted():
                return self._want_rejoin(event.reason)
            case Prepared():
                self._is_prepared = True
                return []
            case JoinStarted():
                return self._start_join()
            case JoinAnswered():
                return self._join_answered(event)
            case SyncAnswered():
                return self._sync_answered(event)
            case RequestFailed():
                return self._request_failed(event)
            case Completed():
                return self._completed()
            case Refused():
                return self._refused(event)
            case PollExpired():
                return self._poll_expired()
            case SessionExpired():
                return [ForgetCoordinator()]
            case LeaveWanted():
                return self._leave(event.reason, event.even_static)

    def _want_rejoin(self, reason: str) -> list[Effect]:
        if self.rejoin_reason is not None:
            return []
        self.rejoin_reason = reason
        return [Wake()]

    def _start_join(self) -> list[Effect]:
        self._enter(State.JOINING)
        self.poll_expired = False
        return [SendJoin(identity=self.identity, reason=self.rejoin_reason or "")]

    def _join_answered(self, event: JoinAnswered) -> list[Effect]:
        if self.state is not State.JOINING:
            return []
        if event.code == ErrorCode.MEMBER_ID_REQUIRED:
            # KIP-394: the coordinator gives the id first, so that a join that is lost leaves no ghost.
            self.identity = Identity(member_id=event.member_id)
            return [SendJoin(identity=self.identity, reason=self.rejoin_reason or "")]
        if event.code:
            return self._exchange_refused(event.code)
        self._enter(State.SYNCING)
        self.rejoin_reason = None
        self.is_leader = event.leader_id == event.member_id
        self.identity = Identity(member_id=event.member_id, generation_id=event.generation_id, protocol=event.protocol)
        return [
            SendSync(identity=self.identity, is_leader=self.is_leader, is_assigned_already=event.is_assigned_already)
        ]

    def _sync_answered(self, event: SyncAnswered) -> list[Effect]:
        if self.state is not State.SYNCING:
            return []
        if event.code:
            return self._exchange_refused(event.code)
        if event.protocol is not None and event.protocol != self.identity.protocol:
            return self._exchange_refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        self._enter(State.ARRIVED)
        return [Wake()]

    def _exchange_refused(self, number: int) -> list[Effect]:
        code = ErrorCode.of(number)
        if code is ErrorCode.FENCED_INSTANCE_ID:
            return self._fenced()
        self._back_to_unjoined("the join was refused: " + code.name)
        if code in _IDENTITY_GONE:
            # After ILLEGAL_GENERATION the member id is still good.
            self._lose_identity(keep_member_id=code is ErrorCode.ILLEGAL_GENERATION)
            return [Wake()]
        if code in _COORDINATOR_GONE:
            return [ForgetCoordinator(), Pause(), Wake()]
        if code in _TRY_AGAIN:
            return [Wake()] if code is ErrorCode.REBALANCE_IN_PROGRESS else [Pause(), Wake()]
        self.failure = self._explain(code)
        return [Wake()]

    def _explain(self, code: ErrorCode) -> ClientError:
        return error_for(code, f"Group {self.group_id}: {_EXPLANATIONS.get(code) or error_for(code).message}")

    def _request_failed(self, event: RequestFailed) -> list[Effect]:
        if self.state not in (State.JOINING, State.SYNCING):
            return []
        self._back_to_unjoined("the last join failed")
        self.failure = event.error
        return [Wake()] if event.error is not None else [ForgetCoordinator(), Pause(), Wake()]

    def _completed(self) -> list[Effect]:
        if self.state is State.ARRIVED:
            self._enter(State.STABLE)
            self._is_prepared = False
        return []

    def _refused(self, event: Refused) -> list[Effect]:
        code = ErrorCode.of(event.code)
        if code in _COORDINATOR_GONE:
            return [ForgetCoordinator()]
        if event.identity != self.identity or self.state not in SETTLED:
            # About a generation that is over; the join under way will hear what is true now.
            return []
        if code is ErrorCode.REBALANCE_IN_PROGRESS:
            return self._want_rejoin("the group is rebalancing")
        if code is ErrorCode.FENCED_INSTANCE_ID:
            return self._fenced()
        if code in _IDENTITY_GONE:
            self._back_to_unjoined(f"the coordinator answered {code.name}")
            self._lose_identity(keep_member_id=code is ErrorCode.ILLEGAL_GENERATION)
            return [Wake()]
        if code is ErrorCode.GROUP_AUTHORIZATION_FAILED:
            self.failure = self._explain(code)
            return [Wake()]
        return []

    def _poll_expired(self) -> list[Effect]:
        if self.state not in HEARTBEATING:
            return []
        effects = self._leave("max.poll.interval.ms passed without a poll", even_static=False)
        self.poll_expired = True
        return effects

    def _leave(self, reason: str, even_static: bool) -> list[Effect]:
        member_id, was_joining = self.identity.member_id, self.state is State.JOINING
        if self.state is State.FENCED:
            return []
        if self.state is not State.UNJOINED:
            self._back_to_unjoined(reason)
        self._lose_identity(keep_member_id=False)
        # A static member keeps its place until its session is over: that is what it is for.
        if member_id == NO_MEMBER or (self.instance_id is not None and not even_static):
            return []
        return [SendLeave(member_id=member_id, reason=reason, was_joining=was_joining)]

    def _fenced(self) -> list[Effect]:
        self._enter(State.FENCED)
        self.identity = Identity()
        self.is_leader = False
        self.failure = self._explain(ErrorCode.FENCED_INSTANCE_ID)
        return [Wake()]

    def _lose_identity(self, *, keep_member_id: bool) -> None:
        self.identity = Identity(member_id=self.identity.member_id if keep_member_id else NO_MEMBER)
        self.is_leader = False
        # Partitions are lost now, which the listener must hear before anything else.
        self._is_prepared = False

    def _back_to_unjoined(self, reason: str) -> None:
        self._enter(State.UNJOINED)
        self.rejoin_reason = self.rejoin_reason or reason

    def _enter(self, state: State) -> None:
        assert state in STATES[self.state], f"{self.state} -> {state}"
        self.state = state


_EXPLANATIONS: Final = {
    ErrorCode.FENCED_INSTANCE_ID: (
        "another member has joined with the same group.instance.id, and this one may do nothing more; "
        "give every member an instance id of its own."
    ),
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL: (
        "the other members offer no assignor that this one has; make partition.assignment.strategy the same in all, "
        "or name one that they have in common."
    ),
    ErrorCode.INVALID_SESSION_TIMEOUT: (
        "the broker does not accept session.timeout.ms; it must lie between the broker's group.min.session.timeout.ms "
        "and group.max.session.timeout.ms."
    ),
    ErrorCode.GROUP_MAX_SIZE_REACHED: (
        "the group has as many members as the broker's group.max.size allows; stop one, or raise that setting."
    ),
    ErrorCode.INVALID_GROUP_ID: "the broker does not accept group.id; choose another one.",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "this user may not read in the group; grant READ on it, or use another one.",
}
