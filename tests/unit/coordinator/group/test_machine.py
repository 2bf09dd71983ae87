"""Members that join, sync, commit, crash and leave in any order, on a log that is late, refuses, or moves away.

The model is simple: an offset that was acknowledged is there until a later commit that may have worked; a generation
has one assignment; and whoever asked is answered in the end. The shard checks its own invariants after every event.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from penstock.base.errors import ErrorCode, KafkaError
from penstock.coordinator.group.classic_group import ClassicGroup
from penstock.coordinator.group.states import TRANSITIONS, GroupState
from penstock.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from tests.unit.coordinator.group.staging import GroupStage, Pending, error_of, subscription

GROUPS = ("a", "b")
CLIENTS = 6
REFUSALS = (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.KAFKA_STORAGE_ERROR)

clients = st.integers(0, CLIENTS - 1)
groups = st.sampled_from(GROUPS)
MAYBE = object()


@dataclass
class Client:
    """A consumer as far as the protocol goes. Clients from the fourth on are static members."""

    number: int
    group: str = "a"
    member_id: str = ""
    generation: int = -1
    leads: bool = False
    is_synced: bool = False
    members: list[str] = field(default_factory=list)
    join: Pending | None = None
    sync: Pending | None = None

    @property
    def instance(self) -> str | None:
        return f"i{self.number}" if self.number >= 4 else None

    def forget(self) -> None:
        self.member_id, self.generation, self.leads, self.is_synced = "", -1, False, False
        self.join = self.sync = None


class Groups(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.stage = GroupStage(initial_rebalance_delay_ms=500, max_size=5)
        self.clients = [Client(number, group=GROUPS[number % 2]) for number in range(CLIENTS)]
        self.tokens: dict[tuple[str, int], bytes] = {}
        self.history: dict[tuple[str, int], list[tuple[int, object]]] = {}
        self.writes: list[tuple[Pending, list[object], int]] = []
        self.open: dict[int, str] = {}
        self.seen: dict[int, tuple[ClassicGroup, int, GroupState]] = {}
        self.numbers = 0

    # -- Members -------------------------------------------------------------------------------------------------------

    @rule(number=clients, version=st.sampled_from([3, 9]), other=st.booleans())
    def join(self, number: int, version: int, other: bool) -> None:
        client = self.clients[number]
        if client.join is not None and not client.join.done() and not other:
            return
        protocols = [("range", subscription("orders" if other else "payments")), ("sticky", b"")]
        client.join = self.stage.join(
            client.member_id,
            group=client.group,
            version=max(version, 5) if client.instance else version,
            instance=client.instance,
            protocols=protocols,
        )

    @rule(number=clients)
    def sync(self, number: int) -> None:
        client = self.clients[number]
        self.numbers += 1
        token = str(self.numbers).encode()
        assignments = dict.fromkeys(client.members, token) if client.leads else None
        client.sync = self.stage.sync(
            client.member_id, client.generation, assignments, group=client.group, group_instance_id=client.instance
        )

    @rule(number=clients, stale=st.integers(0, 1))
    def heartbeat(self, number: int, stale: int) -> None:
        client = self.clients[number]
        code = self.stage.heartbeat(
            client.member_id, client.generation - stale, group=client.group, instance=client.instance
        )
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID) and client.join is None:
            client.forget()

    @rule(number=clients)
    def leave(self, number: int) -> None:
        client = self.clients[number]
        identity = MemberIdentity(member_id=client.member_id, group_instance_id=client.instance)
        answer = self.stage.groups.leave_group(LeaveGroupRequest(group_id=client.group, members=[identity]), 5)
        if not hasattr(answer, "members"):
            self.stage.start(answer)
        client.forget()

    @rule(number=clients)
    def crash(self, number: int) -> None:
        """Start again and know nothing."""
        self.clients[number].forget()

    @rule(rounds=st.integers(1, 4))
    def everybody_goes_on(self, rounds: int) -> None:
        """What well-behaved clients do next, so that groups get somewhere."""
        for _ in range(rounds):
            for client in self.clients:
                self._go_on(client)
            self.stage.advance(501)
            self.answers_are_consistent()

    def _go_on(self, client: Client) -> None:
        if client.join is not None or client.sync is not None:
            return
        code = self.stage.heartbeat(client.member_id, client.generation, group=client.group, instance=client.instance)
        if code is not ErrorCode.NONE:
            if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID) and client.generation > 0:
                client.forget()
            self.join(client.number, 9, False)
        elif not client.is_synced:
            self.sync(client.number)

    # -- Offsets -------------------------------------------------------------------------------------------------------

    @rule(number=clients, partition=st.integers(0, 1), stale=st.integers(0, 1))
    def commit(self, number: int, partition: int, stale: int) -> None:
        client = self.clients[number]
        self._commit(
            client.group,
            partition,
            member_id=client.member_id,
            generation=client.generation - stale,
            instance=client.instance,
        )

    @rule(group=groups, partition=st.integers(0, 1))
    def commit_simply(self, group: str, partition: int) -> None:
        self._commit(group, partition)

    def _commit(self, group: str, partition: int, **options: Any) -> None:
        self.numbers += 1
        request = self.stage.commit_request(self.numbers, group=group, partition=partition, **options)
        answer = self.stage.groups.offsets.commit(request, 8)
        entry = [group, partition, MAYBE]
        self.history.setdefault((group, partition), []).append((self.numbers, entry))
        if hasattr(answer, "topics"):
            self._learn(entry, error_of(answer.topics[0].partitions[0]))
        else:
            self.writes.append((self.stage.start(answer), entry, 0))

    @rule(producer=st.integers(1, 2), group=groups)
    def commit_in_transaction(self, producer: int, group: str) -> None:
        """To partition 2, which the model does not follow; the invariants of the shard do."""
        self.numbers += 1
        self._ignore(self.stage.commit_in_transaction(producer, self.numbers, group=group, partition=2))

    @rule(producer=st.integers(1, 2), committed=st.booleans())
    def end_transaction(self, producer: int, committed: bool) -> None:
        self._ignore(self.stage.end_transaction(producer, committed=committed))

    @rule(group=groups)
    def delete_group(self, group: str) -> None:
        entries = []
        for partition in (0, 1):
            entry = [group, partition, MAYBE]
            self.history.setdefault((group, partition), []).append((-1, entry))
            entries.append(entry)
        task = self.stage.start(self.stage.groups.delete_groups([group]))
        self.writes += [(task, entry, 1) for entry in entries]

    def _learn(self, entry: list[object], code: ErrorCode) -> None:
        """Whether a write is known to have worked, known not to have, or neither."""
        if code is ErrorCode.NONE:
            entry[2] = True
        elif not code.retriable or code is ErrorCode.REBALANCE_IN_PROGRESS:
            entry[2] = False

    # -- The world -----------------------------------------------------------------------------------------------------

    @rule(milliseconds=st.sampled_from([1, 501, 3000, 10_001, 30_001]))
    def time_passes(self, milliseconds: int) -> None:
        self.stage.advance(milliseconds)

    @rule(late=st.booleans())
    def log_changes(self, late: bool) -> None:
        self.stage.log.commits_at_once = not late
        if not late:
            self.stage.log.commit()
            self.stage.settle()

    @precondition(lambda self: self.stage.log.hw < self.stage.log.end)
    @rule(back=st.integers(0, 2))
    def log_commits(self, back: int) -> None:
        self.stage.log.commit(max(self.stage.log.hw, self.stage.log.end - back))
        self.stage.settle()

    @rule(code=st.sampled_from(REFUSALS))
    def log_refuses_once(self, code: ErrorCode) -> None:
        self.stage.log.refusals[:] = [KafkaError(code)]

    @rule()
    def leadership_moves(self) -> None:
        self.stage.restart()
        self.seen.clear()

    # -- What must hold --------------------------------------------------------------------------------------------

    @invariant()
    def shard_is_consistent(self) -> None:
        self.stage.runtime.check_invariants()

    @invariant()
    def answers_are_consistent(self) -> None:
        for client in self.clients:
            self._collect_join(client)
            self._collect_sync(client)
        for task, entry, index in [each for each in self.writes if each[0].done()]:
            self.writes.remove((task, entry, index))
            answer = task.result()
            part = answer.results[0] if index else answer.topics[0].partitions[0]
            self._learn(entry, error_of(part))

    def _collect_join(self, client: Client) -> None:
        if client.join is None or not client.join.done():
            return
        answer, client.join = client.join.result(), None
        code = error_of(answer)
        if code is ErrorCode.MEMBER_ID_REQUIRED:
            client.member_id = answer.member_id
        elif code is ErrorCode.NONE:
            assert answer.generation_id > 0
            client.member_id, client.generation = answer.member_id, answer.generation_id
            client.is_synced = False
            client.leads = answer.leader == answer.member_id and not answer.skip_assignment
            client.members = [each.member_id for each in answer.members]
            if client.leads:
                assert answer.member_id in client.members
            assert answer.protocol_name in ("range", "sticky")
        elif code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            client.forget()

    def _collect_sync(self, client: Client) -> None:
        if client.sync is None or not client.sync.done():
            return
        answer, client.sync = client.sync.result(), None
        client.is_synced = error_of(answer) is ErrorCode.NONE
        if error_of(answer) is not ErrorCode.NONE or not answer.assignment:
            return
        token = self.tokens.setdefault((client.group, client.generation), answer.assignment)
        assert token == answer.assignment, f"two assignments in generation {client.generation} of {client.group}"

    @invariant()
    def generations_grow_and_transitions_are_legal(self) -> None:
        for group_id in {group for group, _ in self.tokens} - set(self.stage.shard.groups):
            self.tokens = {key: token for key, token in self.tokens.items() if key[0] != group_id}
        for group in self.stage.shard.groups.values():
            _, generation, state = self.seen.get(id(group), (group, group.generation, group.state))
            assert group.generation >= generation
            assert _reachable(state, group.state), (state, group.state)
            self.seen[id(group)] = (group, group.generation, group.state)

    @invariant()
    def offsets_are_what_was_acknowledged(self) -> None:
        for (group, partition), writes in self.history.items():
            known = [index for index, (_, entry) in enumerate(writes) if entry[2] is True]  # type: ignore[index]
            start = known[-1] if known else 0
            allowed = {value for value, entry in writes[start:] if entry[2] is not False}  # type: ignore[index]
            if not known:
                allowed.add(-1)
            assert self.stage.committed_offset(partition, group=group) in allowed, (group, partition)

    def teardown(self) -> None:
        stage = self.stage
        stage.log.refusals.clear()
        stage.log.commits_at_once = True
        stage.log.commit()
        for _ in range(20):
            stage.advance(30_001)
        assert all(task.done() for task in stage.pending), "somebody was never answered"
        assert all(group.is_empty for group in stage.shard.groups.values())
        before = stage.shard
        stage.restart()
        assert stage.shard is not before
        assert dict(stage.shard.stored.items()) == dict(before.stored.items())
        for group_id in before.groups:
            assert _offsets(stage.shard, group_id) == _offsets(before, group_id)
        stage.close()

    def _ignore(self, future: Any) -> None:
        future.add_done_callback(lambda done: None if done.cancelled() else done.exception())


def _reachable(old: GroupState, new: GroupState) -> bool:
    """Several transitions may happen in one event, but only legal ones."""
    found = {old}
    while True:
        more = found | {target for state in found for target in TRANSITIONS[state]}
        if more == found:
            return new in found
        found = more


def _offsets(shard: Any, group_id: str) -> dict[Any, Any]:
    return dict((shard.offsets.of_group(group_id) or {}).items())


TestGroups = Groups.TestCase
TestGroups.settings = settings(
    max_examples=60,
    stateful_step_count=50,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
