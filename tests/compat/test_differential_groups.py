"""What members and committers of groups are told, by Apache Kafka and by Penstock: cases as in `differential`."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from penstock.protocol.apis import ApiKey
from penstock.protocol.messages import delete_groups as dg
from penstock.protocol.messages import describe_groups as de
from penstock.protocol.messages import find_coordinator as fc
from penstock.protocol.messages import heartbeat as hb
from penstock.protocol.messages import join_group as jg
from penstock.protocol.messages import leave_group as lv
from penstock.protocol.messages import list_groups as lg
from penstock.protocol.messages import offset_commit as oc
from penstock.protocol.messages import offset_delete as od
from penstock.protocol.messages import offset_fetch as of
from penstock.protocol.messages import sync_group as sg
from tests.compat.differential import Case, CaseFunction, Cases, Peers, both_brokers
from tests.integration.side_by_side import UNKNOWN_ID, Peer

CASES = Cases()
case = CASES.add

NOT_READY = {14, 15, 16}
_numbers = itertools.count()
SUBSCRIPTION = bytes.fromhex("0000 00000001 0005 7468726565 ffffffff")
"""To the topic `three`, in version 0 of the consumer protocol."""


def prepare(peer: Peer) -> None:
    peer.create("three", 3)
    peer.create("other", 1)
    request = fc.FindCoordinatorRequest(coordinator_keys=["any"])
    _until_ready(lambda: peer.call(ApiKey.FIND_COORDINATOR, 6, request).coordinators[0].error_code)
    # Every partition of __consumer_offsets is asked once, so that no case meets one that still loads.
    for number in range(300):
        wait_for_group(peer, f"warm-{number}")


def wait_for_group(peer: Peer, group: str) -> None:
    group_request = of.OffsetFetchRequestGroup(group_id=group, topics=None)
    request = of.OffsetFetchRequest(groups=[group_request])
    _until_ready(lambda: peer.call(ApiKey.OFFSET_FETCH, 8, request).groups[0].error_code)


def _until_ready(code: Callable[[], int]) -> None:
    deadline = time.monotonic() + 30
    while code() in NOT_READY and time.monotonic() < deadline:
        time.sleep(0.05)


@pytest.fixture(scope="module")
def peers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peers]:
    with both_brokers(tmp_path_factory, prepare, group_initial_rebalance_delay_ms="0") as both:
        yield both


# -- A group as a client sees it -------------------------------------------------------------------------------------


class Group:
    """One group of its own for one case; member ids, which chance makes, read as `member 1`, `member 2`..."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.name = f"group-{next(_numbers)}"
        self.members: list[str] = []
        self.generation = -1

    def plain(self, answer: Any) -> Any:
        """A comparable answer with names for what chance has made."""
        if isinstance(answer, str):
            if answer in self.members:
                return f"member {self.members.index(answer) + 1}"
            return "the group" if answer == self.name else answer
        if isinstance(answer, list):
            return [self.plain(each) for each in answer]
        if isinstance(answer, dict):
            return {key: self.plain(value) for key, value in answer.items() if key != "client_host"}
        return answer

    def join(
        self,
        version: int = 3,
        *,
        member: str = "",
        instance: str | None = None,
        protocols: tuple[str, ...] = ("range",),
        kind: str = "consumer",
        session_ms: int = 30_000,
        group: str | None = None,
    ) -> Any:
        request = jg.JoinGroupRequest(
            group_id=self.name if group is None else group,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=1_000,
            member_id=member,
            group_instance_id=instance,
            protocol_type=kind,
            protocols=[jg.JoinGroupRequestProtocol(name=name, metadata=SUBSCRIPTION) for name in protocols],
        )
        answer = self.peer.call(ApiKey.JOIN_GROUP, version, request)
        if isinstance(answer, str):
            return answer
        if answer.member_id and answer.member_id not in self.members and answer.member_id != member:
            self.members.append(answer.member_id)
        if answer.error_code == 0:
            self.generation = answer.generation_id
        return answer

    def sync(self, version: int = 5, **changes: Any) -> Any:
        settings: dict[str, Any] = {
            "group_id": self.name,
            "generation_id": self.generation,
            "member_id": self.members[0] if self.members else "",
            "protocol_type": "consumer",
            "protocol_name": "range",
            "assignments": [sg.SyncGroupRequestAssignment(member_id=each, assignment=b"mine") for each in self.members],
        }
        return self.peer.call(ApiKey.SYNC_GROUP, version, sg.SyncGroupRequest(**(settings | changes)))

    def stable(self, **options: Any) -> Group:
        """With one member that has its assignment."""
        self.join(**options)
        assert self.sync().error_code == 0
        return self

    def heartbeat(self, version: int, **changes: Any) -> Any:
        settings: dict[str, Any] = {
            "group_id": self.name,
            "generation_id": self.generation,
            "member_id": self.members[0] if self.members else "",
        }
        return self.peer.call(ApiKey.HEARTBEAT, version, hb.HeartbeatRequest(**(settings | changes)))

    def commit(
        self,
        version: int = 8,
        *,
        topic: str = "three",
        partitions: tuple[int, ...] = (0,),
        offset: int = 5,
        metadata: str | None = "note",
        epoch: int = -1,
        **changes: Any,
    ) -> Any:
        rows = [
            oc.OffsetCommitRequestPartition(
                partition_index=each,
                committed_offset=offset,
                committed_metadata=metadata,
                committed_leader_epoch=epoch,
            )
            for each in partitions
        ]
        named = oc.OffsetCommitRequestTopic(name=topic, topic_id=self.peer.id_of(topic), partitions=rows)
        settings: dict[str, Any] = {"group_id": self.name, "topics": [named]}
        return self.peer.call(ApiKey.OFFSET_COMMIT, version, oc.OffsetCommitRequest(**(settings | changes)))

    def fetch(
        self,
        version: int = 8,
        topics: dict[str, list[int]] | None = None,
        *,
        all_topics: bool = False,
        require_stable: bool = False,
    ) -> Any:
        wanted = {} if topics is None else topics
        old = (
            None if all_topics else [of.OffsetFetchRequestTopic(name=n, partition_indexes=p) for n, p in wanted.items()]
        )
        new = (
            None
            if all_topics
            else [
                of.OffsetFetchRequestTopics(name=n, topic_id=self.peer.id_of(n), partition_indexes=p)
                for n, p in wanted.items()
            ]
        )
        if version < 8:
            request = of.OffsetFetchRequest(group_id=self.name, topics=old, require_stable=require_stable)
        else:
            group = of.OffsetFetchRequestGroup(group_id=self.name, topics=new)
            request = of.OffsetFetchRequest(groups=[group], require_stable=require_stable)
        return self.peer.call(ApiKey.OFFSET_FETCH, version, request)


