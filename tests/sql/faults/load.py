"""Records for the continuous queries of `expectations`, sent while something happens, and what topics hold after."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable

import penstock
from penstock.base.types import TopicPartition
from tests.sql.faults.expectations import (
    EVENTS,
    OUTPUTS,
    PARTNERS,
    SESSION_GAP_MS,
    TICKS,
    USERS,
    Row,
    Topics,
    differences,
    level_of,
)

USER_COUNT = 20
ROUND_RECORDS = 20
ROUND_S = 0.1
EVENT_STEP_MS = 20
SESSION_RECORDS = 500
RECOVERY_TIMEOUT_S = 300.0


class Load:
    """Sends records of all inputs, about 200 a second each, until it is ended."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._end = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="load", daemon=True)
        self._time_ms = time.time_ns() // 1_000_000
        self._id = 0

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """Send what closes the windows of EMIT FINAL, and stop."""
        self._end.set()
        self._thread.join(120)
        assert not self._thread.is_alive(), "the load did not end"
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            with penstock.Producer(bootstrap_servers=self._bootstrap, delivery_timeout_ms=120_000) as producer:
                while not self._end.wait(ROUND_S):
                    for _ in range(ROUND_RECORDS):
                        self._send(producer)
                self._time_ms += 60_000
                self._send(producer)
                producer.flush()
        except BaseException as error:  # noqa: BLE001 - told by the one who ends the load
            self._failure = error

    def _send(self, producer: penstock.Producer) -> None:
        self._id += 1
        self._time_ms += EVENT_STEP_MS
        if self._id % SESSION_RECORDS == 0:
            self._time_ms += 2 * SESSION_GAP_MS
        user = f"u{self._id * 7 % USER_COUNT}"
        records = [(EVENTS, user, {"id": self._id, "n": self._id * 31 % 100}), (TICKS, f"k{self._id % 3}", {"n": 1})]
        if self._id % 2:
            records.append((PARTNERS, user, {"id": self._id, "m": self._id % 10}))
        for topic, key, value in records:
            producer.send(topic, json.dumps(value), key=key, timestamp_ms=self._time_ms)


def prepare(bootstrap: str) -> None:
    """The topics, and a table that stays as it is."""
    with penstock.Admin(bootstrap_servers=bootstrap) as admin:
        partitions = {EVENTS: 2, PARTNERS: 2, USERS: 2, TICKS: 1}
        admin.create_topics([penstock.NewTopic(name, count) for name, count in partitions.items()])
    with penstock.Producer(bootstrap_servers=bootstrap) as producer:
        for number in range(USER_COUNT):
            if (level := level_of(f"u{number}")) is not None:
                producer.send(USERS, json.dumps({"level": level}), key=f"u{number}")


def read_topics(bootstrap: str) -> Topics:
    """All inputs and outputs, committed records only, each partition in its order."""
    topics: Topics = {}
    for topic in (EVENTS, PARTNERS, TICKS, *OUTPUTS):
        settings = {"isolation_level": "read_committed", "auto_offset_reset": "earliest", "enable_auto_commit": False}
        with penstock.Consumer(bootstrap_servers=bootstrap, **settings) as consumer:
            partitions = [TopicPartition(topic, info.partition) for info in consumer.partitions_for(topic)]
            consumer.assign(partitions)
            ends = consumer.end_offsets(partitions)
            rows: list[Row] = []
            while any(consumer.position(each) < ends[each] for each in partitions):
                for record in consumer.poll(200):
                    value = None if record.value is None else json.loads(record.value)
                    rows.append(Row(record.key or b"", record.timestamp, value))
            topics[topic] = rows
    return topics


def wait_for(what: str, condition: Callable[[], bool], timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() >= deadline:
            raise AssertionError(f"not within {timeout_s:g} s: {what}")
        time.sleep(1.0)


def wait_until_right(bootstrap: str) -> tuple[Topics, list[str]]:
    """The topics as soon as nothing is wrong with them, or what is still wrong when there is no more time."""
    deadline = time.monotonic() + RECOVERY_TIMEOUT_S
    while True:
        topics = read_topics(bootstrap)
        wrong = differences(topics)
        if not wrong or time.monotonic() >= deadline:
            return topics, wrong
        time.sleep(1.0)
