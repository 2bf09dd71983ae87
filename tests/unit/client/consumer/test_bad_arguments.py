"""Arguments of the wrong kind are refused with a sentence that says what is wanted."""

from __future__ import annotations

from datetime import UTC, datetime
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


@pytest.mark.parametrize("given", [5, b"t", {"t": 1}])
def test_topics(given: Any) -> None:
    with pytest.raises(TypeError, match="topics are given as a list of names, as one name or as a compiled pattern"):
        consumer(group_id="g").subscribe(given)


def test_a_name_that_is_no_text() -> None:
    with pytest.raises(TypeError, match="the name of a topic is text, not 5"):
        consumer(group_id="g").subscribe(["t", 5])


def test_a_pattern_in_a_list() -> None:
    """As other clients take it: the way it is written here is told."""
    with pytest.raises(InvalidState, match=r"A pattern is given to subscribe\(\) by itself.*subscribe\('\^t\.\*'\)"):
        consumer(group_id="g").subscribe(["^t.*"])


@pytest.mark.parametrize("name", ["on_assign", "on_revoke", "on_lost"])
def test_callbacks_of_a_subscription(name: str) -> None:
    with pytest.raises(TypeError, match=f"{name} is a function of the consumer and its partitions, not 'x'"):
        consumer(group_id="g").subscribe(["t"], **{name: "x"})


@pytest.mark.parametrize("given", [[("t", 0, 3)], 5, "t"])
async def test_offsets_to_commit(given: Any) -> None:
    async with consumer(group_id="g") as reader:
        with pytest.raises(TypeError, match="offsets to commit are a dict of partition to offset"):
            await reader.commit(given)
        with pytest.raises(TypeError, match="offsets to commit are a dict of partition to offset"):
            reader.commit_async(given)


def test_callback_of_a_commit() -> None:
    with pytest.raises(TypeError, match="callback is a function of the offsets and the error, not 5"):
        consumer(group_id="g").commit_async(callback=5)


@pytest.mark.parametrize("given", [1.5, "x", datetime(2026, 1, 1, tzinfo=UTC), None])
async def test_times(given: Any) -> None:
    async with consumer() as reader:
        with pytest.raises(TypeError, match=r"the time for t-0 is a whole number of milliseconds since 1970, such as"):
            await reader.offsets_for_times({("t", 0): given})
        with pytest.raises(TypeError, match="timestamps are a dict of partition to time"):
            await reader.offsets_for_times([("t", 0)])


@pytest.mark.parametrize("given", [["t"], 5, None])
async def test_partitions_for(given: Any) -> None:
    async with consumer() as reader:
        with pytest.raises(TypeError, match="the name of a topic is text"):
            await reader.partitions_for(given)


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
