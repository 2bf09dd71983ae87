"""The first member of the first group of an empty broker finds its coordinator, at once and every time."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.compat.admin import create_topic
from tests.compat.groups import PROGRAMS, GroupAdmin, GroupWatch, Host
from tests.support.brokers import Broker, target_is_kafka

# Clients that nobody here wrote stall now and then when they are killed or starved, on any broker. What is our fault
# shows again.
pytestmark = pytest.mark.flaky(reruns=2)

# Apache Kafka takes seconds to start; that the test is right shows after a few.
BROKERS = 4 if target_is_kafka() else 20
CLIENTS = ("confluent-kafka", "franz-go", "aiokafka", "sarama", "kafka-python")
FOUND_WITHIN_S = 30.0


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Host]]:
    """Running before the brokers do, so that a member can be the first to speak to its broker."""
    directory = tmp_path_factory.mktemp("hosts")
    started = [Host(PROGRAMS[name], directory / f"{name}.log") for name in CLIENTS]
    yield started
    for host in started:
        host.kill()


@pytest.mark.parametrize("number", range(BROKERS))
def test_first_member(start_broker: Callable[..., Broker], hosts: list[Host], number: int) -> None:
    host = hosts[number % len(hosts)]
    broker = start_broker()
    create_topic(broker.bootstrap, "t")
    watch = GroupWatch(f"first-{number}", "t", 1, host.program.assignors[0])
    member = host.join(watch, broker.bootstrap)
    GroupAdmin(broker.bootstrap).wait_until_stable([watch], FOUND_WITHIN_S)
    assert watch.failures == []
    host.leave(member)
