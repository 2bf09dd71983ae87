"""What parallel consumption cannot use is refused when it is made."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.client.consumer.consumer import AsyncConsumer
from penstock.client.consumer.parallel import AsyncParallelConsumer, ParallelConsumer


async def handle(record: Any) -> None: ...


def parallel(handler: Any = print, **options: Any) -> AsyncParallelConsumer:
    consumer = AsyncConsumer(bootstrap_servers="localhost:9092", group_id="g", enable_auto_commit=False)
    return AsyncParallelConsumer(consumer, handler, **options)


def test_one_text_is_one_topic() -> None:
    assert parallel(topics="orders")._topics == ["orders"]


@pytest.mark.parametrize("topics", [5, b"orders"])
def test_topics(topics: Any) -> None:
    with pytest.raises(TypeError, match="topics are given as a list of names"):
        parallel(topics=topics)


def test_a_handler_that_cannot_be_called() -> None:
    with pytest.raises(TypeError, match="handler is a function of one record, plain or async, not None"):
        parallel(None)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"order": "keys"}, "order is one of 'key', 'partition', 'unordered', not 'keys'"),
        ({"on_failure": "ignore"}, "on_failure is one of 'stop', 'skip', or a function of .*, not 'ignore'"),
        ({"on_failure": None}, "on_failure is one of 'stop', 'skip', or a function of .*, not None"),
        ({"executor": "thread"}, "executor is one of 'threads', 'tasks', or None, not 'thread'"),
        ({"retries": -1}, "retries is at least 0, not -1"),
        ({"workers": 0}, "workers must be at least 1"),
    ],
)
def test_choices(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parallel(**options)


def test_counts() -> None:
    with pytest.raises(TypeError, match="workers is a whole number, not '8'"):
        parallel(workers="8")


def test_a_coroutine_function_in_threads() -> None:
    """Its coroutines would be dropped, and every record counted as handled."""
    with pytest.raises(ValueError, match="a coroutine function cannot be called in threads"):
        parallel(handle, executor="threads")


def test_an_object_that_is_called_like_a_coroutine_function_gets_tasks() -> None:
    class Handler:
        async def __call__(self, record: Any) -> None: ...

    assert not parallel(Handler())._threads


def test_a_consumer_of_the_other_kind() -> None:
    consumer = AsyncConsumer(bootstrap_servers="localhost:9092", group_id="g", enable_auto_commit=False)
    with pytest.raises(TypeError, match=r"consumer is a penstock\.Consumer, not <AsyncConsumer"):
        ParallelConsumer(consumer, print)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="consumer is a Consumer of the same kind"):
        AsyncParallelConsumer(object(), print)  # type: ignore[arg-type]
