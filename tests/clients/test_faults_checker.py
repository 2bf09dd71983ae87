"""Brokers stopped, killed and away under load: nothing is lost, doubled or reordered, for writers or for readers."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from types import MappingProxyType
from typing import Any

import pytest

from penstock import Producer, TopicPartition
from tests.clients.checker import PROGRESS_TIMEOUT_S, GroupLedger, Readers, Verdict, Writers, check_log, wait_until
from tests.clients.producer_support import Seen, read_all
from tests.clients.support import TopicMaker
from tests.support.brokers import Broker

PARTITIONS = 4
READ_TIMEOUT_S = 60.0
RECORDS_PER_LIFE = 500


@pytest.fixture
def broker(cluster_kind: str, start_cluster: Callable[..., Broker]) -> Broker:
    """One to kill. Kafka waits until the session of a killed broker is over: a short one."""
    quick = {"broker_session_timeout_ms": "1500", "broker_heartbeat_interval_ms": "300"}
    return start_cluster(**(quick if cluster_kind == "kafka" else {}))


def check_all_read(records: list[Seen], topic: str, ledger: GroupLedger, readers: Readers) -> None:
    ends = dict.fromkeys((TopicPartition(topic, partition) for partition in range(PARTITIONS)), 0)
    for record in records:
        ends[TopicPartition(topic, record.partition)] = record.offset + 1
    wait_until(lambda: not ledger.missing(ends) or bool(readers.errors), READ_TIMEOUT_S, "the group read it all")
    readers.stop()
    assert not readers.errors, readers.errors[:3]
    assert not ledger.faults, ledger.faults[:5]


def restart(broker: Broker, how: str, down_s: float = 0.0) -> None:
    getattr(broker, how)()
    time.sleep(down_s)
    broker.start()


def wait_for_more(writers: list[Writers]) -> None:
    """Until each has written some more, all of it or a failure known: so much is there for a fault to lose."""
    goals = [(each, each.count + RECORDS_PER_LIFE) for each in writers]
    time.sleep(0.5)
    wait_until(
        lambda: all(each.errors or each.count >= goal for each, goal in goals),
        PROGRESS_TIMEOUT_S,
        f"each writer handed {RECORDS_PER_LIFE} records over",
    )


def under_load(
    broker: Broker,
    faults: list[tuple[str, float]],
    *,
    reading: Mapping[str, Any] = MappingProxyType({}),
    producers: int = 1,
    **options: Any,
) -> None:
    """Writers and readers at work while the broker goes and comes; then the log and the readers are compared."""
    topic = TopicMaker(broker.bootstrap, "checked")(partitions=PARTITIONS)
    ledger = GroupLedger()
    readers = Readers(
        broker.bootstrap, topic, ledger, **{"session_timeout_ms": 10_000, "heartbeat_interval_ms": 500, **reading}
    )
    with ExitStack() as stack:
        writers = [
            Writers(
                stack.enter_context(
                    Producer(bootstrap_servers=broker.bootstrap, linger_ms=2, batch_size=4_000, **options)
                ),
                topic,
                name=f"producer{number}-writer",
                threads=3 if producers == 1 else 1,
            )
            for number in range(producers)
        ]
        readers.start()
        for each in writers:
            each.start()
        for how, down_s in faults:
            wait_for_more(writers)
            restart(broker, how, down_s)
        wait_for_more(writers)
        for each in writers:
            each.stop()
    assert not (errors := [error for each in writers for error in each.errors]), errors[:3]
    written = {key: count for each in writers for key, count in each.written.items()}
    records = read_all(broker.bootstrap, topic, PARTITIONS)
    verdict = check_log(written, ((each.key or b"", int(each.value or b"-1")) for each in records))
    assert verdict.is_clean, verdict
    assert len(records) == sum(written.values())
    check_all_read(records, topic, ledger, readers)


@pytest.mark.parametrize("how", ["kill", "stop"])
def test_restarts_under_load(broker: Broker, how: str) -> None:
    times = 3 if broker.name == "penstock" else 2  # a JVM takes its time to come back
    under_load(broker, [(how, 0.0)] * times)


def test_three_seconds_without_a_leader(broker: Broker) -> None:
    under_load(broker, [("kill", 3.0)])


def test_kills_under_a_cooperative_group(broker: Broker) -> None:
    """Members come one after another while brokers go: partitions move, and positions come from commits."""
    reading = {"session_timeout_ms": 6_000, "partition_assignment_strategy": ["cooperative-sticky"], "members": 3}
    under_load(broker, [("kill", 1.0), ("kill", 0.0)], reading=reading)


def test_kills_under_several_producers(broker: Broker) -> None:
    under_load(broker, [("kill", 0.5), ("kill", 0.0)], producers=4)


def test_restarts_with_one_request_in_flight_and_compression(broker: Broker) -> None:
    under_load(broker, [("kill", 0.3)], max_in_flight_requests_per_connection=1, compression_type="lz4")


# The checker itself: it must see what it is there to see.


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([0, 1, 2], Verdict()),
        ([0, 2], Verdict(lost=1, examples=("b'k': lost [1]",))),
        ([0, 1, 1, 2], Verdict(doubled=1, examples=("b'k': doubled [1]",))),
        ([0, 2, 1], Verdict(reordered=1, examples=("b'k': reordered [1]",))),
        ([0, 1, 2, 3], Verdict(foreign=1, examples=("b'k': foreign [3]",))),
    ],
)
def test_the_checker_sees(found: list[int], expected: Verdict) -> None:
    assert check_log({b"k": 3}, ((b"k", number) for number in found)) == expected


def test_the_ledger_sees_gaps_and_committed_records_given_again() -> None:
    ledger, partition = GroupLedger(), TopicPartition("t", 0)
    for offset in (0, 1, 3):
        ledger.took("a", partition, offset)
    assert ledger.faults == [f"a got {partition} offset 3 after 1"]
    ledger.commit_done({partition: 2})
    ledger.assigned("b", [partition])
    ledger.took("b", partition, 1)
    assert ledger.again == 1
    assert ledger.faults[1:] == [f"b got {partition} offset 1 again, which was committed"]
    assert ledger.missing({partition: 4}) == 1
