"""Kafka Streams: a word count with exactly_once_v2 over restarts of itself and of the broker."""

from __future__ import annotations

import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

import confluent_kafka
import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from tests.compat.admin import create_topic
from tests.compat.groups import eventually
from tests.support import peers
from tests.support.brokers import Broker
from tests.support.processes import LoggedProcess

# Clients that nobody here wrote stall now and then when they are killed or starved, on any broker. What is our fault
# shows again.
pytestmark = pytest.mark.flaky(reruns=2)

PARTITIONS = 2
WORDS = ("kafka", "stream", "table", "join", "window", "record", "topic")
LINES_PER_ROUND = 150
RUNNING_WITHIN_S = 60.0
DONE_WITHIN_S = 60.0


class WordCount:
    """The application; its state directory outlives it."""

    def __init__(self, bootstrap: str, directory: Path) -> None:
        options = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]
        classpath = f"{peers.streams_classes()}:{peers.streams_jars()}/*"
        self._command = [peers.java(), *options, "-cp", classpath, "WordCount", bootstrap, "word-count"]
        self._command += ["lines", "counts", directory / "state"]
        self._log = directory / "streams.log"
        self._process: LoggedProcess | None = None

    def start(self) -> None:
        started = LoggedProcess(self._command, self._log)
        started.wait_until(lambda: "state RUNNING" in started.output(), RUNNING_WITHIN_S, "word count")
        self._process = started

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()

    def stop(self) -> None:
        if self._process is not None:
            self._process.stop()

    def output(self) -> str:
        return self._log.read_text(errors="replace")[-3000:]


class Lines:
    """Writes lines and knows how often each word was in them."""

    def __init__(self, bootstrap: str) -> None:
        self._producer = confluent_kafka.Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, "message.timeout.ms": 120_000}
        )
        self._random = random.Random(7)
        self.words: Counter[str] = Counter()

    def write(self) -> None:
        for number in range(LINES_PER_ROUND):
            words = self._random.choices(WORDS, k=5)
            self.words.update(words)
            self._producer.produce("lines", " ".join(words).encode(), partition=number % PARTITIONS)
        assert self._producer.flush(60) == 0


class Counts:
    """The output as a reader of committed records sees it: by word, every count in its order."""

    def __init__(self, bootstrap: str) -> None:
        self._consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "unused",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 100,
                "log_level": 0,
            }
        )
        self._consumer.assign([TopicPartition("counts", partition, 0) for partition in range(PARTITIONS)])
        self.by_word: dict[str, list[int]] = defaultdict(list)

    def poll(self) -> None:
        for message in self._consumer.consume(1000, timeout=0.2):
            problem = message.error()
            if problem is None:
                self.by_word[(message.key() or b"").decode()].append(int(message.value() or b"0"))
            elif problem.code() not in (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN):
                raise KafkaException(problem)

    def has(self, words: Counter[str]) -> bool:
        self.poll()
        return all(len(self.by_word[word]) >= count for word, count in words.items())

    def close(self) -> None:
        self._consumer.close()


@pytest.mark.timeout(400)
def test_word_count_over_restarts(start_broker: Callable[..., Broker], tmp_path: Path) -> None:
    broker = start_broker(group_min_session_timeout_ms="1000")
    for name in ("lines", "counts"):
        create_topic(broker.bootstrap, name, PARTITIONS)
    lines, counts, application = (
        Lines(broker.bootstrap),
        Counts(broker.bootstrap),
        WordCount(broker.bootstrap, tmp_path),
    )

    def wait_for_counts() -> None:
        def tell() -> str:
            seen = {word: len(each) for word, each in counts.by_word.items()}
            return f"{seen} of {lines.words}\n{application.output()}"

        eventually(lambda: counts.has(lines.words), DONE_WITHIN_S, tell)

    try:
        lines.write()
        application.start()
        wait_for_counts()
        # Killed in the middle of its work, with the state as it was left.
        lines.write()
        time.sleep(0.15)
        application.kill()
        lines.write()
        application.start()
        lines.write()
        broker.kill()
        broker.start()
        lines.write()
        wait_for_counts()
        application.stop()
        lines.write()
        application.start()
        wait_for_counts()
    finally:
        application.kill()
    counts.close()
    assert counts.by_word == {word: list(range(1, count + 1)) for word, count in lines.words.items()}
