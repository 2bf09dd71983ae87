"""The clients against both brokers: Penstock, and Apache Kafka as the measure.

`cluster` is one broker of each kind per test worker, started when a test first needs it. Tests make topics of their
own (`topic`), so they share the brokers; whoever stops or kills a broker takes one of his own (`restartable`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.clients.support import TopicMaker
from tests.support.brokers import Broker, KafkaBroker, PenstockBroker
from tests.support.missing_peers import pytest_fixture_setup, pytest_runtest_call  # noqa: F401 - hooks

KINDS: dict[str, type[Broker]] = {"penstock": PenstockBroker, "kafka": KafkaBroker}


@pytest.fixture(scope="session")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Broker]]:
    """Brokers by kind, each started once and stopped at the end."""
    running: dict[str, Broker] = {}

    def get(kind: str) -> Broker:
        if kind not in running:
            broker = KINDS[kind](tmp_path_factory.mktemp(kind))
            try:
                broker.start()
            except BaseException:
                broker.kill()
                raise
            running[kind] = broker
        return running[kind]

    yield get
    for broker in running.values():
        broker.kill()


@pytest.fixture(params=list(KINDS))
def cluster_kind(request: pytest.FixtureRequest) -> str:
    """Which broker the test runs against; a test for one kind only says `pytest.skip` or parametrizes this itself."""
    kind: str = request.param
    return kind


@pytest.fixture
def cluster(cluster_kind: str, brokers: Callable[[str], Broker]) -> Broker:
    return brokers(cluster_kind)


@pytest.fixture
def bootstrap(cluster: Broker) -> str:
    return cluster.bootstrap


@pytest.fixture
def topic(bootstrap: str, request: pytest.FixtureRequest) -> TopicMaker:
    """Makes topics: `topic()`, `topic(partitions=3)`, `topic(config={"cleanup.policy": "compact"})` -> the name."""
    return TopicMaker(bootstrap, request.node.name)


@pytest.fixture
def restartable(cluster_kind: str, tmp_path: Path) -> Iterator[Broker]:
    """A broker of the test's own, running, which it may stop, kill and start again."""
    broker = KINDS[cluster_kind](tmp_path / "broker")
    try:
        broker.start()
        yield broker
    finally:
        broker.kill()


@pytest.fixture
def start_cluster(cluster_kind: str, tmp_path: Path) -> Iterator[Callable[..., Broker]]:
    """Starts brokers with settings of the test's own: `start_cluster(num_partitions="3")`."""
    started: list[Broker] = []

    def start(**overrides: str) -> Broker:
        settings = {key.replace("_", "."): value for key, value in overrides.items()}
        broker = KINDS[cluster_kind](tmp_path / f"broker{len(started)}", settings)
        started.append(broker)
        broker.start()
        return broker

    yield start
    for broker in started:
        broker.kill()
