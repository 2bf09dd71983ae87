"""A stage for each test, taken down behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.unit.coordinator.runtime.fakes import Stage


@pytest.fixture
def make_stage() -> Iterator[Callable[..., Stage]]:
    stages: list[Stage] = []

    def make(**options: Any) -> Stage:
        stages.append(Stage(**options))
        return stages[-1]

    yield make
    for stage in stages:
        stage.close()


@pytest.fixture
def stage(make_stage: Callable[..., Stage]) -> Stage:
    return make_stage()