def scenario(story: Callable[[Group, int], Any]) -> CaseFunction:
    def ask(peer: Peer, version: int) -> Any:
        group = Group(peer)
        return group.plain(peer.comparable(story(group, version)))

    return ask


# -- FindCoordinator -------------------------------------------------------------------------------------------------


def finding(kind: int, *keys: str) -> CaseFunction:
    def ask(peer: Peer, version: int) -> Any:
        request = fc.FindCoordinatorRequest(key=keys[0], key_type=kind, coordinator_keys=list(keys))
        return peer.call(ApiKey.FIND_COORDINATOR, version, request)

    return ask


case("a group", ApiKey.FIND_COORDINATOR, finding(0, "g"))
case("several groups", ApiKey.FIND_COORDINATOR, finding(0, "g", "h", "g"), since=4)
case("no name", ApiKey.FIND_COORDINATOR, finding(0, ""))


# -- JoinGroup -------------------------------------------------------------------------------------------------------


def join_twice(group: Group, version: int) -> Any:
    """From version 4 on the first answer only hands out a member id."""
    first = group.join(version)
    second = group.join(version, member=first.member_id)
    return [first, second]


def join_static_twice(group: Group, version: int) -> Any:
    first = group.join(version, instance="one")
    return [first, group.sync(group_instance_id="one"), group.join(version, instance="one")]


case("first member", ApiKey.JOIN_GROUP, scenario(join_twice))
case("static member comes back", ApiKey.JOIN_GROUP, scenario(join_static_twice), since=5)
for label, options in {
    "session too short": {"session_ms": 5},
    "session too long": {"session_ms": 99_999_999},
    "unknown member": {"member": "stranger"},
    "no protocols": {"protocols": ()},
    "no protocol type": {"kind": ""},
    "other protocol type": {"kind": "connect"},
    "no group": {"group": ""},
}.items():
    case(label, ApiKey.JOIN_GROUP, scenario(lambda group, version, o=options: group.join(version, **o)), until=3)  # type: ignore[misc]
