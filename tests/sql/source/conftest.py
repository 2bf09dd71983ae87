"""A broker for the tests of a module, and topics with names of their own."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest

from penstock import Producer
from penstock.testing import EphemeralBroker

NewTopic = Callable[..., str]


@pytest.fixture(scope="module")
def kafka() -> Iterator[EphemeralBroker]:
    with EphemeralBroker({"log.retention.ms": "-1", "log.cleaner.enable": "false"}) as broker:
        yield broker


@pytest.fixture(scope="module")
def producer(kafka: EphemeralBroker) -> Iterator[Producer]:
    with Producer(bootstrap_servers=kafka.bootstrap_servers) as client:
        yield client


_numbers = itertools.count(1)


@pytest.fixture
def new_topic(kafka: EphemeralBroker) -> NewTopic:
    def make(partitions: int = 1) -> str:
        return kafka.create_topic(f"topic{next(_numbers)}", partitions=partitions)

    return make
