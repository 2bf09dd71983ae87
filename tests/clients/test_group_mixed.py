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
from tests.compat.churning import Churn, StartHost, starting_hosts
from tests.compat.groups import PROGRAMS, GroupAdmin, GroupWatch, Program, eventually
from tests.compat.writing import SteadyWriter
from tests.support.brokers import Broker

pytestmark = pytest.mark.filterwarnings("default")

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


@pytest.fixture
def start_host(tmp_path: Path) -> Iterator[StartHost]:
    with starting_hosts(KNOWN, tmp_path) as start:
        yield start


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


# Clients that nobody here wrote stall now and then when they are killed, on any broker.
@pytest.mark.flaky(reruns=2)
@pytest.mark.parametrize("assignor", ["cooperative-sticky"])
def test_churn(start_cluster: Callable[..., Broker], cluster_kind: str, start_host: StartHost, assignor: str) -> None:
    broker = start_cluster(group_min_session_timeout_ms="1000", group_initial_rebalance_delay_ms="0")
    name = TopicMaker(broker.bootstrap, f"churn-{cluster_kind}")(partitions=PARTITIONS)
    watch, chance = GroupWatch(name, name, PARTITIONS, assignor), random.Random(SEED)
    print(f"seed {SEED}")
    with SteadyWriter(broker.bootstrap, name, PARTITIONS) as writer:
        churn = Churn(
            watch, broker.bootstrap, start_host, clients=CLIENTS[assignor], members_max=MEMBERS_MAX, seed=SEED
        )
        deadline = time.monotonic() + CHURN_S
        while time.monotonic() < deadline:
            churn.step()
            time.sleep(chance.uniform(0.1, 0.6))
        GroupAdmin(broker.bootstrap).wait_until_stable([watch])
    check_read(watch, writer)
