"""kill -9 at every step of groups and transactions: what was answered is done, the rest is done wholly or not at all.

In every round each step's request is sent over a connection of its own, all at once; then the broker dies, at a moment
between the first request and the last answer that chance chooses. After the restart every step is judged.
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.integration.driving import create_topic
from tests.integration.kill_group_steps import GROUP_STEPS, PARTITIONS, TOPIC
from tests.integration.kill_steps import Step, find_coordinators
from tests.integration.kill_transaction_steps import TRANSACTION_STEPS
from tests.support.brokers import Broker, make_target, target_is_kafka
from tests.support.raw_client import RawClient

SETTINGS = {
    "offsets.topic.num.partitions": "4",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
}
ROUNDS = int(os.environ.get("PENSTOCK_KILL_ROUNDS", "2" if target_is_kafka() else "12"))
"""More of them when hunting for something."""
COPIES = 2
"""Of each step in a round."""

Connect = Callable[[], RawClient]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    target = make_target(tmp_path / "broker", SETTINGS)
    target.start()
    yield target
    target.kill()


@pytest.fixture
def connect(broker: Broker) -> Iterator[Connect]:
    opened: list[RawClient] = []

    def open_connection() -> RawClient:
        opened.append(RawClient("127.0.0.1", broker.port, timeout=30))
        return opened[-1]

    yield open_connection
    for each in opened:
        each.close()


def make_steps(kinds: Sequence[type[Step]], round_number: int, connect: Connect, rng: random.Random) -> list[Step]:
    steps = [kind(f"{round_number}-{copy}-{index}") for copy in range(COPIES) for index, kind in enumerate(kinds)]
    for step in steps:
        step.get_ready(connect)
    rng.shuffle(steps)
    return steps


def fire_all(steps: Sequence[Step]) -> None:
    for step in steps:
        step.fire()


def wait_s(seconds: float) -> None:
    """More exact than sleep, which may oversleep the whole of what happens here."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def judge_all(steps: Sequence[Step], connect: Connect, fates: Counter[str]) -> None:
    client = connect()
    for step in steps:
        done = step.judge(client)
        fates["answered" if step.answer is not None else "done" if done else "not done"] += 1


def kill_everywhere(kinds: Sequence[type[Step]], broker: Broker, connect: Connect) -> None:
    seed = random.SystemRandom().randrange(1_000_000)
    print(f"seed {seed}")
    rng = random.Random(seed)
    create_topic(connect(), TOPIC, PARTITIONS)
    find_coordinators(connect())

    # Once with every answer: what was answered is there after a kill, and this is how long it takes.
    steps = make_steps(kinds, 0, connect, rng)
    began = time.perf_counter()
    fire_all(steps)
    assert all(step.take_answer() for step in steps)
    whole_s = time.perf_counter() - began
    broker.kill()
    broker.start()
    judge_all(steps, connect, Counter())

    fates: Counter[str] = Counter()
    for round_number in range(1, ROUNDS + 1):
        steps = make_steps(kinds, round_number, connect, rng)
        fire_all(steps)
        wait_s(rng.uniform(0, whole_s))
        broker.kill()
        for step in steps:
            step.take_answer()
        broker.start()
        judge_all(steps, connect, fates)
    print(f"{ROUNDS} kills within {whole_s * 1000:.1f} ms each: {dict(fates)}")
    assert "Traceback" not in broker.output()


@pytest.mark.timeout(280)
def test_every_step_of_a_group(broker: Broker, connect: Connect) -> None:
    kill_everywhere(GROUP_STEPS, broker, connect)


@pytest.mark.timeout(280)
@pytest.mark.xfail(
    target_is_kafka(),
    reason="Apache Kafka 4.3.1, killed right after EndTxn, was seen to complete transactions without their markers; "
    "by its source, a partition whose leader is not known yet is taken for deleted",
    strict=False,
)
def test_every_step_of_a_transaction(broker: Broker, connect: Connect) -> None:
    kill_everywhere(TRANSACTION_STEPS, broker, connect)
