"""A stage for each test, taken down behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.unit.coordinator.transaction.stage import TransactionStage


@pytest.fixture
def make_stage() -> Iterator[Callable[..., TransactionStage]]:
    stages: list[TransactionStage] = []

    def make(**options: Any) -> TransactionStage:
        stages.append(TransactionStage(**options))
        return stages[-1]

    yield make
    for stage in stages:
        stage.close()


@pytest.fixture
def stage(make_stage: Callable[..., TransactionStage]) -> TransactionStage:
    return make_stage()