case(
    "protocols twice",
    ApiKey.JOIN_GROUP,
    scenario(lambda group, version: group.join(version, protocols=("range", "range"))),
    since=3,
    until=3,
    deviates="Kafka 4.3 never answers",
)


def mixed(**options: Any) -> CaseFunction:
    return scenario(lambda group, version: group.stable() and group.join(version, **options))


case("protocol nobody else has", ApiKey.JOIN_GROUP, mixed(protocols=("sticky",)), since=1, until=3)
case("protocol type nobody else has", ApiKey.JOIN_GROUP, mixed(kind="connect"), until=3)
case("stranger to a stable group", ApiKey.JOIN_GROUP, mixed(member="stranger"))
case(
    "instance with a wrong member id",
    ApiKey.JOIN_GROUP,
    scenario(
        lambda group, version: [group.join(5, instance="one") and 0, group.join(version, instance="one", member="x")]
    ),
    since=5,
)


# -- SyncGroup, Heartbeat, LeaveGroup ----------------------------------------------------------------------------------

FENCES: dict[str, dict[str, Any]] = {
    "good": {},
    "old generation": {"generation_id": 0},
    "future generation": {"generation_id": 99},
    "no generation": {"generation_id": -1},
    "stranger": {"member_id": "stranger"},
    "no member": {"member_id": ""},
    "unknown group": {"group_id": "nobody-has-it"},
    "no group": {"group_id": ""},
}
for label, changes in FENCES.items():
    case(label, ApiKey.SYNC_GROUP, scenario(lambda group, version, c=changes: group.stable().sync(version, **c)))  # type: ignore[misc]
    case(label, ApiKey.HEARTBEAT, scenario(lambda group, version, c=changes: group.stable().heartbeat(version, **c)))  # type: ignore[misc]
for label, changes in {
    "other protocol": {"protocol_name": "sticky"},
    "other protocol type": {"protocol_type": "connect"},
    "no protocol": {"protocol_name": None, "protocol_type": None},
}.items():
    case(
        label, ApiKey.SYNC_GROUP, scenario(lambda group, version, c=changes: group.stable().sync(version, **c)), since=5
    )  # type: ignore[misc]


def heartbeat_before_sync(group: Group, version: int) -> Any:
    group.join()
    return group.heartbeat(version)


def heartbeat_as_instance(instance: str) -> CaseFunction:
    def story(group: Group, version: int) -> Any:
        group.join(5, instance="one")
        group.sync(group_instance_id="one")
        return group.heartbeat(version, group_instance_id=instance)

    return scenario(story)


def heartbeat_of_the_replaced(group: Group, version: int) -> Any:
    group.join(5, instance="one")
    group.sync(group_instance_id="one")
    old = group.members[0]
    group.join(5, instance="one")
    return group.heartbeat(version, member_id=old, group_instance_id="one")


case("before the assignment", ApiKey.HEARTBEAT, scenario(heartbeat_before_sync))
case("of an instance", ApiKey.HEARTBEAT, heartbeat_as_instance("one"), since=3)
case("of another instance", ApiKey.HEARTBEAT, heartbeat_as_instance("two"), since=3)
case("of a replaced instance", ApiKey.HEARTBEAT, scenario(heartbeat_of_the_replaced), since=3)


def leaving(*identities: tuple[str | None, str | None], group_name: str | None = None) -> CaseFunction:
    """(member id, None for the one that is there; instance id)."""

    def story(group: Group, version: int) -> Any:
        group.stable()
        name = group.name if group_name is None else group_name
        rows = [
            lv.MemberIdentity(member_id=group.members[0] if member is None else member, group_instance_id=instance)
            for member, instance in identities
        ]
        request = lv.LeaveGroupRequest(group_id=name, members=rows)
        if version < 3:
            request = lv.LeaveGroupRequest(group_id=name, member_id=rows[0].member_id)
        return [group.peer.call(ApiKey.LEAVE_GROUP, version, request) for _ in range(2)]

    return scenario(story)


case("and again", ApiKey.LEAVE_GROUP, leaving((None, None)))
case("stranger", ApiKey.LEAVE_GROUP, leaving(("stranger", None)))
case("unknown group", ApiKey.LEAVE_GROUP, leaving((None, None), group_name="nobody-has-it"))
case("no group", ApiKey.LEAVE_GROUP, leaving((None, None), group_name=""))
case("unknown instance", ApiKey.LEAVE_GROUP, leaving(("", "nobody")), since=3)
case("member and stranger", ApiKey.LEAVE_GROUP, leaving((None, None), ("stranger", None)), since=3)
case("nobody", ApiKey.LEAVE_GROUP, leaving(), since=3)


