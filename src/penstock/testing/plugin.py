"""The pytest plugin, found by pytest itself through the entry point `pytest11`.

pytest imports this module in every project that has Penstock installed, so it imports nothing of Penstock before a
fixture is used. Under xdist each worker is a process and has brokers of its own.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakKeyDictionary

import pytest

if TYPE_CHECKING:
    from penstock.testing.broker import EphemeralBroker
    from penstock.testing.faults import Faults

_SCOPES = ("function", "class", "module", "package", "session")
_LOG_CHARACTERS_MAX = 40_000
_marks = pytest.StashKey[WeakKeyDictionary[Any, int]]()
"""How many lines each broker had logged when the last test that used it ended."""


class TopicFactory(Protocol):
    def __call__(self, name: str | None = None, partitions: int = 1, **config: object) -> str:
        """Make a topic; without a name it gets one that no other has. Gives the name."""


def pytest_addoption(parser: pytest.Parser) -> None:
    text = (
        "How long the broker of the fixture `kafka` lives: function (the default), class, module, package or session."
    )
    parser.addini("kafka_scope", text, default="function")
    parser.getgroup("penstock").addoption("--kafka-scope", choices=_SCOPES, help=text)


def _scope(fixture_name: str, config: pytest.Config) -> Any:
    scope = config.getoption("--kafka-scope") or config.getini("kafka_scope")
    if scope not in _SCOPES:
        raise pytest.UsageError(f"kafka_scope is {scope!r} in the ini file; write one of {', '.join(_SCOPES)}")
    return scope


@pytest.fixture(scope="session")
def kafka_config() -> Mapping[str, object]:
    """Broker settings for `kafka` and `kafka_session`; override it to give some, `{"num.partitions": 3}`."""
    return {}


@pytest.fixture(scope=_scope)
def kafka(kafka_config: Mapping[str, object]) -> Iterator[EphemeralBroker]:
    """A broker of the test's own, empty at its start; `kafka_scope` or `--kafka-scope` lets tests share it."""
    yield from _broker(kafka_config)


@pytest.fixture(scope="session")
def kafka_session(kafka_config: Mapping[str, object]) -> Iterator[EphemeralBroker]:
    """A broker that all tests of a session share; under xdist, of a worker."""
    yield from _broker(kafka_config)


def _broker(config: Mapping[str, object]) -> Iterator[EphemeralBroker]:
    from penstock.testing.broker import EphemeralBroker

    with EphemeralBroker(config) as broker:
        yield broker


def _broker_of(request: pytest.FixtureRequest) -> EphemeralBroker:
    """The broker that the test uses: `kafka_session` where it asks for that one alone, else `kafka`."""
    names = request.node.fixturenames
    only_session = "kafka_session" in names and "kafka" not in names
    broker: EphemeralBroker = request.getfixturevalue("kafka_session" if only_session else "kafka")
    return broker


@pytest.fixture
def kafka_topic_factory(request: pytest.FixtureRequest) -> TopicFactory:
    """Makes topics: `kafka_topic_factory(partitions=3, cleanup_policy="compact")`."""
    broker = _broker_of(request)
    prefix = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in request.node.name)[:80]

    def make(name: str | None = None, partitions: int = 1, **config: object) -> str:
        import uuid

        return broker.create_topic(name or f"{prefix}-{uuid.uuid4().hex[:8]}", partitions, **config)

    return make


@pytest.fixture
def kafka_topic(kafka_topic_factory: TopicFactory) -> str:
    """The name of a fresh topic with one partition."""
    return kafka_topic_factory()


@pytest.fixture
def kafka_faults(request: pytest.FixtureRequest) -> Iterator[Faults]:
    """Faults of the test's broker; all are undone when the test ends."""
    broker = _broker_of(request)
    yield broker.faults
    if broker.is_running:
        broker.faults.clear()


# -- The broker's log beside a failure ---------------------------------------------------------------------------------


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    values = getattr(item, "funcargs", None)
    if values and (report.failed or report.when == "teardown"):
        for name, value in values.items():
            # Not an isinstance check: that would import the broker for tests that use none.
            if type(value).__module__ == "penstock.testing.broker":
                _note(item, report, name, value)
    return report


def _note(item: pytest.Item, report: pytest.TestReport, name: str, broker: Any) -> None:
    """A shared broker shows what it logged since the last test that used it."""
    marks = item.config.stash.setdefault(_marks, WeakKeyDictionary())
    if report.failed:
        text = broker.log_text(marks.get(broker, 0))[-_LOG_CHARACTERS_MAX:]
        report.sections.append((f"Log of the broker {name!r}", text or "(it has logged nothing)"))
    if report.when == "teardown":
        marks[broker] = broker.log_line_count
