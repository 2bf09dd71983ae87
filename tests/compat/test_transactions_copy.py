"""Exactly once under kills: copy jobs in librdkafka and in Java, killed at random and the broker with them.

Two jobs of each client share a group. They are killed and started again while records come in and the broker is killed
twice. In the end a reader of committed records finds each input record once, in the order of its partition.
``PENSTOCK_COPY_SECONDS`` makes it longer, ``PENSTOCK_COPY_SEED`` repeats the choices.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

import confluent_kafka
import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from tests.compat.admin import create_topic
from tests.compat.groups import ROOT, eventually
from tests.compat.writing import SteadyWriter
from tests.support import peers
from tests.support.brokers import Broker
from tests.support.processes import LoggedProcess

# Clients that nobody here wrote stall now and then when they are killed or starved, on any broker. What is our fault
# shows again.
pytestmark = pytest.mark.flaky(reruns=2)

PARTITIONS = 4
CHAOS_S = float(os.environ.get("PENSTOCK_COPY_SECONDS", "16"))
SEED = int(os.environ.get("PENSTOCK_COPY_SEED", random.randrange(1 << 32)))
DONE_WITHIN_S = 60.0
SOURCE = "source"


def _java() -> list[str | Path]:
    options = ["-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]
    return [peers.java(), *options, "-cp", f"{peers.java_classes()}:{peers.kafka_jars()}/*", "CopyJob"]


PROGRAMS: dict[str, Callable[[], list[str | Path]]] = {
    "librdkafka": lambda: [sys.executable, "-m", "tests.compat.members.confluent_copy"],
    "java": _java,
}


class Job:
    """A copy job that is started again whenever it ended."""

    def __init__(self, client: str, number: int, bootstrap: str, directory: Path) -> None:
        self._command = [*PROGRAMS[client](), bootstrap, SOURCE, client, f"copy-{client}", f"{client}-{number}"]
        self._log = directory / f"{client}-{number}.log"
        self._process: LoggedProcess | None = None

    def keep_running(self) -> None:
        if self._process is None or self._process.process.poll() is not None:
            self._process = LoggedProcess(self._command, self._log, cwd=ROOT)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()

    def output(self) -> str:
        return self._log.read_text(errors="replace")[-1500:]


class CommittedReader:
    """Follows a topic as a reader of committed records; never reads a record twice by itself."""

    def __init__(self, bootstrap: str, topic: str) -> None:
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
        self._consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
        self.values: dict[int, list[bytes]] = {partition: [] for partition in range(PARTITIONS)}

    def poll(self) -> None:
        for message in self._consumer.consume(500, timeout=0.2):
            problem = message.error()
            if problem is None:
                self.values[message.partition() or 0].append(message.value() or b"")
            elif problem.code() not in (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN):
                raise KafkaException(problem)

    def count(self) -> int:
        return sum(map(len, self.values.values()))

    def close(self) -> None:
        self._consumer.close()


def cause_trouble(broker: Broker, jobs: list[Job], chance: random.Random) -> None:
    """Kills of jobs at random, and of the broker at a third and at two thirds of the time."""
    started = time.monotonic()
    broker_kills = [CHAOS_S / 3, CHAOS_S * 2 / 3]
    while (elapsed := time.monotonic() - started) < CHAOS_S:
        time.sleep(chance.uniform(0.5, 2.5))
        if broker_kills and elapsed > broker_kills[0]:
            broker_kills.pop(0)
            broker.kill()
            broker.start()
        else:
            chance.choice(jobs).kill()
        for job in jobs:
            job.keep_running()


def check_copied(client: str, bootstrap: str, written: dict[int, int], jobs: list[Job]) -> None:
    reader = CommittedReader(bootstrap, client)

    def is_done() -> bool:
        reader.poll()
        for job in jobs:
            job.keep_running()
        return reader.count() >= sum(written.values())

    def tell() -> str:
        counts = {partition: len(values) for partition, values in reader.values.items()}
        logs = "\n".join(job.output() for job in jobs)
        return f"seed {SEED}, {client}: {counts} of {written}\n{logs}"

    eventually(is_done, DONE_WITHIN_S, tell)
    # What would come twice may come late.
    for _ in range(5):
        reader.poll()
    reader.close()
    for partition, count in written.items():
        expected = [b"LINE %d" % number for number in range(count)]
        assert reader.values[partition] == expected, f"seed {SEED}, {client}, partition {partition}"


@pytest.mark.timeout(400)
def test_copies_are_exact(start_broker: Callable[..., Broker], tmp_path: Path) -> None:
    broker = start_broker(group_min_session_timeout_ms="1000")
    for name in (SOURCE, *PROGRAMS):
        create_topic(broker.bootstrap, name, PARTITIONS)
    jobs = {client: [Job(client, number, broker.bootstrap, tmp_path) for number in range(2)] for client in PROGRAMS}
    every_job = [job for each in jobs.values() for job in each]
    try:
        with SteadyWriter(broker.bootstrap, SOURCE, PARTITIONS, interval_s=0.02) as writer:
            for job in every_job:
                job.keep_running()
            cause_trouble(broker, every_job, random.Random(SEED))
        for client in PROGRAMS:
            check_copied(client, broker.bootstrap, writer.end_offsets, jobs[client])
    finally:
        for job in every_job:
            job.kill()