# -- OffsetCommit and OffsetFetch --------------------------------------------------------------------------------------

EVERYTHING = {"three": [0, 1, 2], "missing": [0], "other": [0, 7]}


def commit_and_fetch(**options: Any) -> CaseFunction:
    def story(group: Group, version: int) -> Any:
        answer = group.commit(version, **options)
        return [answer, group.fetch(8, {"three": [0, 1]})]

    return scenario(story)


COMMITS: dict[str, dict[str, Any]] = {
    "plain": {},
    "two partitions": {"partitions": (0, 1)},
    "partition twice": {"partitions": (0, 0)},
    "unknown partition": {"partitions": (0, 9)},
    "negative partition": {"partitions": (-1,)},
    "unknown topic": {"topic": "missing"},
    "leader epoch": {"epoch": 3},
    "no metadata": {"metadata": None},
    "empty metadata": {"metadata": ""},
    "largest metadata": {"metadata": "x" * 4096},
    "metadata too large": {"metadata": "x" * 4097},
    "offset -1": {"offset": -1},
    "offset -2": {"offset": -2},
    "no topics": {"topics": []},
    "generation of nobody": {"generation_id_or_member_epoch": 1},
    "member of nobody": {"generation_id_or_member_epoch": 1, "member_id": "stranger"},
    "member without generation": {"member_id": "stranger"},
    "no group": {"group_id": ""},
}
for label, changes in COMMITS.items():
    case(label, ApiKey.OFFSET_COMMIT, commit_and_fetch(**changes))
MEMBER_COMMITS: dict[str, dict[str, Any]] = {
    "by the member": {"generation": 0},
    "by the member in an old generation": {"generation": -1},
    "by the member in a future one": {"generation": 1},
    "by a stranger": {"generation": 0, "member_id": "stranger"},
    "by nobody while there are members": {"generation": None, "member_id": ""},
}


def member_commit(generation: int | None, **changes: Any) -> CaseFunction:
    def story(group: Group, version: int) -> Any:
        group.stable()
        number = -1 if generation is None else group.generation + generation
        settings = {"generation_id_or_member_epoch": number, "member_id": group.members[0]} | changes
        return group.commit(version, **settings)

    return scenario(story)


for label, changes in MEMBER_COMMITS.items():
    case(label, ApiKey.OFFSET_COMMIT, member_commit(**changes))


def commit_in_rebalance(group: Group, version: int) -> Any:
    group.join()
    return group.commit(version, generation_id_or_member_epoch=group.generation, member_id=group.members[0])


case("before the assignment", ApiKey.OFFSET_COMMIT, scenario(commit_in_rebalance))


def fetching(topics: dict[str, list[int]] | None, **options: Any) -> CaseFunction:
    def story(group: Group, version: int) -> Any:
        group.commit(8, epoch=2)
        group.commit(8, topic="other", metadata="")
        return group.fetch(version, topics, **options)

    return scenario(story)


case("some", ApiKey.OFFSET_FETCH, fetching({"three": [0, 1], "other": [0]}))
case("unknown", ApiKey.OFFSET_FETCH, fetching(EVERYTHING), until=9)
case("unknown by id", ApiKey.OFFSET_FETCH, fetching(EVERYTHING), since=10)
case("none", ApiKey.OFFSET_FETCH, fetching({}))
case("all", ApiKey.OFFSET_FETCH, fetching(None, all_topics=True), since=2)
case("stable only", ApiKey.OFFSET_FETCH, fetching({"three": [0, 1]}, require_stable=True), since=7)
case("of no group", ApiKey.OFFSET_FETCH, scenario(lambda group, version: group.fetch(version, EVERYTHING)), until=9)
case(
    "all of no group",
    ApiKey.OFFSET_FETCH,
    scenario(lambda group, version: group.fetch(version, all_topics=True)),
    since=2,
)


# -- Administration ----------------------------------------------------------------------------------------------------


