"""One group of our members, librdkafka's and Java's, which come, go and crash.

``PENSTOCK_CHURN_SECONDS`` makes it longer, ``PENSTOCK_CHURN_SEED`` repeats a run.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.clients.support import TopicMaker
from tests.compat.groups import PROGRAMS, SHORT_SESSION_MS, GroupAdmin, GroupWatch, Host, Program, eventually
from tests.compat.writing import SteadyWriter
from tests.support.brokers import Broker

# Clients that nobody here wrote stall now and then when they are killed or starved, on any broker.
pytestmark = [pytest.mark.flaky(reruns=2), pytest.mark.filterwarnings("default")]

CHURN_S = float(os.environ.get("PENSTOCK_CHURN_SECONDS", "6"))
SEED = int(os.environ.get("PENSTOCK_CHURN_SEED", random.randrange(1 << 32)))
PARTITIONS = 12
MEMBERS_MAX = 8
OURS = Program(
    name="penstock",
    command=lambda: [sys.executable, "-m", "tests.clients.penstock_members"],
    assignors=("range", "roundrobin", "sticky", "cooperative-sticky"),
)
KNOWN = PROGRAMS | {"penstock": OURS}
# librdkafka has no eager sticky assignor.
CLIENTS = {
    "range": ("penstock", "confluent-kafka", "java"),
    "roundrobin": ("penstock", "confluent-kafka", "java"),
    "sticky": ("penstock", "java"),
    "cooperative-sticky": ("penstock", "confluent-kafka", "java"),
}
StartHost = Callable[[str], Host]


@pytest.fixture
def start_host(tmp_path: Path) -> Iterator[StartHost]:
    started: list[Host] = []

    def start(name: str) -> Host:
        started.append(Host(KNOWN[name], tmp_path / f"{len(started)}-{name}.log"))
        return started[-1]

    yield start
    for host in started:
        host.kill()


def check_read(watch: GroupWatch, writer: SteadyWriter) -> None:
    eventually(lambda: not watch.missing(writer.end_offsets), 30, lambda: str(watch.missing(writer.end_offsets)))
    watch.check_single_owners()


@pytest.mark.parametrize("assignor", list(CLIENTS))
def test_each_client_may_lead(bootstrap: str, topic: TopicMaker, start_host: StartHost, assignor: str) -> None:
    """The first in is the leader; when it goes, another client's member leads the same group."""
    name = topic(partitions=PARTITIONS)
    watch, admin = GroupWatch(name, name, PARTITIONS, assignor), GroupAdmin(bootstrap)
    hosts = [start_host(client) for client in CLIENTS[assignor]]
    with SteadyWriter(bootstrap, name, PARTITIONS) as writer:
        members = []
        for host in hosts:
            members.append((host, host.join(watch, bootstrap)))
            admin.wait_until_stable([watch])
        members += [(host, host.join(watch, bootstrap)) for host in hosts]
        admin.wait_until_stable([watch])
        assert min(map(len, watch.current().values())) >= PARTITIONS // len(members)
        for host, member in members[:-1]:
            host.leave(member)
            admin.wait_until_stable([watch])
    check_read(watch, writer)
    assert not watch.failures


class Churn:
    def __init__(self, watch: GroupWatch, bootstrap: str, start_host: StartHost, clients: tuple[str, ...]) -> None:
        self._watch, self._bootstrap, self._start_host = watch, bootstrap, start_host
        self._random = random.Random(SEED)
        self._hosts = [start_host(name) for name in clients]
        for host in self._hosts:
            self._join(host)

    def step(self) -> None:
        (action,) = self._random.choices([self._come, self._go, self._crash], weights=[6, 4, 1])
        action()

    def _join(self, host: Host) -> None:
        host.join(self._watch, self._bootstrap, session_ms=SHORT_SESSION_MS * 2)

    def _come(self) -> None:
        if len(self._watch.current()) < MEMBERS_MAX:
            self._join(self._random.choice(self._hosts))

    def _go(self) -> None:
        host = self._random.choice(self._hosts)
        staying = [name for name in host.members_of(self._watch) if not self._watch.members[name].is_leaving]
        if staying and len(self._watch.current()) > 2:
            host.leave(self._random.choice(staying))

    def _crash(self) -> None:
        host = self._random.choice([one for one in self._hosts if one.program.name != "java"])
        host.crash()
        self._hosts.remove(host)
        self._hosts.append(self._start_host(host.program.name))
        self._join(self._hosts[-1])


@pytest.mark.parametrize("assignor", ["cooperative-sticky"])
def test_churn(start_cluster: Callable[..., Broker], cluster_kind: str, start_host: StartHost, assignor: str) -> None:
    broker = start_cluster(group_min_session_timeout_ms="1000", group_initial_rebalance_delay_ms="0")
    name = TopicMaker(broker.bootstrap, f"churn-{cluster_kind}")(partitions=PARTITIONS)
    watch, chance = GroupWatch(name, name, PARTITIONS, assignor), random.Random(SEED)
    print(f"seed {SEED}")
    with SteadyWriter(broker.bootstrap, name, PARTITIONS) as writer:
        churn = Churn(watch, broker.bootstrap, start_host, CLIENTS[assignor])
        deadline = time.monotonic() + CHURN_S
        while time.monotonic() < deadline:
            churn.step()
            time.sleep(chance.uniform(0.1, 0.6))
        GroupAdmin(broker.bootstrap).wait_until_stable([watch])
    check_read(watch, writer)
