"""A live broker for each test worker, connections to it, and brokers of a test's own.

The shared broker must come to its end with exit code 0 and without a traceback in its log, whatever was done to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.integration.watching import client_lines
from tests.support.brokers import PenstockBroker
from tests.support.raw_client import RawClient
from tests.support.topic_names import topic  # noqa: F401 - a fixture

Connect = Callable[..., RawClient]
StartBroker = Callable[..., PenstockBroker]

SHARED_SETTINGS = {"node.id": "1", "log.segment.delete.delay.ms": "200"}


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PenstockBroker]:
    """Shared by all tests of a worker: who stops, kills or configures a broker starts its own."""
    shared = PenstockBroker(tmp_path_factory.mktemp("broker"), SHARED_SETTINGS)
    shared.start()
    process = shared.process
    assert process is not None
    yield shared
    assert process.process.poll() is None, f"the broker died:\n{shared.output()[-4000:]}"
    assert process.stop() == 0
    assert "Traceback" not in shared.output()


@pytest.fixture
def connect(broker: PenstockBroker) -> Iterator[Connect]:
    """Opens connections to the shared broker, or to the broker on another port; all are closed at the end."""
    opened: list[RawClient] = []

    def open_connection(port: int | None = None, *, timeout: float = 30.0) -> RawClient:
        opened.append(RawClient("127.0.0.1", port or broker.port, timeout=timeout))
        return opened[-1]

    yield open_connection
    for each in opened:
        each.close()


@pytest.fixture
def client(connect: Connect) -> RawClient:
    return connect()


@pytest.fixture
def start_broker(tmp_path: Path) -> Iterator[StartBroker]:
    """Starts brokers of the test's own; those that still run at its end are killed."""
    started: list[PenstockBroker] = []

    def start(settings: Mapping[str, str] | None = None, **more: str) -> PenstockBroker:
        """Settings as a mapping, or as keyword arguments with `_` for `.`."""
        all_settings = {"node.id": "1", **(settings or {}), **{key.replace("_", "."): more[key] for key in more}}
        own = PenstockBroker(tmp_path / f"broker{len(started)}", all_settings)
        started.append(own)
        own.start()
        return own

    yield start
    for each in started:
        each.kill()


@pytest.fixture
def logged(broker: PenstockBroker) -> Callable[[RawClient], list[str]]:
    """The lines about one connection in the shared broker's log, once there is at least one.

    Lines of earlier tests do not count: there are so many connections that their ports come round again.
    """
    since = len(broker.output())
    return lambda about: client_lines(broker, about, since)
