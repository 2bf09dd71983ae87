"""One broker per test worker, and missing peers turned into skips (or failures where nothing may be missing)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.brokers import Broker, make_target
from tests.support.missing_peers import pytest_fixture_setup, pytest_runtest_call  # noqa: F401 - hooks
from tests.support.topic_names import topic  # noqa: F401 - a fixture

# Foreign clients use what is deprecated and leave sockets to the collector; their warnings are not errors of ours.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import kafka  # noqa: F401

HERE = Path(__file__).resolve().parent

# Run by test_testing_sample_project.py in an environment of its own.
collect_ignore = ["sample_project"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.filterwarnings("default"))


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """The broker under test, shared by the tests of one worker. Whoever stops or restarts a broker starts its own."""
    target = make_target(tmp_path_factory.mktemp("broker"))
    target.start()
    yield target
    target.stop()


@pytest.fixture
def bootstrap(broker: Broker) -> str:
    return broker.bootstrap


@pytest.fixture
def start_broker(tmp_path: Path) -> Iterator[Callable[..., Broker]]:
    """Starts brokers of the test's own; those still running at its end are killed."""
    started: list[Broker] = []

    def start(**overrides: str) -> Broker:
        settings = {key.replace("_", "."): value for key, value in overrides.items()}
        target = make_target(tmp_path / f"broker{len(started)}", settings)
        started.append(target)
        target.start()
        return target

    yield start
    for target in started:
        target.kill()
