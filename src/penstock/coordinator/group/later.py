"""Answers that are usually there already: a write on a log that commits at once is done when the call returns.

Handlers may return a message or a coroutine, so only what really has to wait pays for a task.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias, TypeVar

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ports import Tasks
from penstock.coordinator.group.answers import Answer

R = TypeVar("R")
T = TypeVar("T")

MaybeLater: TypeAlias = T | Coroutine[Any, Any, T]


def when_done(future: asyncio.Future[R], convert: Callable[[R], T], failed: Callable[[ErrorCode], T]) -> MaybeLater[T]:
    """What becomes of a write's outcome, now if it is known."""
    if future.done():
        return _outcome(future, convert, failed)
    return _wait(future, convert, failed)


async def _wait(future: asyncio.Future[R], convert: Callable[[R], T], failed: Callable[[ErrorCode], T]) -> T:
    # The client may go away and its task be cancelled; the write goes on for itself.
    await asyncio.wait((future,))
    return _outcome(future, convert, failed)


def _outcome(future: asyncio.Future[R], convert: Callable[[R], T], failed: Callable[[ErrorCode], T]) -> T:
    error = future.exception()
    if error is None:
        return convert(future.result())
    if isinstance(error, KafkaError):
        return failed(error.code)
    raise error


def then(answer: MaybeLater[R], change: Callable[[R], T]) -> MaybeLater[T]:
    """The answer after a change, now if it is there."""
    return _change_later(answer, change) if isinstance(answer, Coroutine) else change(answer)


async def _change_later(answer: Coroutine[Any, Any, R], change: Callable[[R], T]) -> T:
    return change(await answer)


async def answer_of(answer: Answer[T], tasks: Tasks) -> T:
    """Wait for a parked answer."""
    if answer.value is not None:
        return answer.value
    future: asyncio.Future[T] = tasks.future()
    answer.listen(lambda value: None if future.done() else future.set_result(value))
    return await future


def ignore_outcome(future: asyncio.Future[Any]) -> None:
    """Nobody waits for this one; without a look at it asyncio would report its failure as forgotten."""
    future.add_done_callback(lambda done: None if done.cancelled() else done.exception())
