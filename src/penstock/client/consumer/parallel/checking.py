"""What users give to parallel consumption, refused where it is given: a run finds out too late."""

from __future__ import annotations

import inspect
from typing import Any, Final

from penstock.client.config import consumer_keys
from penstock.client.consumer.consumer import AsyncConsumer
from penstock.client.consumer.parallel.policy import OnFailure
from penstock.client.consumer.parallel.scheduling import Order
from penstock.client.errors import InvalidState

_EXECUTORS: Final = ("threads", "tasks")
_ON_FAILURE: Final = ("stop", "skip")


def check_commits_by_hand(consumer: AsyncConsumer | Any) -> None:
    if not isinstance(consumer, AsyncConsumer):
        raise TypeError(f"consumer is a Consumer of the same kind (blocking, or of penstock.aio), not {consumer!r}")
    if consumer.config[consumer_keys.ENABLE_AUTO_COMMIT]:
        raise InvalidState(
            "the consumer commits by itself, past records that are not finished: make it with enable_auto_commit=False"
        )


def check_handler(handler: Any, executor: str | None) -> None:
    if not callable(handler):
        raise TypeError(f"handler is a function of one record, plain or async, not {handler!r}")
    if executor is not None and executor not in _EXECUTORS:
        raise ValueError(f"executor is one of {_listed(_EXECUTORS)}, or None, not {executor!r}")
    if executor == "threads" and is_async(handler):
        raise ValueError("a coroutine function cannot be called in threads: leave executor out, or give a plain one")


def check_counts(*, workers: int, pending_max: int, retries: int) -> None:
    for name, value in (("workers", workers), ("pending_max", pending_max), ("retries", retries)):
        if not isinstance(value, int):
            raise TypeError(f"{name} is a whole number, not {value!r}")
    if workers < 1 or pending_max < workers:
        raise ValueError("workers must be at least 1, and pending_max at least as many")
    if retries < 0:
        raise ValueError(f"retries is at least 0, not {retries}")


def as_order(order: Order | str | Any) -> Order:
    try:
        return Order(order)
    except ValueError:
        choices = _listed(tuple(each.value for each in Order))
        raise ValueError(f"order is one of {choices}, not {order!r}") from None


def checked_on_failure(on_failure: OnFailure | Any) -> OnFailure:
    if callable(on_failure) or on_failure in _ON_FAILURE:
        chosen: OnFailure = on_failure
        return chosen
    raise ValueError(
        f"on_failure is one of {_listed(_ON_FAILURE)}, or a function of the record and the error, not {on_failure!r}"
    )


def is_async(function: Any) -> bool:
    """A coroutine function, or an object that is called like one."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def _listed(choices: tuple[str, ...]) -> str:
    return ", ".join(map(repr, choices))
