"""Every script under `examples/` as a user runs it: a process against a live broker, with its effect checked.

What an example wrote is read back with another client (librdkafka), so that one mistake in ours cannot hide another.
"""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from tests.clients.support import TopicMaker
from tests.clients.zookeeper import ZooKeeper
from tests.support.brokers import ROOT, Broker, KafkaBroker
from tests.support.processes import LoggedProcess

EXAMPLES = ROOT / "examples"
TIMEOUT_S = 90.0
HELPERS = frozenset({"common"})


def command(name: str, bootstrap: str, /, **options: str) -> list[str | Path]:
    line: list[str | Path] = [sys.executable, EXAMPLES / f"{name}.py", "--bootstrap-server", bootstrap]
    for option, value in options.items():
        line += [f"--{option}", value]
    return line


def environment() -> dict[str, str]:
    path = os.pathsep.join(part for part in (str(ROOT / "src"), os.environ.get("PYTHONPATH", "")) if part)
    # A client that was not closed, or any other warning, is an error in an example.
    return {**os.environ, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1", "PYTHONWARNINGS": "error"}


def run(name: str, bootstrap: str, /, **options: str) -> list[str]:
    """The lines that the example printed; it must end well and say nothing on the side."""
    ended = subprocess.run(
        command(name, bootstrap, **options),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        env=environment(),
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stdout + ended.stderr
    return ended.stdout.splitlines()


def read(bootstrap: str, topic: str, *, isolation: str = "read_uncommitted") -> list[confluent_kafka.Message]:
    """All records of a topic, partition by partition."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 50,
        }
    )
    try:
        partitions = consumer.list_topics(topic, timeout=20).topics[topic].partitions
        found: list[confluent_kafka.Message] = []
        for number in sorted(partitions):
            found += _read_partition(consumer, topic, number)
        return found
    finally:
        consumer.close()


def _read_partition(consumer: confluent_kafka.Consumer, topic: str, number: int) -> Iterator[confluent_kafka.Message]:
    consumer.assign([confluent_kafka.TopicPartition(topic, number, 0)])
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        assert time.monotonic() < deadline, f"{topic}-{number} could not be read to its end"
        message = consumer.poll(0.2)
        if message is None:
            continue
        error: Any = message.error()
        if error is None:
            yield message
        elif error.code() == confluent_kafka.KafkaError._PARTITION_EOF:
            return
        else:
            raise AssertionError(error)


def values(messages: list[confluent_kafka.Message]) -> list[str]:
    return [str((message.value() or b"").decode()) for message in messages]


def integers(messages: list[confluent_kafka.Message]) -> list[int]:
    return [int.from_bytes(message.value() or b"", "big", signed=True) for message in messages]


def committed(bootstrap: str, group: str, topic: str, partition: int = 0) -> confluent_kafka.TopicPartition:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    try:
        found: list[confluent_kafka.TopicPartition] = consumer.committed(
            [confluent_kafka.TopicPartition(topic, partition)], timeout=20
        )
        return found[0]
    finally:
        consumer.close()


def test_each_example_has_a_test_and_says_what_it_shows() -> None:
    names = {path.stem for path in EXAMPLES.glob("*.py")} - HELPERS
    tested = set(re.findall(r"def test_(\w+)\(", Path(__file__).read_text()))
    assert names <= tested
    assert names == set(re.findall(r"^\| \[(\w+)\.py\]\(\1\.py\)", (EXAMPLES / "README.md").read_text(), re.MULTILINE))
    for name in names:
        usage = subprocess.run(
            [sys.executable, EXAMPLES / f"{name}.py", "--help"],
            capture_output=True, text=True, timeout=TIMEOUT_S, env=environment(), check=True,
        ).stdout  # fmt: skip
        assert "localhost:9092" in (EXAMPLES / "common.py").read_text()
        assert "--bootstrap-server HOST:PORT" in usage
        assert len(usage) > 300, f"{name}.py says too little about itself"


def test_the_guide_links_to_every_example_and_explains_every_error() -> None:
    import penstock

    guide = (ROOT / "docs" / "clients.md").read_text()
    linked = set(re.findall(r"\(\.\./examples/(\w+)\.py\)", guide))
    assert linked == {path.stem for path in EXAMPLES.glob("*.py")} - HELPERS
    public = [name for name in dir(penstock) if not name.startswith("_")]
    values = (getattr(penstock, name) for name in public)
    errors = {each.__name__ for each in values if isinstance(each, type) and issubclass(each, penstock.KafkaError)}
    table = guide.partition("## Errors")[2].partition("\n## ")[0]
    # The kinds of AuthorizationFailed are told in short, and bases are described above the table.
    told = {name for name in errors if f"`{name}`" in guide} | {
        name for name in errors if "AuthorizationFailed" in name
    }
    assert errors - told - {"ClientError", "KafkaError"} == set()
    named = set(re.findall(r"^\| `(\w+)`", table, re.MULTILINE))
    assert named <= set(public)


@pytest.mark.parametrize("page", ["README.md", "docs/clients.md"])
@pytest.mark.parametrize("cluster_kind", ["penstock"])
def test_the_first_lines_of_a_page_work(page: str, bootstrap: str, topic: TopicMaker) -> None:
    """What a newcomer pastes first."""
    name = topic.name()
    program = re.findall(r"```python\n(from penstock import .*?)```", (ROOT / page).read_text(), re.DOTALL)[0]
    for old, new in {
        "127.0.0.1:9092": bootstrap,
        "localhost:9092": bootstrap,
        '"greetings"': repr(name),
        '"readme"': repr(name),
        '"readers"': repr(name),
    }.items():
        program = program.replace(old, new)
    # A loop for ever is left after the first record.
    program = re.sub(r"(\n +)(print\(record.*\))", r"\1\2\1break", program)
    ended = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        env=environment(),
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, ""), program + ended.stderr
    assert "b'hello'" in ended.stdout


# Producing.


def test_produce_sync(bootstrap: str, topic: TopicMaker) -> None:
    name = topic.name()
    lines = run("produce_sync", bootstrap, topic=name)
    assert lines[-1] == f"order 4 is in {name}-0 at offset 4"
    assert [(message.key(), message.value()) for message in read(bootstrap, name)] == [
        (b"customer %d" % (number % 2), b"order %d" % number) for number in range(5)
    ]


def test_produce_callback(bootstrap: str, topic: TopicMaker) -> None:
    name = topic.name()
    lines = run("produce_callback", bootstrap, topic=name)
    assert lines[0].startswith("failed: RecordTooLarge: ")
    assert lines[1:] == ["1000 written, 1 failed"]
    assert values(read(bootstrap, name)) == [f"event {number}" for number in range(1000)]


def test_custom_partitioner(bootstrap: str, topic: TopicMaker) -> None:
    name = topic.name()
    run("custom_partitioner", bootstrap, topic=name)
    by_partition: dict[Any, set[Any]] = {}
    for message in read(bootstrap, name):
        by_partition.setdefault(message.partition(), set()).add(message.key())
    assert by_partition.pop(2) == {b"crown", b"museum"}
    assert set().union(*by_partition.values()) == {b"baker", b"smith", b"miller"}


def test_interceptors(bootstrap: str, topic: TopicMaker) -> None:
    name = topic.name()
    before = time.time() * 1000
    lines = run("interceptors", bootstrap, topic=name)
    assert lines[-1] == "10 successes, 1 failures"
    messages = read(bootstrap, name)
    assert len(messages) == 10
    for message in messages:
        headers: Any = dict(message.headers() or ())
        assert headers["sensor"] == b"7"
        assert before - 1 <= int(headers["sent-at"]) <= time.time() * 1000


# How often.


def test_at_most_once(bootstrap: str, topic: TopicMaker) -> None:
    name = topic.name()
    lines = run("at_most_once", bootstrap, topic=name, group=name)
    assert lines[:2] == ["handled 0", "-- crashed; starting again --"]
    assert lines[-1] == "lost: [1, 2, 3], repeated: 0"
    assert committed(bootstrap, name, name).offset == 10


def test_at_least_once(bootstrap: str, topic: TopicMaker) -> None:
    name = topic.name()
    lines = run("at_least_once", bootstrap, topic=name, group=name)
    assert lines[:3] == ["handled 0", "-- crashed; starting again --", "handled 0"]
    assert lines[-1] == "lost: [], repeated: 1"
    assert committed(bootstrap, name, name).offset == 10


def test_exactly_once(bootstrap: str, topic: TopicMaker) -> None:
    source, target = topic.name(), topic.name()
    run("exactly_once", bootstrap, source=source, target=target, name=source)
    doubles = list(range(0, 20, 2))
    assert integers(read(bootstrap, target, isolation="read_committed")) == doubles
    assert integers(read(bootstrap, target)) == [0, *doubles], "the aborted record is in the log"
    assert committed(bootstrap, source, source).offset == 10


# Commits and offsets.


def test_commit_sync(bootstrap: str, topic: TopicMaker) -> None:
    name = topic.name()
    lines = run("commit_sync", bootstrap, topic=name, group=name)
    assert lines[0].startswith("half way, committed OffsetAndMetadata(offset=5, metadata='half way'")
    assert committed(bootstrap, name, name).offset == 10


def test_commit_async(bootstrap: str, topic: TopicMaker) -> None:
    name = topic.name()
    lines = run("commit_async", bootstrap, topic=name, group=name)
    assert lines[-1] == "in order: True, at the end 10"
    assert len(lines) > 2
    assert committed(bootstrap, name, name).offset == 10


def test_offsets_in_sqlite(bootstrap: str, topic: TopicMaker, tmp_path: Path) -> None:
    name, file = topic.name(), tmp_path / "results.db"
    run("offsets_in_sqlite", bootstrap, topic=name, group=name, file=str(file))
    database = sqlite3.connect(file)
    try:
        assert database.execute("SELECT number, value FROM results ORDER BY 1").fetchall() == [
            (number, number * 10) for number in range(10)
        ]
        assert database.execute("SELECT topic, next_offset FROM penstock_offsets").fetchall() == [(name, 10)]
    finally:
        database.close()
    assert committed(bootstrap, name, name).offset < 0, "Kafka's own offsets are not touched"


@pytest.mark.parametrize("cluster_kind", ["penstock"])
def test_offsets_in_zookeeper(bootstrap: str, topic: TopicMaker, tmp_path: Path) -> None:
    from kazoo.client import KazooClient

    name = topic.name()
    server = ZooKeeper(tmp_path / "zookeeper")
    try:
        server.start()
        lines = run("offsets_in_zookeeper", bootstrap, topic=name, group=name, zookeeper=server.hosts)
        client = KazooClient(hosts=server.hosts)
        client.start(timeout=20)
        assert client.get(f"/consumers/{name}/offsets/{name}/0")[0] == b"5"
        client.stop()
        client.close()
    finally:
        server.kill()
    assert lines == ["read ['a', 'b']", "ZooKeeper has offset 2", "after a restart ['c', 'd', 'e']"]


# Reading.


def test_read_a_day_again(bootstrap: str, topic: TopicMaker) -> None:
    name = topic.name()
    expected = [f"15 Jan {hour:02}:00" for hour in range(0, 24, 6)]
    assert run("read_a_day_again", bootstrap, topic=name) == expected
    assert run("read_a_day_again", bootstrap, topic=name, day="2024-01-17") == []
    assert len(read(bootstrap, name)) == 12


def produce(bootstrap: str, topic: str, texts: list[str]) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    for text in texts:
        producer.produce(topic, text, partition=0)
    assert producer.flush(30) == 0


class Reader:
    """`low_level_reader.py`, which runs while the test does something to its broker."""

    def __init__(self, bootstrap: str, topic: str, directory: Path, count: int) -> None:
        line = command("low_level_reader", bootstrap, topic=topic, count=str(count))
        self.process = LoggedProcess(line, directory / "reader.log", env=environment())

    def wait_for(self, text: str) -> None:
        self.process.wait_until(lambda: text in self.process.output(), TIMEOUT_S, f"waiting for {text!r}")

    def lines(self) -> list[str]:
        assert self.process.process.wait(TIMEOUT_S) == 0, self.process.output()
        return self.process.output().splitlines()


@pytest.mark.parametrize("cluster_kind", ["penstock"])
def test_low_level_reader(restartable: Broker, tmp_path: Path) -> None:
    """The leader is killed and comes back."""
    produce(restartable.bootstrap, "low", [f"before {number}" for number in range(5)])
    reader = Reader(restartable.bootstrap, "low", tmp_path, 10)
    try:
        reader.wait_for("4: before 4")
        restartable.kill()
        restartable.start()
        produce(restartable.bootstrap, "low", [f"after {number}" for number in range(5)])
        lines = reader.lines()
    finally:
        reader.process.kill()
    texts = [f"before {number}" for number in range(5)] + [f"after {number}" for number in range(5)]
    assert [line for line in lines if line[0].isdigit()] == [f"{offset}: {text}" for offset, text in enumerate(texts)]
    assert lines[0] == "broker 1 leads low-0 in epoch 0"
    assert lines[-1] == "position 10, lag 0"


# Groups and workers.


def test_own_assignor(bootstrap: str, topic: TopicMaker) -> None:
    name = topic.name()
    lines = run("own_assignor", bootstrap, topic=name, group=name)
    assert lines == ["big reads [1, 2, 3, 4, 5]", "small reads [0]"]


def test_point_to_point(bootstrap: str, topic: TopicMaker) -> None:
    name = topic.name()
    lines = run("point_to_point", bootstrap, topic=name, group=name)
    found = re.fullmatch(r"first read (\d+), second read (\d+), together 100 of 100", lines[0])
    assert found is not None, lines
    assert min(int(each) for each in found.groups()) > 0, "both members had a share"
    assert sum(committed(bootstrap, name, name, number).offset for number in range(4)) == 100


def test_publish_subscribe(bootstrap: str, topic: TopicMaker) -> None:
    name = topic.name()
    lines = run("publish_subscribe", bootstrap, topic=name, prefix=name)
    news = "['rain tomorrow', 'bridge reopened', 'team wins']"
    assert lines == [f"{name}-{number} received {news}" for number in range(3)]
    assert [committed(bootstrap, f"{name}-{number}", name).offset for number in range(3)] == [3, 3, 3]


def test_worker_pool(bootstrap: str, topic: TopicMaker) -> None:
    name = topic.name()
    lines = run("worker_pool", bootstrap, topic=name, group=name)
    found = re.match(r"handled 60 records in (\d+) threads", lines[0])
    assert found is not None, lines
    assert int(found[1]) > 2, "more threads than partitions"
    assert lines[1:] == ["each key in order: True; one failure repeated: True", "committed 60"]
    assert sum(committed(bootstrap, name, name, number).offset for number in range(2)) == 60


def test_message_streams(bootstrap: str, topic: TopicMaker) -> None:
    name = topic.name()
    lines = run("message_streams", bootstrap, topic=name, group=name)
    assert lines == [f"stream {number}: 50 records of partitions [{number}]" for number in range(4)]
    # The last record of each stream may count as unfinished: nothing was taken after it.
    assert all(committed(bootstrap, name, name, number).offset in (49, 50) for number in range(4))


# Arrow, asyncio, administration.


def test_arrow_in_and_out(bootstrap: str, topic: TopicMaker) -> None:
    name = topic.name()
    lines = run("arrow_in_and_out", bootstrap, topic=name)
    assert re.fullmatch(r"wrote 100000 rows in \d+ batches", lines[0])
    assert lines[1].startswith("read 100000 rows with the columns ['topic', 'partition', 'offset', ")
    assert lines[1].endswith(f"; the sum is {sum(range(100_000))}")


def test_asyncio_clients(bootstrap: str, topic: TopicMaker) -> None:
    name = topic.name()
    lines = run("asyncio_clients", bootstrap, topic=name, group=name)
    assert [line for line in lines if line.startswith("read")] == [f"read {{'number': {each}}}" for each in range(5)]
    assert values(read(bootstrap, name)) == [f'{{"number":{each}}}' for each in range(5)]
    assert committed(bootstrap, name, name).offset == 5


def test_administration(bootstrap: str, topic: TopicMaker) -> None:
    name = topic.name()
    lines = run("administration", bootstrap, topic=name, group=name)
    assert lines[0] == "1 broker(s), controller 1"
    assert lines[1] == f"created {name} with 3 partitions"
    assert lines[2].startswith("again: ")
    assert lines[3] == "retention.ms is 3600000"
    assert "offset=5" in lines[4]
    assert lines[5:] == ["end offset 0; listed: True", "deleted: True"]


# What a person may do wrong.


@contextmanager
def heeded(number: signal.Signals) -> Iterator[None]:
    """Children heed the signal, even if whoever started the tests in the background had it ignored."""
    before = signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(number, before)


@pytest.mark.parametrize("cluster_kind", ["penstock"])
def test_ctrl_c_ends_a_reader(bootstrap: str, topic: TopicMaker, tmp_path: Path) -> None:
    name = topic()
    produce(bootstrap, name, ["one"])
    with heeded(signal.SIGINT):
        reader = Reader(bootstrap, name, tmp_path, 5)
    try:
        reader.wait_for("0: one")
        reader.process.process.send_signal(signal.SIGINT)
        assert reader.process.process.wait(TIMEOUT_S) in (-signal.SIGINT, 130, 1)
    finally:
        reader.process.kill()
    # Behind it may stand a warning: the interrupt came between making a coroutine and handing it over.
    assert "KeyboardInterrupt" in reader.process.output().splitlines()[-3:]


# A real move of a leader takes two brokers.


class SecondKafka(KafkaBroker):
    """Another broker of the cluster whose controller is the first one."""

    def __init__(self, directory: Path, first: KafkaBroker) -> None:
        super().__init__(
            directory,
            {
                "node.id": "2",
                "process.roles": "broker",
                "controller.quorum.voters": f"1@127.0.0.1:{first.controller_port}",
            },
        )
        self.overrides["listeners"] = f"PLAINTEXT://{self.bootstrap}"


def test_low_level_reader_finds_another_broker(tmp_path: Path) -> None:
    import penstock

    first = KafkaBroker(tmp_path / "first")
    second = SecondKafka(tmp_path / "second", first)
    reader: Reader | None = None
    try:
        first.start()
        second.start()
        with penstock.Admin(bootstrap_servers=first.bootstrap) as admin:
            deadline = time.monotonic() + TIMEOUT_S
            while len(admin.describe_cluster().nodes) < 2:
                assert time.monotonic() < deadline
                time.sleep(0.1)
            admin.create_topics([penstock.NewTopic(name="moves", assignments={0: [2, 1]})])
            produce(first.bootstrap, "moves", ["before"])
            reader = Reader(first.bootstrap, "moves", tmp_path, 2)
            reader.wait_for("0: before")
            # The leader goes away for good; the other replica takes over.
            second.stop()
            produce(first.bootstrap, "moves", ["after"])
            lines = reader.lines()
    finally:
        if reader is not None:
            reader.process.kill()
        second.kill()
        first.kill()
    assert lines[0] == "broker 2 leads moves-0 in epoch 0"
    assert re.fullmatch(r"broker 1 leads moves-0 in epoch [1-9]\d*", lines[2])
    assert [lines[1], lines[3]] == ["0: before", "1: after"]
