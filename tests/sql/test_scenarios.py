"""Every file in `scenarios/`, several at once: a query spends most of its life waiting."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from penstock.sql.server.parts import Parts
from tests.sql.scenario import ScenarioRunner

FOLDER = Path(__file__).parent / "scenarios"
AT_ONCE = 2

Results = dict[str, "Future[None]"]


@pytest.fixture(scope="module")
def results(request: pytest.FixtureRequest, new_parts: Callable[[ExitStack], Parts]) -> Iterator[Results]:
    def run(path: Path) -> None:
        with ExitStack() as stack:
            ScenarioRunner(new_parts(stack))(path)

    wanted = {item.callspec.params["name"] for item in request.session.items if item.path == Path(__file__)}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {path.stem: pool.submit(run, path) for path in sorted(FOLDER.glob("*.test")) if path.stem in wanted}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.test")))
def test_scenario(name: str, results: Results) -> None:
    results[name].result()
