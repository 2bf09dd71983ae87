"""Concurrent requests share runs, but never one that started before them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.system import SystemTasks
from penstock.storage.manager.deferred_removal import DeferredRemoval
from penstock.storage.manager.periodic import PeriodicDuty
from penstock.storage.manager.shared_runs import SharedRuns


@pytest.fixture
async def tasks() -> AsyncIterator[SystemTasks]:
    tasks = SystemTasks(asyncio.get_running_loop(), threads=2)
    yield tasks
    await tasks.close()


async def test_many_requests_make_two_runs(tasks: SystemTasks) -> None:
    runs = SharedRuns(tasks)
    gate = asyncio.Event()
    starts = 0

    async def work() -> None:
        nonlocal starts
        starts += 1
        await gate.wait()

    first = asyncio.create_task(runs.run("log", work))
    await asyncio.sleep(0.01)
    rest = [asyncio.create_task(runs.run("log", work)) for _ in range(20)]
    await asyncio.sleep(0.01)
    assert starts == 1
    gate.set()
    await asyncio.gather(first, *rest)
    assert starts == 2
    await runs.settle()


async def test_a_failure_reaches_all_who_wait_and_the_next_run_is_fresh(tasks: SystemTasks) -> None:
    runs = SharedRuns(tasks)
    failures: list[Exception | None] = [KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "disk"), None]

    async def work() -> None:
        await asyncio.sleep(0)
        if (failure := failures.pop(0)) is not None:
            raise failure

    results = await asyncio.gather(*(runs.run(1, work) for _ in range(3)), return_exceptions=True)
    assert [type(result) for result in results] == [KafkaError] * 3
    await runs.run(1, work)


async def test_a_cancelled_request_does_not_stop_the_run_for_others(tasks: SystemTasks) -> None:
    runs = SharedRuns(tasks)
    gate = asyncio.Event()

    async def work() -> None:
        await gate.wait()

    leaving, staying = (asyncio.create_task(runs.run(1, work)) for _ in range(2))
    await asyncio.sleep(0.01)
    leaving.cancel()
    await asyncio.sleep(0)
    gate.set()
    await staying
    assert leaving.cancelled()


async def test_removals_wait_for_their_delay_or_for_the_end(tasks: SystemTasks) -> None:
    removal = DeferredRemoval(tasks)
    removed: list[str] = []
    removal.schedule(1, lambda: removed.append("soon"), "soon")
    removal.schedule(60_000, lambda: removed.append("late"), "late")
    await asyncio.sleep(0.05)
    assert removed == ["soon"]
    await removal.finish()
    assert removed == ["soon", "late"]
    assert len(removal) == 0


async def test_a_failed_removal_is_reported(tasks: SystemTasks, caplog: pytest.LogCaptureFixture) -> None:
    removal = DeferredRemoval(tasks)

    def fail() -> None:
        raise PermissionError("no")

    def missing() -> None:
        raise FileNotFoundError("gone")

    removal.schedule(60_000, missing, "gone")
    removal.schedule(60_000, fail, "orders-0")
    await removal.finish()
    assert [record.levelname for record in caplog.records] == ["WARNING"]


async def test_a_duty_repeats_survives_failures_and_stops(tasks: SystemTasks) -> None:
    rounds = 0
    enough = asyncio.Event()

    async def duty() -> None:
        nonlocal rounds
        rounds += 1
        if rounds == 3:
            enough.set()
        raise OSError("disk")

    periodic = PeriodicDuty("duty", duty, interval_ms=1, first_delay_ms=0, tasks=tasks)
    await asyncio.wait_for(enough.wait(), 5)
    await periodic.stop()
    seen = rounds
    await asyncio.sleep(0.02)
    assert rounds == seen