def describing(*names: str | None, operations: bool = False, stable: bool = True) -> CaseFunction:
    def story(group: Group, version: int) -> Any:
        if stable:
            group.stable()
        else:
            group.commit()
        wanted = [group.name if name is None else name for name in names]
        request = de.DescribeGroupsRequest(groups=wanted, include_authorized_operations=operations)
        return group.peer.call(ApiKey.DESCRIBE_GROUPS, version, request)

    return scenario(story)


case("with a member", ApiKey.DESCRIBE_GROUPS, describing(None))
case("with offsets only", ApiKey.DESCRIBE_GROUPS, describing(None, stable=False))
case("unknown", ApiKey.DESCRIBE_GROUPS, describing("nobody-has-it"))
case("several", ApiKey.DESCRIBE_GROUPS, describing(None, "nobody-has-it", None))
case("no name", ApiKey.DESCRIBE_GROUPS, describing(""))
case("none", ApiKey.DESCRIBE_GROUPS, describing())
case("operations", ApiKey.DESCRIBE_GROUPS, describing(None, operations=True), since=3)


def listing(states: list[str], types: list[str]) -> CaseFunction:
    def story(group: Group, version: int) -> Any:
        group.stable()
        answer = group.peer.call(
            ApiKey.LIST_GROUPS, version, lg.ListGroupsRequest(states_filter=states, types_filter=types)
        )
        answer.groups = [each for each in answer.groups if each.group_id == group.name]
        return answer

    return scenario(story)


case("all", ApiKey.LIST_GROUPS, listing([], []))
for state in ("Stable", "stable", "Empty", "Nonsense"):
    case(f"state {state}", ApiKey.LIST_GROUPS, listing([state], []), since=4)
for group_type in ("classic", "Classic", "consumer", "nonsense"):
    case(f"type {group_type}", ApiKey.LIST_GROUPS, listing([], [group_type]), since=5)


def deleting(*names: str | None, stable: bool = False) -> CaseFunction:
    def story(group: Group, version: int) -> Any:
        if stable:
            group.stable()
        else:
            group.commit()
        request = dg.DeleteGroupsRequest(groups_names=[group.name if name is None else name for name in names])
        return [group.peer.call(ApiKey.DELETE_GROUPS, version, request), group.fetch(8, {"three": [0]})]

    return scenario(story)


case("with offsets", ApiKey.DELETE_GROUPS, deleting(None))
case("with members", ApiKey.DELETE_GROUPS, deleting(None, stable=True))
case("unknown", ApiKey.DELETE_GROUPS, deleting("nobody-has-it", None))
case("no name", ApiKey.DELETE_GROUPS, deleting(""))
case("none", ApiKey.DELETE_GROUPS, deleting())


def deleting_offsets(
    topics: dict[str, list[int]], *, stable: bool = False, group_name: str | None = None
) -> CaseFunction:
    def story(group: Group, version: int) -> Any:
        group.commit()
        if stable:
            group.stable()
        rows = [
            od.OffsetDeleteRequestTopic(
                name=name, partitions=[od.OffsetDeleteRequestPartition(partition_index=each) for each in partitions]
            )
            for name, partitions in topics.items()
        ]
        name = group.name if group_name is None else group_name
        request = od.OffsetDeleteRequest(group_id=name, topics=rows)
        return [group.peer.call(ApiKey.OFFSET_DELETE, version, request), group.fetch(8, {"three": [0, 1]})]

    return scenario(story)


case("one", ApiKey.OFFSET_DELETE, deleting_offsets({"three": [0]}))
case("uncommitted", ApiKey.OFFSET_DELETE, deleting_offsets({"three": [1]}))
case("unknown", ApiKey.OFFSET_DELETE, deleting_offsets({"missing": [0], "three": [9, 0]}))
case("with members", ApiKey.OFFSET_DELETE, deleting_offsets({"three": [0]}, stable=True))
case("unknown group", ApiKey.OFFSET_DELETE, deleting_offsets({"three": [0]}, group_name="nobody-has-it"))
case("no group", ApiKey.OFFSET_DELETE, deleting_offsets({"three": [0]}, group_name=""))
case("none", ApiKey.OFFSET_DELETE, deleting_offsets({}))


@pytest.mark.parametrize("case", CASES.parameters())
def test_groups_are_answered_as_kafka_does(peers: Peers, case: Case) -> None:
    case.check(peers)


def test_unknown_ids_are_unknown(peers: Peers) -> None:
    """The cases rely on it."""
    assert all(peer.id_of("missing") == UNKNOWN_ID for peer in peers)
