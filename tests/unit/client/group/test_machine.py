"""The member's state machine: each answer of a coordinator, and any order of events."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.base.errors import ErrorCode
from penstock.client.consumer.group.events import (
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
from penstock.client.consumer.group.machine import HEARTBEATING, STATES, Machine, State, Step
from penstock.client.errors import ClientError, FencedInstance, GroupAuthorizationFailed

ME = Identity(member_id="me", generation_id=3, protocol="range")


def joining(instance_id: str | None = None) -> Machine:
    machine = Machine("g", instance_id)
    machine.handle(Prepared())
    machine.handle(JoinStarted())
    return machine


def syncing(instance_id: str | None = None, *, leader: str = "other") -> Machine:
    machine = joining(instance_id)
    machine.handle(JoinAnswered(member_id="me", generation_id=3, protocol="range", leader_id=leader))
    return machine


def stable(instance_id: str | None = None) -> Machine:
    machine = syncing(instance_id)
    machine.handle(SyncAnswered(protocol="range"))
    machine.handle(Completed())
    return machine


def test_the_way_in() -> None:
    machine = Machine("g")
    assert machine.next_step() is Step.PREPARE
    assert machine.handle(Prepared()) == []
    assert machine.next_step() is Step.JOIN
    assert machine.handle(JoinStarted()) == [SendJoin(identity=Identity(), reason="the member is new")]
    assert machine.next_step() is Step.WAIT
    given_id = Identity(member_id="me")
    effects = machine.handle(JoinAnswered(code=ErrorCode.MEMBER_ID_REQUIRED, member_id="me"))
    assert effects == [SendJoin(identity=given_id, reason="the member is new")]
    effects = machine.handle(JoinAnswered(member_id="me", generation_id=3, protocol="range", leader_id="me"))
    assert effects == [SendSync(identity=ME, is_leader=True, is_assigned_already=False)]
    assert machine.needs_heartbeats
    assert not machine.may_commit
    assert machine.handle(SyncAnswered(protocol="range")) == [Wake()]
    assert machine.next_step() is Step.COMPLETE
    assert machine.may_commit
    machine.handle(Completed())
    assert machine.next_step() is Step.NOTHING


def test_a_rebalance_keeps_the_identity() -> None:
    machine = stable()
    assert machine.handle(Refused(code=ErrorCode.REBALANCE_IN_PROGRESS, identity=ME)) == [Wake()]
    assert machine.next_step() is Step.PREPARE
    # Offsets are committed and partitions given up by a full member.
    assert machine.may_commit
    assert machine.needs_heartbeats
    machine.handle(Prepared())
    assert machine.handle(JoinStarted()) == [SendJoin(identity=ME, reason="the group is rebalancing")]
    assert not machine.needs_heartbeats


def test_an_answer_about_an_older_generation_counts_for_nothing() -> None:
    machine = stable()
    old = Identity(member_id="me", generation_id=2, protocol="range")
    for code in (ErrorCode.ILLEGAL_GENERATION, ErrorCode.FENCED_INSTANCE_ID, ErrorCode.REBALANCE_IN_PROGRESS):
        assert machine.handle(Refused(code=code, identity=old)) == []
    assert machine.next_step() is Step.NOTHING


@pytest.mark.parametrize(
    ("code", "member_id"), [(ErrorCode.UNKNOWN_MEMBER_ID, ""), (ErrorCode.ILLEGAL_GENERATION, "me")]
)
def test_a_lost_identity_is_told_before_the_next_join(code: ErrorCode, member_id: str) -> None:
    for machine, event in [
        (stable(), Refused(code=code, identity=ME)),
        (syncing(), SyncAnswered(code=code)),
    ]:
        assert machine.handle(event) == [Wake()]
        assert machine.identity == Identity(member_id=member_id)
        assert not machine.identity.is_member
        assert machine.next_step() is Step.PREPARE
        assert not machine.may_commit


def test_a_sync_that_comes_too_late_joins_again_at_once() -> None:
    machine = syncing()
    assert machine.handle(SyncAnswered(code=ErrorCode.REBALANCE_IN_PROGRESS)) == [Wake()]
    assert machine.identity == ME
    assert machine.next_step() is Step.JOIN


@pytest.mark.parametrize("code", [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE])
def test_the_coordinator_moved(code: ErrorCode) -> None:
    machine = joining()
    assert machine.handle(JoinAnswered(code=code)) == [ForgetCoordinator(), Pause(), Wake()]
    assert machine.next_step() is Step.JOIN
    assert stable().handle(Refused(code=code, identity=ME)) == [ForgetCoordinator()]


def test_no_answer_is_tried_again_after_a_pause() -> None:
    assert syncing().handle(RequestFailed()) == [ForgetCoordinator(), Pause(), Wake()]


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "partition.assignment.strategy"),
        (ErrorCode.INVALID_SESSION_TIMEOUT, "group.min.session.timeout.ms"),
        (ErrorCode.GROUP_MAX_SIZE_REACHED, "group.max.size"),
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, "grant READ"),
        (ErrorCode.UNKNOWN_SERVER_ERROR, "g"),
    ],
)
def test_what_waiting_does_not_cure_is_raised_once(code: ErrorCode, text: str) -> None:
    machine = joining()
    machine.handle(JoinAnswered(code=code))
    failure = machine.take_failure()
    assert failure is not None
    assert failure.code is code
    assert text in failure.message
    assert machine.take_failure() is None
    assert machine.next_step() is Step.JOIN


def test_authorization_withdrawn_is_heard_by_a_heartbeat() -> None:
    machine = stable()
    assert machine.handle(Refused(code=ErrorCode.GROUP_AUTHORIZATION_FAILED, identity=ME)) == [Wake()]
    assert isinstance(machine.take_failure(), GroupAuthorizationFailed)


def test_a_fenced_member_stays_fenced() -> None:
    machine = stable("i")
    machine.handle(Refused(code=ErrorCode.FENCED_INSTANCE_ID, identity=ME))
    for _ in range(2):
        assert isinstance(machine.take_failure(), FencedInstance)
    assert machine.handle(LeaveWanted(reason="bye", even_static=True)) == []
    assert not machine.needs_heartbeats


def test_a_member_that_does_not_poll_leaves() -> None:
    machine = stable()
    (leave,) = machine.handle(PollExpired())
    assert isinstance(leave, SendLeave)
    assert leave.member_id == "me"
    assert machine.poll_expired
    assert machine.next_step() is Step.PREPARE
    machine.handle(Prepared())
    machine.handle(JoinStarted())
    assert not machine.poll_expired
    assert stable("static").handle(PollExpired()) == []


def test_leaving() -> None:
    assert Machine("g").handle(LeaveWanted(reason="bye")) == []
    assert stable("static").handle(LeaveWanted(reason="bye")) == []
    assert len(stable("static").handle(LeaveWanted(reason="bye", even_static=True))) == 1
    machine = joining()
    machine.handle(JoinAnswered(code=ErrorCode.MEMBER_ID_REQUIRED, member_id="me"))
    assert machine.handle(LeaveWanted(reason="bye")) == [SendLeave(member_id="me", reason="bye", was_joining=True)]


def test_a_session_that_is_over_only_looks_for_the_coordinator() -> None:
    machine = stable()
    assert machine.handle(SessionExpired()) == [ForgetCoordinator()]
    assert machine.identity == ME


codes = st.sampled_from([0, *(int(code) for code in ErrorCode)])
identities = st.builds(
    Identity,
    member_id=st.sampled_from(["", "me", "you"]),
    generation_id=st.integers(-1, 3),
    protocol=st.sampled_from([None, "range"]),
)
events: st.SearchStrategy[Event] = st.one_of(
    st.builds(RejoinWanted, reason=st.just("r")),
    st.builds(
        JoinAnswered,
        code=codes,
        member_id=st.just("me"),
        generation_id=st.integers(1, 3),
        protocol=st.just("range"),
        leader_id=st.sampled_from(["me", "you"]),
    ),
    st.builds(SyncAnswered, code=codes, protocol=st.sampled_from([None, "range", "other"])),
    st.builds(RequestFailed, error=st.none() | st.just(ClientError("no"))),
    st.builds(Refused, code=codes, identity=identities),
    st.builds(PollExpired),
    st.builds(SessionExpired),
    st.builds(LeaveWanted, reason=st.just("bye")),
)


@given(st.lists(events | st.none(), max_size=40), st.sampled_from([None, "i"]))
def test_any_order_of_events(story: list[Event | None], instance_id: str | None) -> None:
    """None is a poll. States follow one another as the table says, and a poll always has something to go on with."""
    machine = Machine("g", instance_id)
    for event in story:
        before = machine.state
        effects = take_step(machine) if event is None else machine.handle(event)
        assert machine.state is before or machine.state in reachable(before)
        check(machine, effects)


def take_step(machine: Machine) -> list[Effect]:
    match machine.next_step():
        case Step.PREPARE:
            return machine.handle(Prepared())
        case Step.JOIN:
            return machine.handle(JoinStarted())
        case Step.COMPLETE:
            return machine.handle(Completed())
    return []


def reachable(state: State) -> set[State]:
    return {after for each in STATES[state] for after in ({each} | STATES[each])} | STATES[state]


def check(machine: Machine, effects: list[Effect]) -> None:
    assert machine.needs_heartbeats == (machine.state in HEARTBEATING)
    if machine.state in HEARTBEATING:
        assert machine.identity.is_member
    if machine.may_commit:
        assert machine.state in (State.ARRIVED, State.STABLE)
    if machine.state is State.UNJOINED:
        assert machine.rejoin_reason is not None
        assert machine.next_step() in (Step.PREPARE, Step.JOIN)
    if machine.state is State.FENCED:
        assert machine.failure is not None
    joins = [each for each in effects if isinstance(each, SendJoin)]
    assert not joins or machine.state is State.JOINING
    syncs = [each for each in effects if isinstance(each, SendSync)]
    assert not syncs or machine.state is State.SYNCING
