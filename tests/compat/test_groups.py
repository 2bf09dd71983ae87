"""Consumer groups of every client and assignor on 50 partitions: members join, leave, crash and restart.

All groups of one client live at the same time in the same member programs: what takes time is waiting for sessions to
end, and that can be done together.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.compat.admin import create_topic
from tests.compat.groups import PROGRAMS, SHORT_SESSION_MS, GroupAdmin, GroupWatch, Host, Program, eventually
from tests.compat.members.wire import HEARTBEAT_MS
from tests.compat.writing import SteadyWriter
from tests.support.brokers import Broker, make_target

# Clients that nobody here wrote stall now and then when they are killed or starved, on any broker. What is our fault
# shows again.
pytestmark = pytest.mark.flaky(reruns=2)

PARTITIONS = 50
LARGE, SMALL = 20, 4
DELIVERY_TIMEOUT_S = 30.0
STATIC_CLIENTS = [name for name, program in PROGRAMS.items() if program.is_static]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Lets a member declare a session short enough for a test to wait for its end."""
    target = make_target(tmp_path_factory.mktemp("groups"), {"group.min.session.timeout.ms": "1000"})
    target.start()
    yield target
    target.stop()


@pytest.fixture
def admin(bootstrap: str) -> GroupAdmin:
    return GroupAdmin(bootstrap)


@pytest.fixture
def start_host(tmp_path: Path) -> Iterator[Callable[[str], Host]]:
    started: list[Host] = []

    def start(name: str) -> Host:
        started.append(Host(PROGRAMS[name], tmp_path / f"{name}-{len(started)}.log"))
        return started[-1]

    yield start
    for host in started:
        host.kill()


def watches_of(program: Program, topic: str) -> list[GroupWatch]:
    """A group for every assignor."""
    return [GroupWatch(f"{topic}-{one}", topic, PARTITIONS, one) for one in program.assignors]


def sizes_of(watches: list[GroupWatch]) -> list[tuple[GroupWatch, int]]:
    """The first group is the large one."""
    return [(watch, LARGE if index == 0 else SMALL) for index, watch in enumerate(watches)]


def check_delivered(watch: GroupWatch, end_offsets: dict[int, int]) -> None:
    eventually(
        lambda: not watch.missing(end_offsets),
        DELIVERY_TIMEOUT_S,
        lambda: f"{watch.group} did not get {watch.missing(end_offsets)}",
    )


@pytest.mark.parametrize("client", list(PROGRAMS))
def test_life_of_groups(
    bootstrap: str, topic: str, admin: GroupAdmin, start_host: Callable[[str], Host], client: str
) -> None:
    create_topic(bootstrap, topic, PARTITIONS)
    watches = watches_of(PROGRAMS[client], topic)
    lasting, crashing = start_host(client), start_host(client)
    with SteadyWriter(bootstrap, topic, PARTITIONS) as writer:
        for watch in watches:
            lasting.join(watch, bootstrap)
        admin.wait_until_stable(watches)
        for watch, size in sizes_of(watches):
            for _ in range(size - 2):
                lasting.join(watch, bootstrap)
            crashing.join(watch, bootstrap, session_ms=SHORT_SESSION_MS)
        admin.wait_until_stable(watches)
        for watch, size in sizes_of(watches):
            for member in lasting.members_of(watch)[: size // 3]:
                lasting.leave(member)
        admin.wait_until_stable(watches)
        crashing.crash()
        admin.wait_until_stable(watches)
    for watch in watches:
        check_delivered(watch, writer.end_offsets)
        watch.check_single_owners()
        assert watch.failures == []


def let_heartbeats_pass() -> None:
    """By which members learn of a rebalance, if there is one."""
    time.sleep(4 * HEARTBEAT_MS / 1000)


@pytest.mark.parametrize(
    ("client", "is_leader"),
    [*((name, False) for name in STATIC_CLIENTS), ("java", True)],
    ids=[*STATIC_CLIENTS, "java as leader"],
)
def test_static_member_restarts_without_a_rebalance(
    bootstrap: str, topic: str, admin: GroupAdmin, start_host: Callable[[str], Host], client: str, is_leader: bool
) -> None:
    """Followers of every client; the leader too by a client that knows of KIP-814."""
    create_topic(bootstrap, topic, PARTITIONS)
    watch = GroupWatch(topic, topic, PARTITIONS, PROGRAMS[client].assignors[0])
    lasting, crashing = start_host(client), start_host(client)
    crashing_first = [crashing, lasting] if is_leader else [lasting, crashing]
    for host in crashing_first:
        host.join(watch, bootstrap, instance="restarted" if host is crashing else "lasting-0")
        admin.wait_until_stable([watch])
    lasting.join(watch, bootstrap, instance="lasting-1")
    admin.wait_until_stable([watch])
    let_heartbeats_pass()
    (lost,) = crashing.members_of(watch)
    owned_before, calm_before = watch.current(), watch.assignments()
    crashing.crash()
    returned = start_host(client).join(watch, bootstrap, instance="restarted")
    admin.wait_until_stable([watch])
    let_heartbeats_pass()
    assert watch.current() == {returned if name == lost else name: owned for name, owned in owned_before.items()}
    del calm_before[lost]
    assert {name: count for name, count in watch.assignments().items() if name != returned} == calm_before
    # Told to stop, a static member does not leave either: the group keeps its place.
    lasting.leave(lasting.members_of(watch)[0])
    eventually(lambda: len(watch.current()) == 2, DELIVERY_TIMEOUT_S, lambda: "the member did not end")
    assert len(admin.describe(watch.group).members) == 3


def test_members_of_different_clients_in_one_group(
    bootstrap: str, topic: str, admin: GroupAdmin, start_host: Callable[[str], Host]
) -> None:
    create_topic(bootstrap, topic, PARTITIONS)
    watches = [GroupWatch(f"{topic}-{one}", topic, PARTITIONS, one) for one in ("range", "roundrobin")]
    hosts = [start_host(name) for name in STATIC_CLIENTS]
    with SteadyWriter(bootstrap, topic, PARTITIONS) as writer:
        for host in hosts:
            for watch in watches:
                host.join(watch, bootstrap)
        admin.wait_until_stable(watches)
        for watch in watches:
            assert {len(owned) for owned in watch.current().values()} <= {8, 9}
        # The first one to come is the leader: the next leader is of another client.
        for watch in watches:
            hosts[0].leave(hosts[0].members_of(watch)[0])
        admin.wait_until_stable(watches)
    for watch in watches:
        check_delivered(watch, writer.end_offsets)
        watch.check_single_owners()
        assert watch.failures == []


def test_first_members_wait_for_more(
    start_broker: Callable[..., Broker], topic: str, start_host: Callable[[str], Host]
) -> None:
    """The initial delay: members that come while it lasts are in the first generation together."""
    broker = start_broker(group_initial_rebalance_delay_ms="1500")
    create_topic(broker.bootstrap, topic, PARTITIONS)
    watch = GroupWatch(topic, topic, PARTITIONS, "range")
    host = start_host("franz-go")
    for _ in range(3):
        host.join(watch, broker.bootstrap)
    assert GroupAdmin(broker.bootstrap).wait_until_stable([watch]) > 1.0
    assert watch.generation() == 1
