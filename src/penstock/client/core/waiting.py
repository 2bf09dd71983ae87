"""Waiting on the ports' time: a pause, a limit on an await, and tries with growing pauses until a deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from penstock.client.errors import KafkaTimeout
from penstock.network.backoff import backoff_ms
from penstock.network.settings import NetworkPorts

T = TypeVar("T")


async def pause(ports: NetworkPorts, seconds: float) -> None:
    future = ports.tasks.future()
    timer = ports.tasks.call_later(max(seconds, 0.0), lambda: None if future.done() else future.set_result(None))
    try:
        await future
    finally:
        timer.cancel()


async def within(ports: NetworkPorts, timeout_ms: float, future: Awaitable[T]) -> T:
    """The result, or builtin TimeoutError when the time is over. A task or coroutine is cancelled then."""
    work = asyncio.ensure_future(future)
    is_late = False

    def stop() -> None:
        nonlocal is_late
        is_late = not work.done()
        work.cancel()

    timer = ports.tasks.call_later(max(timeout_ms, 0.0) / 1000, stop)
    try:
        return await work
    except asyncio.CancelledError:
        if is_late and work.cancelled() and not _is_cancelled():
            raise TimeoutError from None
        work.cancel()
        raise
    finally:
        timer.cancel()


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class Retry:
    """Tries until one succeeds or the time is over::

        async for attempt in core.retry(timeout_ms=30_000, what="committing offsets"):
            try:
                return await work(attempt.remaining_ms)
            except NetworkError as error:
                attempt.failed(error)

    The first try is made at once, each further one after a longer pause (`retry.backoff.ms`, doubled, jittered). When
    the time is over KafkaTimeout is raised; it names the last cause.
    """

    def __init__(
        self, ports: NetworkPorts, *, timeout_ms: float, backoff_ms: int, backoff_max_ms: int, what: str = "the call"
    ) -> None:
        self.deadline = ports.clock.monotonic() + timeout_ms / 1000
        self.attempts = 0
        self.cause: BaseException | None = None
        self._ports = ports
        self._timeout_ms = timeout_ms
        self._backoff_ms = backoff_ms
        self._backoff_max_ms = backoff_max_ms
        self._what = what
        self._at_once = False

    @property
    def remaining_ms(self) -> float:
        return max(0.0, (self.deadline - self._ports.clock.monotonic()) * 1000)

    def failed(self, cause: BaseException, *, at_once: bool = False) -> None:
        """Say why this try failed. `at_once`: the next one needs no pause (another node will be asked)."""
        self.cause = cause
        self._at_once = at_once

    def __aiter__(self) -> Retry:
        return self

    async def __anext__(self) -> Retry:
        if self.attempts and not self._at_once:
            await self._pause()
        self._at_once = False
        if self.attempts and self.remaining_ms <= 0:
            raise self.timed_out() from self.cause
        self.attempts += 1
        return self

    async def _pause(self) -> None:
        delay_ms = backoff_ms(self._backoff_ms, self._backoff_max_ms, self.attempts, self._ports.rng)
        if delay_ms >= self.remaining_ms:
            # The next try would come too late.
            if self.remaining_ms > 0:
                await pause(self._ports, self.remaining_ms / 1000)
            raise self.timed_out() from self.cause
        await pause(self._ports, delay_ms / 1000)

    def timed_out(self) -> KafkaTimeout:
        why = f": {self.cause}" if self.cause is not None else ""
        times = "once" if self.attempts == 1 else f"{self.attempts} times"
        return KafkaTimeout(f"{self._what} did not succeed within {self._timeout_ms:.0f} ms (tried {times}){why}")
