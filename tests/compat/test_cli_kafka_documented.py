"""The command lines of Kafka 4.3's quick start and operations pages, typed as they stand.

Our tools type them at Penstock, Kafka's own at Apache Kafka, one after the other; what is printed is the same. Only the
ports and, where a page has several brokers, the ids of the brokers differ from the pages. Each scenario ends with what
the lines have done, so that equal silence is not taken for success. Quotas, SCRAM and share groups are no part of this.
"""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import penstock
from tests.compat.kafka_tools import ENVIRONMENT, Done, java, ours
from tests.support.brokers import Broker, KafkaBroker, PenstockBroker

Side = Callable[..., Done]
DEPRECATED = "Option --"
"""How Kafka complains of older names, between the records; ours does not."""


@dataclass(frozen=True, slots=True)
class Both:
    """The two brokers, and a line typed at both."""

    penstock: Broker
    kafka: Broker
    directory: Path

    def type(self, line: str, stdin: str = "") -> Done:
        """Types the line at both and compares; gives what ours has printed."""
        mine = self.typed(ours, self.penstock, line, stdin)
        theirs = self.typed(java, self.kafka, line, stdin)
        assert (mine.kafkas_code, normal(mine.out)) == (theirs.code, normal(theirs.out)), f"{line}\n{mine}\n{theirs}"
        return mine

    def typed(self, side: Side, broker: Broker, line: str, stdin: str = "") -> Done:
        tool, arguments = self.words(broker, line)
        return side(tool, *arguments, stdin=stdin)

    def words(self, broker: Broker, line: str) -> tuple[str, list[str]]:
        command, *arguments = shlex.split(line.replace("localhost:9092", broker.bootstrap))
        # Kafka's tools run inside a process that has a directory of its own.
        arguments = [str(self.directory / each) if each.endswith(".json") else each for each in arguments]
        return command.removeprefix("bin/kafka-").removesuffix(".sh").replace("-", "_"), arguments

    def file(self, name: str, text: str) -> None:
        (self.directory / name).write_text(text)

    def consume(self, line: str, count: int) -> list[str]:
        """Types a line that never ends, reads so many lines and presses Ctrl-C; Kafka's is told to end by itself."""
        tool, arguments = self.words(self.penstock, line)
        process = subprocess.Popen(
            [sys.executable, "-m", f"penstock.cli.kafka.{tool}", *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT,
        )  # fmt: skip
        try:
            assert process.stdout is not None
            shown = [process.stdout.readline() for _ in range(count)]
            process.send_signal(signal.SIGINT)
            rest, err = process.communicate(timeout=90)
        finally:
            process.kill()
        assert (rest, err) == ("", f"Processed a total of {count} messages\n")
        theirs = self.typed(java, self.kafka, f"{line} --max-messages {count}")
        expected = [line for line in theirs.out.splitlines(keepends=True) if not line.startswith(DEPRECATED)]
        assert shown == expected
        return shown


def normal(text: str) -> str:
    """What must differ between two clusters: ids, paths and ports."""
    text = re.sub(r"TopicId: \S+", "TopicId: ID", text)
    text = re.sub(r"127\.0\.0\.1:\d+", "HOST:PORT", text)
    text = re.sub(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "-UUID", text)
    # Both say where a replica lies, and what each broker of a cluster of many would have to say.
    text = re.sub(r'"log_dirs":\["[^"]*"\]', '"log_dirs":["DIR"]', text)
    # The order of a hash table.
    text = re.sub(r"console-consumer-\d+", "console-consumer-N", text)
    return "\n".join(sorted(line.rstrip() for line in text.splitlines() if not line.startswith(DEPRECATED)))


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    root = tmp_path_factory.mktemp("documented")
    brokers = PenstockBroker(root / "penstock"), KafkaBroker(root / "kafka")
    # Eligible leader replicas, which mean nothing in a cluster of one, bring a setting of their own into every list.
    brokers[1].format_arguments = ["--feature", "eligible.leader.replicas.version=0"]
    try:
        for each in brokers:
            each.start()
        yield Both(*brokers, root)
    finally:
        for each in brokers:
            each.kill()


def test_quick_start(both: Both) -> None:
    created = both.type("bin/kafka-topics.sh --create --topic quickstart-events --bootstrap-server localhost:9092")
    assert created.out == "Created topic quickstart-events.\n"
    described = both.type("bin/kafka-topics.sh --describe --topic quickstart-events --bootstrap-server localhost:9092")
    assert "PartitionCount: 1" in described.out
    events = "This is my first event\nThis is my second event\n"
    write = "bin/kafka-console-producer.sh --topic quickstart-events --bootstrap-server localhost:9092"
    assert both.typed(ours, both.penstock, write, events) == Done(0, "", "")
    both.typed(java, both.kafka, write, events)
    read = "bin/kafka-console-consumer.sh --topic quickstart-events --from-beginning --bootstrap-server localhost:9092"
    assert both.consume(read, 2) == events.splitlines(keepends=True)
    for side, broker in ((ours, both.penstock), (java, both.kafka)):
        line = "bin/kafka-console-producer.sh --bootstrap-server localhost:9092 --topic connect-test"
        both.typed(side, broker, line, '{"schema":{"type":"string","optional":false},"payload":"foo"}\n')
    both.consume("bin/kafka-console-consumer.sh --bootstrap-server localhost:9092 --topic connect-test "
                 "--from-beginning", 1)  # fmt: skip


def test_quick_start_of_streams(both: Both) -> None:
    create = "bin/kafka-topics.sh --create --bootstrap-server localhost:9092 --replication-factor 1 --partitions 1"
    both.type(f"{create} --topic streams-plaintext-input")
    both.type(f"{create} --topic streams-wordcount-output --config cleanup.policy=compact")
    shown = both.typed(ours, both.penstock, "bin/kafka-topics.sh --bootstrap-server localhost:9092 --describe")
    assert "Topic: streams-wordcount-output" in shown.out
    for broker in (both.penstock, both.kafka):
        with penstock.Producer(bootstrap_servers=broker.bootstrap) as producer:
            for word, count in ((b"all", 1), (b"streams", 2), (b"all", 3)):
                producer.send("streams-wordcount-output", count.to_bytes(8, "big"), word).result(30)
    counted = both.consume(
        "bin/kafka-console-consumer.sh --bootstrap-server localhost:9092 --topic streams-wordcount-output "
        "--from-beginning --property print.key=true --property print.value=true "
        "--property key.deserializer=org.apache.kafka.common.serialization.StringDeserializer "
        "--property value.deserializer=org.apache.kafka.common.serialization.LongDeserializer",
        3,
    )
    assert counted == ["all\t1\n", "streams\t2\n", "all\t3\n"]


def test_topics_and_their_configurations(both: Both) -> None:
    topics = "bin/kafka-topics.sh --bootstrap-server localhost:9092"
    refused = both.type(f"{topics} --create --topic my_topic_name --partitions 20 --replication-factor 3 --config x=y")
    assert refused.code == 1
    create = "--create --topic my_topic_name --partitions 20 --replication-factor 1 --config retention.ms=7200000"
    assert both.type(f"{topics} {create}").code == 0
    assert both.type(f"{topics} --alter --topic my_topic_name --partitions 40") == Done(0, "", "")
    configs = "bin/kafka-configs.sh --bootstrap-server localhost:9092 --entity-type topics --entity-name my_topic_name"
    assert both.type(f"{configs} --alter --add-config x=y").code == 1
    assert both.type(f"{configs} --alter --add-config max.message.bytes=65536").code == 0
    assert "max.message.bytes=65536" in both.type(f"{configs} --describe").out
    assert both.type(f"{configs} --alter --delete-config max.message.bytes").code == 0
    described = both.type(f"{topics} --describe --topic my_topic_name").out
    assert "PartitionCount: 40" in described
    assert "Configs: retention.ms=7200000" in described
    assert both.type(f"{topics} --delete --topic my_topic_name") == Done(0, "", "")
    assert "my_topic_name" not in both.typed(ours, both.penstock, f"{topics} --list").out


def test_leaders(both: Both) -> None:
    both.type(
        "bin/kafka-leader-election.sh --bootstrap-server localhost:9092 --election-type preferred "
        "--all-topic-partitions"
    )


def test_groups(both: Both) -> None:
    groups = "bin/kafka-consumer-groups.sh --bootstrap-server localhost:9092"
    for topic in ("my-topic", "topic1"):
        both.type(f"bin/kafka-topics.sh --bootstrap-server localhost:9092 --create --topic {topic} --partitions 3")
    for broker in (both.penstock, both.kafka):
        write(broker, "my-topic")
    members = [member(broker, "my-group", ["my-topic"]) for broker in (both.penstock, both.kafka)]
    try:
        shown = both.type(f"{groups} --describe --group my-group").out
        assert shown.count("my-topic") == 3
        assert "my-group" in both.type(f"{groups} --list").out.split()
        assert "my-topic:0,1,2" in both.type(f"{groups} --describe --group my-group --members --verbose").out
        both.type(f"{groups} --describe --group my-group --members")
        assert "Stable" in both.type(f"{groups} --describe --group my-group --state").out
    finally:
        for each in members:
            each.close()
    for broker in (both.penstock, both.kafka):
        member(broker, "my-other-group", ["topic1"]).close()
    reset = both.type(f"{groups} --reset-offsets --group my-group --topic my-topic --to-latest")
    assert reset.out.split()[4:] == [word for part in "012" for word in ("my-group", "my-topic", part, "1")]
    deleted = both.type(f"{groups} --delete --group my-group --group my-other-group")
    assert deleted.out == "Deletion of requested consumer groups ('my-group', 'my-other-group') was successful.\n"


def write(broker: Broker, topic: str) -> None:
    with penstock.Producer(bootstrap_servers=broker.bootstrap) as producer:
        for partition in range(3):
            producer.send(topic, b"1", partition=partition).result(30)


def member(broker: Broker, group: str, topics: list[str]) -> penstock.Consumer:
    """A member that has its partitions and has committed what it read."""
    consumer = penstock.Consumer(
        bootstrap_servers=broker.bootstrap, group_id=group, client_id="consumer1", auto_offset_reset="earliest"
    )
    consumer.subscribe(topics)
    read = 0
    while not consumer.assignment() or (topics == ["my-topic"] and read < 3):
        read += len(consumer.poll(100))
    for partition in consumer.assignment():
        consumer.position(partition)
    consumer.commit()
    return consumer


MOVE = '{"version":1,"partitions":[{"topic":"foo1","partition":0,"replicas":[1]},' \
       '{"topic":"foo2","partition":1,"replicas":[1]}]}'  # fmt: skip


def test_moves(both: Both) -> None:
    move = "bin/kafka-reassign-partitions.sh --bootstrap-server localhost:9092"
    for topic in ("foo1", "foo2"):
        both.type(f"bin/kafka-topics.sh --bootstrap-server localhost:9092 --create --topic {topic} --partitions 2")
    both.file("topics-to-move.json", '{"topics": [{ "topic": "foo1" }, { "topic": "foo2" }], "version": 1}')
    proposed = both.type(f'{move} --topics-to-move-json-file topics-to-move.json --broker-list "1" --generate')
    assert "Proposed partition reassignment configuration" in proposed.out
    for name in ("expand-cluster-reassignment.json", "custom-reassignment.json"):
        both.file(name, MOVE)
        done = both.type(f"{move} --reassignment-json-file {name} --execute")
        assert done.out.endswith("Successfully started partition reassignments for foo1-0,foo2-1\n")
        assert "completed" in both.type(f"{move} --reassignment-json-file {name} --verify").out
    # One broker cannot hold three replicas, and says so.
    both.file("increase-replication-factor.json", MOVE.replace('"replicas":[1]', '"replicas":[1,6,7]'))
    for side, broker in ((ours, both.penstock), (java, both.kafka)):
        refused = both.typed(
            side, broker, f"{move} --reassignment-json-file increase-replication-factor.json --execute"
        )
        assert refused.code == 1
        assert "Unknown broker id" in refused.out + refused.err


def test_throttles(both: Both) -> None:
    move = "bin/kafka-reassign-partitions.sh --bootstrap-server localhost:9092"
    both.type("bin/kafka-topics.sh --bootstrap-server localhost:9092 --create --topic throttled --partitions 2")
    both.file("bigger-cluster.json", MOVE.replace("foo1", "throttled").replace("foo2", "throttled"))
    line = f"{move} --execute --reassignment-json-file bigger-cluster.json"
    begun = both.type(f"{line} --throttle 50000000 --replica-alter-log-dirs-throttle 100000000").out
    assert "The inter-broker throttle limit was set to 50000000 B/s" in begun
    assert "The replica-alter-dir throttle limit was set to 100000000 B/s" in begun
    again = f"{move} --additional --execute --reassignment-json-file bigger-cluster.json --throttle 700000000"
    assert "The inter-broker throttle limit was set to 700000000 B/s" in both.type(again).out
    brokers = both.type("bin/kafka-configs.sh --describe --bootstrap-server localhost:9092 --entity-type brokers").out
    assert "leader.replication.throttled.rate=700000000" in brokers
    topics = both.typed(
        ours, both.penstock, "bin/kafka-configs.sh --describe --bootstrap-server localhost:9092 --entity-type topics"
    )
    assert "leader.replication.throttled.replicas=" in topics.out
    verified = both.type(f"{move} --verify --reassignment-json-file bigger-cluster.json").out
    assert "Clearing broker-level throttles on broker 1" in verified
    assert "Clearing topic-level throttles on topic throttled" in verified
    brokers = both.type("bin/kafka-configs.sh --describe --bootstrap-server localhost:9092 --entity-type brokers").out
    assert "throttled.rate" not in brokers


def test_decommissioning(both: Both) -> None:
    configs = "bin/kafka-configs.sh --bootstrap-server localhost:9092 --alter"
    one = "--entity-type brokers --entity-name 1"
    cordoned = both.type(f'{configs} --add-config cordoned.log.dirs="*" {one}')
    assert cordoned.out == "Completed updating config for broker 1.\n"
    both.type(f"{configs} --delete-config cordoned.log.dirs {one}")
    # There is no controller to ask apart from the broker; the sentence says whom to ask.
    line = f"bin/kafka-configs.sh --bootstrap-controller localhost:9093 --alter --delete-config cordoned.log.dirs {one}"
    refused = both.typed(ours, both.penstock, line)
    assert (refused.code, refused.out) == (2, "")
    assert "--bootstrap-server" in refused.err


def test_tiered_storage(both: Both) -> None:
    """There is none in either of these brokers; the lines that work without it do."""
    create = "bin/kafka-topics.sh --create --topic tieredTopic --bootstrap-server localhost:9092"
    tiered = "--config remote.storage.enable=true --config local.retention.ms=1000"
    plain = "--config retention.ms=3600000 --config segment.bytes=1048576 --config file.delete.delay.ms=1000"
    assert both.type(f"{create} {tiered} {plain}").code == 1
    assert both.type(f"{create} {plain}").code == 0
    for side, broker in ((ours, both.penstock), (java, both.kafka)):
        written = both.typed(
            side, broker,
            "bin/kafka-producer-perf-test.sh --topic tieredTopic --num-records 1200 --record-size 1024 "
            "--throughput -1 --producer-props bootstrap.servers=localhost:9092",
        )  # fmt: skip
        assert "1200 records sent" in written.out
        read = both.typed(
            side, broker,
            "bin/kafka-console-consumer.sh --topic tieredTopic --from-beginning --max-messages 1 "
            "--bootstrap-server localhost:9092 --property print.offset=true",
        )  # fmt: skip
        assert "Offset:0\t" in read.out
    assert both.type("bin/kafka-topics.sh --delete --topic tieredTopic --bootstrap-server localhost:9092").code == 0
