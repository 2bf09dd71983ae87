"""Pauses, limits and tries, on time that the test moves."""

from __future__ import annotations

import asyncio
import itertools
import random

import pytest

from penstock.client.core.waiting import Retry, pause, within
from penstock.client.errors import KafkaTimeout
from penstock.network.settings import NetworkPorts
from tests.unit.network.fakes import FakeTime, settle


@pytest.fixture
def time() -> FakeTime:
    return FakeTime()


@pytest.fixture
def ports(time: FakeTime) -> NetworkPorts:
    return NetworkPorts(network=None, clock=time, tasks=time, rng=random.Random(1))  # type: ignore[arg-type]


def retry(ports: NetworkPorts, timeout_ms: float = 1_000) -> Retry:
    return Retry(ports, timeout_ms=timeout_ms, backoff_ms=100, backoff_max_ms=400, what="the test")


async def test_a_limit(time: FakeTime, ports: NetworkPorts) -> None:
    future = time.future()
    task = asyncio.create_task(within(ports, 100, future))
    await time.advance(0.2)
    with pytest.raises(TimeoutError):
        await task
    done = time.future()
    done.set_result(5)
    assert await within(ports, 0, done) == 5
    assert time.timers() == 0


async def test_a_cancelled_wait_is_no_time_out(time: FakeTime, ports: NetworkPorts) -> None:
    future = time.future()
    task = asyncio.create_task(within(ports, 100, future))
    await settle()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert future.cancelled()


async def test_tries_with_growing_pauses(time: FakeTime, ports: NetworkPorts) -> None:
    at: list[float] = []

    async def work() -> None:
        async for attempt in retry(ports, 2_000):
            at.append(time.now)
            attempt.failed(ValueError("not yet"))
            if attempt.attempts == 4:
                return

    task = asyncio.create_task(work())
    await time.advance(5)
    await task
    gaps = [later - earlier for earlier, later in itertools.pairwise(at)]
    for gap, expected in zip(gaps, (0.1, 0.2, 0.4), strict=True):
        assert 0.79 * expected <= gap <= 1.21 * expected


async def test_the_last_cause_is_named(time: FakeTime, ports: NetworkPorts) -> None:
    async def work() -> None:
        async for attempt in retry(ports):
            attempt.failed(ValueError("the dog ate it"))

    task = asyncio.create_task(work())
    await time.advance(1.01)
    with pytest.raises(KafkaTimeout, match=r"the test did not succeed within 1000 ms \(tried .*\): the dog ate it"):
        await task


async def test_a_try_at_once_needs_no_pause(time: FakeTime, ports: NetworkPorts) -> None:
    async for attempt in retry(ports):
        attempt.failed(ValueError(), at_once=True)
        if attempt.attempts == 3:
            break
    assert time.now == 1000.0


async def test_one_try_is_made_even_without_time(ports: NetworkPorts) -> None:
    tries = retry(ports, 0)
    await anext(tries)
    with pytest.raises(KafkaTimeout):
        await anext(tries)


async def test_a_pause_ends_when_it_is_cancelled(time: FakeTime, ports: NetworkPorts) -> None:
    task = asyncio.create_task(pause(ports, 5))
    await settle()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.timers() == 0
