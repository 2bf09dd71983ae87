"""A stage for each test, taken down behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.unit.coordinator.group.staging import GroupStage


@pytest.fixture
def make_stage() -> Iterator[Callable[..., GroupStage]]:
    stages: list[GroupStage] = []

    def make(**options: Any) -> GroupStage:
        stages.append(GroupStage(**options))
        return stages[-1]

    yield make
    for stage in stages:
        stage.close()


@pytest.fixture
def stage(make_stage: Callable[..., GroupStage]) -> GroupStage:
    return make_stage()
