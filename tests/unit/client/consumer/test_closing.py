"""Every step of an end is made, and what the first of them raised is raised behind them all."""

from __future__ import annotations

import asyncio

import pytest

from penstock.client.consumer.closing import in_turn


class Steps:
    def __init__(self) -> None:
        self.made: list[str] = []

    async def good(self) -> None:
        self.made.append("good")

    async def bad(self) -> None:
        self.made.append("bad")
        raise OSError("first")

    async def worse(self) -> None:
        self.made.append("worse")
        raise ValueError("second")

    async def cancelled(self) -> None:
        raise asyncio.CancelledError


async def test_a_step_that_fails_holds_up_none(caplog: pytest.LogCaptureFixture) -> None:
    steps = Steps()
    with pytest.raises(OSError, match="first"):
        await in_turn(steps.bad, steps.worse, steps.good)
    assert steps.made == ["bad", "worse", "good"]
    assert "another step of closing failed" in caplog.text
    assert "second" in caplog.text


async def test_a_cancellation_ends_it_at_once() -> None:
    steps = Steps()
    with pytest.raises(asyncio.CancelledError):
        await in_turn(steps.cancelled, steps.good)
    assert steps.made == []
