"""Arguments of the wrong kind are refused with a sentence that says what is wanted."""

from __future__ import annotations

from typing import Any

import pytest

from penstock import InvalidState
from penstock.aio import Consumer


def consumer(**options: Any) -> Any:
    return Consumer(bootstrap_servers="localhost:9092", **options)


@pytest.mark.parametrize("given", ["t", ["t"], [("t",)], [("t", "0")], 5])
def test_partitions(given: Any) -> None:
    for method in ("assign", "pause", "resume", "seek_to_end"):
        with pytest.raises(TypeError, match=r"is not a partition: give TopicPartition\(topic, number\)"):
            getattr(consumer(), method)(given)


def test_seek() -> None:
    with pytest.raises(TypeError, match="an offset is a number or an OffsetAndMetadata, not 'x'"):
        consumer().seek(("t", 0), "x")
    with pytest.raises(TypeError, match="'t' is not a partition"):
        consumer().seek("t", 0)


def test_subscribe() -> None:
    with pytest.raises(TypeError, match="topics are given as a list of names"):
        consumer(group_id="g").subscribe(None)


def test_a_pattern() -> None:
    with pytest.raises(InvalidState, match=r"The pattern '\^\(\(' is no regular expression"):
        consumer(group_id="g").subscribe("^((")


async def test_commit() -> None:
    async with consumer(group_id="g") as reader:
        with pytest.raises(TypeError, match="the offset of t-0 is a number or an OffsetAndMetadata, not 'x'"):
            await reader.commit({("t", 0): "x"})
        with pytest.raises(InvalidState, match="Offset -1 of t-0 cannot be committed"):
            await reader.commit({("t", 0): -1})


async def test_commit_async() -> None:
    with pytest.raises(InvalidState, match=r"set group\.id"):
        consumer().commit_async()
    with pytest.raises(TypeError, match="the offset of t-0 is a number or an OffsetAndMetadata, not 'x'"):
        consumer(group_id="g").commit_async({("t", 0): "x"})


async def test_poll() -> None:
    async with consumer() as reader:
        reader.assign([("t", 0)])
        with pytest.raises(TypeError, match="a time-out is a number of milliseconds, or None, not 'x'"):
            await reader.poll("x")
