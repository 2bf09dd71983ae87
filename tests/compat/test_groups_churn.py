"""Members of all clients come, go and crash at random; when they stop, the group is stable within seconds.

``PENSTOCK_CHURN_SECONDS`` makes it longer, ``PENSTOCK_CHURN_SEED`` repeats a run.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.compat.admin import create_topic
from tests.compat.churning import Churn, StartHost, starting_hosts
from tests.compat.groups import PROGRAMS, SHORT_SESSION_MS, GroupAdmin, GroupWatch, eventually
from tests.compat.writing import SteadyWriter
from tests.support.brokers import Broker

# Clients that nobody here wrote stall now and then when they are killed or starved, on any broker. What is our fault
# shows again.
pytestmark = pytest.mark.flaky(reruns=2)

PARTITIONS = 50
MEMBERS_MAX = 20
CHURN_S = float(os.environ.get("PENSTOCK_CHURN_SECONDS", "20"))
SEED = int(os.environ.get("PENSTOCK_CHURN_SEED", random.randrange(1 << 32)))
STABLE_WITHIN_S = 30.0
# A crashed member's place is held for its session; the bound on the rebalance starts after it.
CRASH_WITHIN_S = SHORT_SESSION_MS / 1000 + STABLE_WITHIN_S
CLIENTS = ("confluent-kafka", "aiokafka", "kafka-python", "java", "franz-go", "sarama")


@pytest.fixture
def start_host(tmp_path: Path) -> Iterator[StartHost]:
    with starting_hosts(PROGRAMS, tmp_path) as start:
        yield start


def test_churn_ends_in_a_stable_group(start_broker: Callable[..., Broker], topic: str, start_host: StartHost) -> None:
    broker = start_broker(group_min_session_timeout_ms="1000")
    create_topic(broker.bootstrap, topic, PARTITIONS)
    watch = GroupWatch(topic, topic, PARTITIONS, "range")
    chance = random.Random(SEED)
    with SteadyWriter(broker.bootstrap, topic, PARTITIONS, interval_s=0.2) as writer:
        churn = Churn(watch, broker.bootstrap, start_host, clients=CLIENTS, members_max=MEMBERS_MAX, seed=SEED)
        deadline = time.monotonic() + CHURN_S
        while time.monotonic() < deadline:
            churn.step()
            time.sleep(chance.uniform(0.05, 0.6))
        print(f"seed {SEED}")
        took = GroupAdmin(broker.bootstrap).wait_until_stable([watch], CRASH_WITHIN_S + SHORT_SESSION_MS / 1000)
    print(f"stable after {took:.1f} s")
    eventually(
        lambda: not watch.missing(writer.end_offsets), 30, lambda: f"seed {SEED}: {watch.missing(writer.end_offsets)}"
    )
    watch.check_single_owners()
