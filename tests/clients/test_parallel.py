"""One consumer and many workers: order by key, commits behind what is finished, failures, revocation."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import pytest

from penstock import Admin, Consumer, Producer
from penstock.base.types import TopicPartition
from penstock.client.consumer.consumer import AsyncConsumer
from penstock.client.consumer.parallel import AsyncParallelConsumer, HandlerFailed, ParallelConsumer
from penstock.client.errors import InvalidState
from penstock.records.record import ConsumerRecord
from tests.clients.support import TopicMaker

COUNT = 300
KEYS = 10
PARTITIONS = 2


@pytest.fixture
def filled(bootstrap: str, topic: TopicMaker) -> str:
    """`COUNT` records with `KEYS` keys."""
    name = topic(partitions=PARTITIONS)
    with Producer(bootstrap_servers=bootstrap) as producer:
        for number in range(COUNT):
            producer.send(name, str(number), f"key-{number % KEYS}")
        producer.flush(20)
    return name


def consumer_of(bootstrap: str, group: str, **options: Any) -> Consumer:
    settings = {"auto_offset_reset": "earliest", "fetch_max_wait_ms": 50, "enable_auto_commit": False, **options}
    return Consumer(bootstrap_servers=bootstrap, group_id=group, **settings)


def committed(bootstrap: str, group: str, name: str) -> dict[int, int]:
    with consumer_of(bootstrap, group) as consumer:
        found = consumer.committed([TopicPartition(name, number) for number in range(PARTITIONS)])
        return {tp.partition: each.offset for tp, each in found.items() if each is not None}


def run_until(parallel: ParallelConsumer, condition: Callable[[], bool]) -> None:
    """In this thread, until something is so."""
    stopped = threading.Event()

    def watch() -> None:
        deadline = time.monotonic() + 60
        while not condition() and time.monotonic() < deadline and not stopped.is_set():
            time.sleep(0.005)
        parallel.stop()

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        parallel.run()
    finally:
        stopped.set()
        watcher.join()
    assert condition()


@pytest.mark.parametrize("how", ["text", "pattern", "own pattern"])
def test_topics_as_text_and_as_pattern(bootstrap: str, filled: str, how: str) -> None:
    with consumer_of(bootstrap, f"{filled}-{how[:3]}") as consumer:
        if how == "own pattern":
            consumer.subscribe(f"^{filled}$")
            parallel = ParallelConsumer(consumer, lambda record: None)
        else:
            topics: Any = filled if how == "text" else re.compile(filled)
            parallel = ParallelConsumer(consumer, lambda record: None, topics=topics)
        run_until(parallel, lambda: parallel.handled == COUNT)
    with Admin(bootstrap_servers=bootstrap) as admin:
        assert not {"o", "r", "d", "e", "s"} & set(admin.list_topics())


def test_a_plain_function_that_gives_a_coroutine_fails(bootstrap: str, filled: str) -> None:
    """It would be dropped, and the record taken for handled."""

    async def handle(record: ConsumerRecord) -> None: ...

    with consumer_of(bootstrap, f"{filled}-co") as consumer:
        parallel = ParallelConsumer(consumer, lambda record: handle(record), topics=filled)
        with pytest.raises(HandlerFailed) as caught:
            parallel.run()
    assert "nobody awaits it: give executor='tasks'" in str(caught.value.__cause__)


@pytest.mark.parametrize("order", ["key", "partition", "unordered"])
def test_threads_keep_the_order_that_was_promised(bootstrap: str, filled: str, order: Any) -> None:
    done: list[ConsumerRecord] = []
    running: Counter[object] = Counter()
    at_once = 0
    lock = threading.Lock()

    def lane(record: ConsumerRecord) -> object:
        return {"key": record.key, "partition": record.partition, "unordered": record.offset}[order]

    def handle(record: ConsumerRecord) -> None:
        nonlocal at_once
        with lock:
            running[lane(record)] += 1
            at_once = max(at_once, sum(running.values()))
            assert order == "unordered" or running[lane(record)] == 1, "two of a lane at once"
        time.sleep(0.001 * (int(record.value) % 3))
        with lock:
            running[lane(record)] -= 1
            done.append(record)

    with consumer_of(bootstrap, f"{filled}-g") as consumer:
        parallel = ParallelConsumer(consumer, handle, topics=[filled], workers=6, order=order)
        run_until(parallel, lambda: len(done) >= COUNT)
    assert sorted(int(each.value) for each in done) == list(range(COUNT))
    by_lane: defaultdict[object, list[int]] = defaultdict(list)
    for each in done:
        by_lane[lane(each)].append(each.offset)
    assert all(offsets == sorted(offsets) for offsets in by_lane.values())
    assert 1 < at_once <= (PARTITIONS if order == "partition" else 6)
    assert sum(committed(bootstrap, f"{filled}-g", filled).values()) == COUNT


def test_slow_record_holds_back_the_commit_but_not_the_others(bootstrap: str, filled: str) -> None:
    go_on = threading.Event()
    done: list[int] = []
    offset_of_slow: list[tuple[int, int]] = []
    seen: list[dict[int, int]] = []

    def handle(record: ConsumerRecord) -> None:
        if record.value == b"20":
            offset_of_slow.append((record.partition, record.offset))
            go_on.wait(60)
        done.append(int(record.value))

    def others_done() -> bool:
        # All but the slow one and those behind it with the same key.
        if len(done) >= COUNT - (COUNT // KEYS - 2) and not go_on.is_set():
            seen.append(committed(bootstrap, f"{filled}-g", filled))
            if offset_of_slow and sum(seen[-1].values()) > 0:
                go_on.set()
        return len(done) >= COUNT

    with consumer_of(bootstrap, f"{filled}-g") as consumer:
        parallel = ParallelConsumer(consumer, handle, topics=[filled], workers=4, commit_interval_ms=20)
        run_until(parallel, others_done)
    partition, offset = offset_of_slow[0]
    assert seen
    assert all(each.get(partition, 0) <= offset for each in seen)
    assert sorted(done) == list(range(COUNT))
    assert sum(committed(bootstrap, f"{filled}-g", filled).values()) == COUNT


def test_failing_handler_ends_the_run_and_nothing_behind_it_is_committed(bootstrap: str, filled: str) -> None:
    done: list[int] = []
    broken = True

    def handle(record: ConsumerRecord) -> None:
        if broken and record.value == b"42":
            raise ZeroDivisionError("cannot")
        done.append(int(record.value))

    group = f"{filled}-g"
    with consumer_of(bootstrap, group) as consumer:
        parallel = ParallelConsumer(consumer, handle, topics=[filled], workers=4, retries=2, retry_backoff_ms=5)
        with pytest.raises(HandlerFailed, match="3 attempts") as caught:
            parallel.run()
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    failed = caught.value.record
    assert committed(bootstrap, group, filled).get(failed.partition, 0) <= failed.offset
    broken = False
    with consumer_of(bootstrap, group) as consumer:
        parallel = ParallelConsumer(consumer, handle, topics=[filled], workers=4)
        run_until(parallel, lambda: set(done) == set(range(COUNT)))
    assert sum(committed(bootstrap, group, filled).values()) == COUNT


def test_failures_can_be_skipped_or_put_aside_and_retries_may_succeed(bootstrap: str, filled: str) -> None:
    attempts: Counter[int] = Counter()
    aside: list[int] = []
    done: list[int] = []

    def handle(record: ConsumerRecord) -> None:
        number = int(record.value)
        attempts[number] += 1
        if number % 50 == 0 or (number % 50 == 1 and attempts[number] < 2):
            raise ValueError(number)
        done.append(number)

    with consumer_of(bootstrap, f"{filled}-g") as consumer:
        parallel = ParallelConsumer(
            consumer, handle, topics=[filled], workers=4, retries=1, retry_backoff_ms=1,
            on_failure=lambda record, error: aside.append(int(record.value)),
        )  # fmt: skip
        run_until(parallel, lambda: len(done) + len(aside) >= COUNT)
        assert parallel.handled == COUNT
    assert sorted(aside) == list(range(0, COUNT, 50))
    assert all(attempts[number] == 2 for number in aside)
    with consumer_of(bootstrap, f"{filled}-h") as consumer:
        parallel = ParallelConsumer(consumer, lambda record: 1 / 0, topics=[filled], on_failure="skip")
        run_until(parallel, lambda: parallel.handled >= COUNT)
    assert sum(committed(bootstrap, f"{filled}-h", filled).values()) == COUNT


def test_pending_records_are_bounded(bootstrap: str, filled: str) -> None:
    largest = 0
    done: list[int] = []

    def handle(record: ConsumerRecord) -> None:
        nonlocal largest
        largest = max(largest, parallel.pending)
        done.append(int(record.value))

    with consumer_of(bootstrap, f"{filled}-g", max_poll_records=10) as consumer:
        parallel = ParallelConsumer(consumer, handle, topics=[filled], workers=2, pending_max=20)
        run_until(parallel, lambda: len(done) >= COUNT)
    assert largest < 20 + 10


def test_partitions_revoked_while_busy_are_finished_and_committed_first(bootstrap: str, filled: str) -> None:
    """A second member takes over half of the partitions: nothing is done twice, because the first drains before."""
    done: list[tuple[str, int]] = []
    group = f"{filled}-g"
    go = threading.Event()

    def handler(name: str) -> Callable[[ConsumerRecord], None]:
        def handle(record: ConsumerRecord) -> None:
            if len(done) > 30:
                go.wait(60)
            time.sleep(0.005)
            done.append((name, int(record.value)))

        return handle

    quick = {"heartbeat_interval_ms": 50}
    with consumer_of(bootstrap, group, **quick) as first, consumer_of(bootstrap, group, **quick) as second:
        runs = [
            ParallelConsumer(first, handler("first"), topics=[filled], workers=4),
            ParallelConsumer(second, handler("second"), topics=[filled], workers=4),
        ]
        threads = [threading.Thread(target=each.run) for each in runs]
        threads[0].start()
        deadline = time.monotonic() + 60
        while len(done) <= 30:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        threads[1].start()
        # The rebalance is under way, with workers that are busy, before they may go on.
        time.sleep(0.3)
        go.set()
        while len(done) < COUNT:
            assert time.monotonic() < deadline, f"{len(done)} done"
            time.sleep(0.01)
        for each, thread in zip(runs, threads, strict=True):
            each.stop()
            thread.join(60)
            assert not thread.is_alive()
    assert sorted(number for _, number in done) == list(range(COUNT))
    assert {name for name, _ in done} == {"first", "second"}
    assert sum(committed(bootstrap, group, filled).values()) == COUNT


def test_tasks_on_asyncio(bootstrap: str, filled: str) -> None:
    done: list[ConsumerRecord] = []
    all_done = asyncio.Event()

    async def handle(record: ConsumerRecord) -> None:
        await asyncio.sleep(0.001)
        done.append(record)
        if len(done) >= COUNT:
            all_done.set()

    async def test() -> None:
        options: dict[str, Any] = {"auto_offset_reset": "earliest", "enable_auto_commit": False}
        async with (
            AsyncConsumer(bootstrap_servers=bootstrap, group_id=f"{filled}-g", **options) as consumer,
            AsyncParallelConsumer(consumer, handle, topics=[filled], workers=20),
        ):
            await all_done.wait()

    asyncio.run(asyncio.wait_for(test(), 30))
    by_key: defaultdict[object, list[int]] = defaultdict(list)
    for each in done:
        by_key[each.key].append(each.offset)
    assert all(offsets == sorted(offsets) for offsets in by_key.values())
    assert sum(committed(bootstrap, f"{filled}-g", filled).values()) == COUNT


def test_assigned_partitions_without_a_subscription(bootstrap: str, filled: str) -> None:
    done: list[int] = []
    with consumer_of(bootstrap, f"{filled}-g") as consumer:
        consumer.assign([TopicPartition(filled, number) for number in range(PARTITIONS)])
        parallel = ParallelConsumer(consumer, lambda record: done.append(int(record.value)))
        run_until(parallel, lambda: len(done) >= COUNT)
        with pytest.raises(InvalidState, match="make a new one"):
            parallel.run()
    assert sorted(done) == list(range(COUNT))


def test_consumer_that_commits_by_itself_is_refused(bootstrap: str) -> None:
    with (
        Consumer(bootstrap_servers=bootstrap, group_id="g") as consumer,
        pytest.raises(InvalidState, match="enable_auto_commit=False"),
    ):
        ParallelConsumer(consumer, print)
