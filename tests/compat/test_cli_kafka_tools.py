"""Our tools under Kafka's names beside Kafka's own: the same arguments, the same output, on both brokers."""

from __future__ import annotations

import itertools
import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.compat.hanging import write_hanging
from tests.compat.kafka_tools import ROOT, Done, java, ours
from tests.support.brokers import Broker, KafkaBroker, PenstockBroker

KINDS: dict[str, type[Broker]] = {"penstock": PenstockBroker, "kafka": KafkaBroker}
_numbers = itertools.count()


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Broker]]:
    running: dict[str, Broker] = {}

    def get(kind: str) -> Broker:
        if kind not in running:
            running[kind] = KINDS[kind](tmp_path_factory.mktemp(kind))
            running[kind].start()
        return running[kind]

    yield get
    for each in running.values():
        each.kill()


@pytest.fixture(params=list(KINDS))
def cluster(request: pytest.FixtureRequest, brokers: Callable[[str], Broker]) -> Broker:
    return brokers(request.param)


@pytest.fixture
def kafka(brokers: Callable[[str], Broker]) -> Broker:
    """Apache Kafka, for what the Penstock broker does not serve."""
    return brokers("kafka")


@pytest.fixture
def name() -> str:
    return f"tool-{next(_numbers)}"


def at(broker: Broker) -> tuple[str, str]:
    return "--bootstrap-server", broker.bootstrap


def produced(broker: Broker, topic: str, text: str, *options: str) -> None:
    done = ours("console_producer", *at(broker), "--topic", topic, *options, stdin=text)
    assert done == Done(0, "", "")


def both(tool: str, *arguments: str) -> tuple[Done, Done]:
    return ours(tool, *arguments), java(tool, *arguments)


def same(tool: str, *arguments: str) -> Done:
    """Both say the same on standard output, and end with the same code."""
    mine, theirs = both(tool, *arguments)
    assert (mine.kafkas_code, without_epoch(mine.out)) == (theirs.code, without_epoch(theirs.out)), (mine, theirs)
    return mine


def without_epoch(text: str) -> str:
    """The epoch of Kafka's features is an offset of its metadata log, which grows while nobody does anything."""
    return re.sub(r"(?<=Epoch: )\d+", "N", text)


def test_topics(cluster: Broker, name: str) -> None:
    create = ("--create", "--topic", name, "--partitions", "2", "--config", "retention.ms=100000")
    assert ours("topics", *at(cluster), *create) == Done(0, f"Created topic {name}.\n", "")
    again = same("topics", *at(cluster), "--create", "--topic", name)
    assert "already exists" in again.out
    assert same("topics", *at(cluster), "--create", "--topic", name, "--if-not-exists").out == ""
    described = same("topics", *at(cluster), "--describe", "--topic", name)
    assert described.out.count("\n") == 3
    same("topics", *at(cluster), "--describe", "--topic", f"{name}|nosuch", "--topics-with-overrides")
    assert same("topics", *at(cluster), "--describe", "--topic", name, "--under-replicated-partitions").out == ""
    assert name in same("topics", *at(cluster), "--list").out.split()
    same("topics", *at(cluster), "--create", "--topic", "not a name")
    for action in ("--describe", "--delete"):
        assert same("topics", *at(cluster), action, "--topic", "nosuch").code == 1
        assert same("topics", *at(cluster), action, "--topic", "nosuch", "--if-exists").code == 0
    assert ours("topics", *at(cluster), "--delete", "--topic", name) == Done(0, "", "")
    assert name not in ours("topics", *at(cluster), "--list").out.split()


def test_topics_grow(cluster: Broker, name: str) -> None:
    ours("topics", *at(cluster), "--create", "--topic", name)
    assert ours("topics", *at(cluster), "--alter", "--topic", name, "--partitions", "3") == Done(0, "", "")
    assert "PartitionCount: 3" in same("topics", *at(cluster), "--describe", "--topic", name).out
    assert (
        "would not be an increase" in same("topics", *at(cluster), "--alter", "--topic", name, "--partitions", "1").out
    )


@pytest.mark.parametrize(
    "line",
    ["--list", "{at}", "{at} --list --create", "{at} --create", "{at} --alter --topic t", "{at} --lis", "{at} --topic"],
)
def test_usage_errors_have_kafkas_words(kafka: Broker, line: str) -> None:
    mine, theirs = both("topics", *line.format(at=" ".join(at(kafka))).split())
    assert (mine.code, mine.out, theirs.code) == (2, "", 1)
    first = theirs.err.splitlines()[0]
    assert mine.err.splitlines()[0].startswith(first)


def test_console(cluster: Broker, name: str) -> None:
    ours("topics", *at(cluster), "--create", "--topic", name)
    reading = ["--reader-property", "parse.key=true", "--property", "parse.headers=true"]
    produced(cluster, name, "h1:a,h2:b\tk1\tv1\nh1:c\tk2\tv2\n", *reading)
    produced(cluster, name, "alone\nüml\n", "--sync", "--compression-codec", "zstd")
    shown = [f"print.{each}=true" for each in ("timestamp", "partition", "offset", "delivery", "headers", "key")]
    options = [part for each in shown for part in ("--formatter-property", each)]
    place = ["--topic", name, "--partition", "0", "--offset", "earliest", "--max-messages", "4"]
    mine, theirs = both("console_consumer", *at(cluster), *place, *options)
    assert mine.out == theirs.out
    assert mine.out.count("\n") == 4
    assert mine.err == "Processed a total of 4 messages\n"
    whole = ("--topic", name, "--from-beginning", "--timeout-ms", "3000", "--max-messages", "-1")
    assert same("console_consumer", *at(cluster), *whole).out == "v1\nv2\nalone\nüml\n"
    bad = ours("console_producer", *at(cluster), "--topic", name, *reading[:2], stdin="a\tb\nc\n")
    assert (bad.code, bad.err) == (1, "No key separator found on line number 2: 'c'\n")
    assert ours("get_offsets", *at(cluster), "--topic", name).out == f"{name}:0:5\n"


def test_console_consumer_reads_as_a_group(cluster: Broker, name: str, tmp_path: Path) -> None:
    ours("topics", *at(cluster), "--create", "--topic", name)
    produced(cluster, name, "1\n2\n3\n")
    settings = tmp_path / "consumer.properties"
    settings.write_text(f"group.id={name}-group\nauto.offset.reset=earliest\n")
    line = ["--topic", name, "--consumer.config", str(settings), "--max-messages"]
    assert ours("console_consumer", *at(cluster), *line, "2").out == "1\n2\n"
    assert ours("console_consumer", *at(cluster), *line, "1").out == "3\n"
    other = ours("console_consumer", *at(cluster), *line, "1", "--group", "another")
    assert other.code == 1
    assert "do not match" in other.err


def test_internal_topics_are_shown_as_json(cluster: Broker, name: str) -> None:
    ours("topics", *at(cluster), "--create", "--topic", name)
    produced(cluster, name, "1\n")
    read = ("--topic", name, "--group", name, "--from-beginning", "--max-messages", "1")
    assert ours("console_consumer", *at(cluster), *read).out == "1\n"
    import penstock

    with penstock.Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": name}) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(name, b"2").result()
        producer.commit_transaction()
    ours("consumer_groups", *at(cluster), "--delete-offsets", "--group", name, "--topic", name)
    for topic, formatter, older in (
        ("__consumer_offsets", "OffsetsMessageFormatter", "kafka.coordinator.group.GroupMetadataManager$"),
        ("__consumer_offsets", "GroupMetadataMessageFormatter", "kafka.coordinator.group.GroupMetadataManager$"),
        ("__transaction_state", "TransactionLogMessageFormatter", "kafka.coordinator.transaction.TransactionLog$"),
    ):
        line = (*at(cluster), "--topic", topic, "--from-beginning", "--timeout-ms", "4000", "--formatter")
        mine, theirs = both("console_consumer", *line, f"org.apache.kafka.tools.consumer.{formatter}")
        # Kafka forgets the ends of the lines.
        expected = documents(theirs.out, name)
        assert (mine.code, documents(mine.out.replace("\n", ""), name)) == (theirs.code, expected)
        assert len(expected) > 1
        assert all(json.loads(each) for each in mine.out.splitlines())
        assert documents(ours("console_consumer", *line, older + formatter).out.replace("\n", ""), name) == expected
        other = ours("console_consumer", *at(cluster), *read[:2], *line[4:], formatter)
        assert (other.code, other.out) == (0, "")


def documents(text: str, name: str) -> list[str]:
    """The JSON documents that tell of `name`, one behind the other; those of several partitions come in any order."""
    found = [f'{{"key"{each}' for each in text.split('{"key"')[1:]]
    return sorted(each for each in found if f'"{name}"' in each)


@pytest.fixture(scope="module")
def careful(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker that creates no topics by itself."""
    broker = PenstockBroker(tmp_path_factory.mktemp("careful"), {"auto.create.topics.enable": "false"})
    broker.start()
    yield broker
    broker.kill()


def test_a_topic_that_does_not_exist_is_told(careful: Broker, name: str) -> None:
    told = f"warning: topic {name} does not exist; waiting for it. Create it (kafka-topics --create --topic {name})"
    for more in ((), ("--partition", "0")):
        read = ours("console_consumer", *at(careful), "--topic", name, *more, "--timeout-ms", "500")
        assert (read.code, read.out, read.err.count("\n")) == (0, "", 2)
        assert read.err.startswith(told)
    measured = ours("consumer_perf_test", *at(careful), "--topic", name, "--num-records", "1", "--timeout", "500")
    assert measured.err.startswith(told)
    written = ours("console_producer", *at(careful), "--topic", name, "--max-block-ms", "4000", stdin="1\n")
    assert (written.code, written.err.count("\n")) == (1, 2)
    assert written.err.startswith(told)
    load = ("--num-records", "1", "--record-size", "1", "--throughput", "-1", "--command-property", "max.block.ms=4000")
    written = ours("producer_perf_test", *at(careful), "--topic", name, *load)
    assert written.code == 1
    assert written.err.startswith(told)


def test_a_topic_that_comes_later_is_read(careful: Broker, name: str) -> None:
    line = [*at(careful), "--topic", name, "--from-beginning", "--max-messages", "1"]
    consumer = subprocess.Popen(
        [sys.executable, "-m", "penstock.cli.kafka.console_consumer", *line],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={"PYTHONPATH": str(ROOT / "src")},
    )  # fmt: skip
    try:
        assert consumer.stderr is not None
        assert f"topic {name} does not exist" in consumer.stderr.readline()
        ours("topics", *at(careful), "--create", "--topic", name)
        produced(careful, name, "1\n")
        assert consumer.communicate(timeout=60)[0] == "1\n"
    finally:
        consumer.kill()


def test_a_partition_that_does_not_exist_is_refused(cluster: Broker, name: str) -> None:
    ours("topics", *at(cluster), "--create", "--topic", name, "--partitions", "2")
    read = ours("console_consumer", *at(cluster), "--topic", name, "--partition", "9")
    assert (read.code, read.out) == (1, "")
    assert f"Partition {name}-9 does not exist: the topic has 2 partition(s), from 0 to 1\n" in read.err


def test_misspelt_properties_of_lines_are_told(cluster: Broker, name: str) -> None:
    ours("topics", *at(cluster), "--create", "--topic", name)
    written = ours("console_producer", *at(cluster), "--topic", name, "--property", "parse.kye=true", stdin="k\tv\n")
    assert (written.code, written.err) == (
        0, "warning: parse.kye is no property of the reader and has no effect; did you mean parse.key?\n",
    )  # fmt: skip
    line = ("--topic", name, "--from-beginning", "--max-messages", "1", "--formatter-property", "print.ofset=true")
    read = ours("console_consumer", *at(cluster), *line)
    assert (read.code, read.out) == (0, "k\tv\n")
    assert read.err.splitlines()[0] == (
        "warning: print.ofset is no property of the formatter and has no effect; did you mean print.offset?"
    )


@pytest.mark.parametrize("option", ["--include", "--whitelist"])
def test_console_consumer_reads_what_a_pattern_includes(cluster: Broker, name: str, option: str) -> None:
    for topic in (f"{name}-a", f"{name}-b", f"other-{name}"):
        ours("topics", *at(cluster), "--create", "--topic", topic)
        produced(cluster, topic, f"of {topic}\n")
    line = (option, f"{name}-[ab]", "--from-beginning", "--max-messages", "2")
    assert sorted(ours("console_consumer", *at(cluster), *line).out.splitlines()) == [f"of {name}-a", f"of {name}-b"]
    bad = ours("console_consumer", *at(cluster), option, "[a-", "--max-messages", "1")
    assert (bad.code, bad.out) == (2, "")
    assert "[a- is no regular expression" in bad.err


def test_ctrl_c_leaves_the_console_consumer(cluster: Broker, name: str) -> None:
    ours("topics", *at(cluster), "--create", "--topic", name)
    produced(cluster, name, "1\n")
    command = [sys.executable, "-m", "penstock.cli.kafka.console_consumer", *at(cluster), "--topic", name]
    consumer = subprocess.Popen(
        [*command, "--from-beginning"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={"PYTHONPATH": str(ROOT / "src")},
    )  # fmt: skip
    assert consumer.stdout is not None
    assert consumer.stdout.readline() == "1\n"
    consumer.send_signal(signal.SIGINT)
    _, err = consumer.communicate(timeout=60)
    assert (consumer.returncode, err) == (130, "Processed a total of 1 messages\n")


def test_a_reader_that_goes_away_is_no_failure(cluster: Broker, name: str) -> None:
    ours("topics", *at(cluster), "--create", "--topic", name)
    produced(cluster, name, "".join(f"{number:0200d}\n" for number in range(2000)))
    command = f"{sys.executable} -m penstock.cli.kafka.console_consumer --bootstrap-server {cluster.bootstrap}"
    line = f"{command} --topic {name} --from-beginning --timeout-ms 5000 | head -n 1"
    done = subprocess.run(
        line,
        shell=True,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={"PYTHONPATH": str(ROOT / "src")},
    )
    assert done.stdout == f"{0:0200d}\n"
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr


def test_groups(cluster: Broker, name: str, tmp_path: Path) -> None:
    ours("topics", *at(cluster), "--create", "--topic", name, "--partitions", "2")
    produced(cluster, name, "1\n2\n3\n")
    group = ("--group", f"{name}-g")
    ours("console_consumer", *at(cluster), "--topic", name, *group, "--from-beginning", "--max-messages", "3")
    for options in ((), ("--state", "--type"), ("--state", "empty")):
        mine, theirs = both("consumer_groups", *at(cluster), "--list", *options)
        # Kafka's come in the order of a hash table; ours are sorted.
        assert sorted(mine.out.splitlines()) == sorted(theirs.out.splitlines())
        assert f"{name}-g" in mine.out.split()
    for options in ((), ("--verbose",), ("--members",), ("--members", "--verbose"), ("--state",)):
        mine, theirs = both("consumer_groups", *at(cluster), "--describe", *group, *options)
        assert (mine.code, mine.out) == (theirs.code, theirs.out)
        assert mine.err.strip() == f"Consumer group '{name}-g' has no active members."
    reset = ("--reset-offsets", *group, "--topic", name)
    for how in (
        ("--to-earliest",),
        ("--to-offset", "1"),
        ("--shift-by", "-1"),
        ("--by-duration", "PT1H"),
        ("--to-datetime", "2020-01-01T00:00:00.000"),
        ("--to-datetime", "2099-01-01T00:00:00.000"),
        ("--to-current",),
    ):
        mine, theirs = both("consumer_groups", *at(cluster), *reset, *how, "--dry-run")
        tables = [sorted(each.out.splitlines()) for each in (mine, theirs)]
        assert tables[0] == tables[1], how
    exported = ours("consumer_groups", *at(cluster), *reset, "--to-earliest", "--export", "--dry-run").out
    assert exported == f"{name},0,0\n{name},1,0\n\n"
    file = tmp_path / "offsets.csv"
    file.write_text(exported)
    done = ours("consumer_groups", *at(cluster), "--reset-offsets", *group, "--from-file", str(file), "--execute")
    assert done.code == 0
    lag = [line.split()[5] for line in ours("consumer_groups", *at(cluster), "--describe", *group).out.splitlines()[2:]]
    assert sum(map(int, lag)) == 3
    nobody = ours("consumer_groups", *at(cluster), "--describe", "--group", "nosuch")
    assert nobody.code == 1
    assert nobody.out.strip() == "Error: Executing consumer group command failed due to Group nosuch not found."
    deleted = ours("consumer_groups", *at(cluster), "--delete", *group)
    assert deleted == Done(0, f"Deletion of requested consumer groups ('{name}-g') was successful.\n", "")
    assert ours("consumer_groups", *at(cluster), "--delete", *group).code == 1


def test_a_group_without_offsets_is_not_described(cluster: Broker, name: str) -> None:
    """Not even by the columns' names."""
    ours("topics", *at(cluster), "--create", "--topic", name)
    import penstock

    settings = {"bootstrap.servers": cluster.bootstrap, "group.id": name, "enable.auto.commit": "false"}
    with penstock.Consumer(settings) as consumer:
        consumer.subscribe([name])
        while not consumer.assignment():
            consumer.poll(1000)
    described = same("consumer_groups", *at(cluster), "--describe", "--group", name)
    assert described.out == ""
    assert described.err.strip() == f"Consumer group '{name}' has no active members."


def test_a_group_with_members(cluster: Broker, name: str) -> None:
    ours("topics", *at(cluster), "--create", "--topic", name)
    produced(cluster, name, "1\n")
    import penstock

    settings = {"bootstrap.servers": cluster.bootstrap, "group.id": name, "auto.offset.reset": "earliest"}
    with penstock.Consumer(settings) as consumer:
        consumer.subscribe([name])
        while not consumer.poll(1000):
            pass
        consumer.commit()
        for options in ((), ("--members", "--verbose"), ("--state",)):
            same("consumer_groups", *at(cluster), "--describe", "--group", name, *options)
        reset = ("--reset-offsets", "--group", name, "--topic", name, "--to-latest", "--execute")
        mine, theirs = both("consumer_groups", *at(cluster), *reset)
        assert f"Assignments can only be reset if the group '{name}' is inactive" in mine.out
        # Kafka's ends with 0 although nothing was reset.
        assert (mine.code, mine.out) == (1, theirs.out)
        delete = ("--delete-offsets", "--group", name, "--topic", name)
        mine, theirs = both("consumer_groups", *at(cluster), *delete)
        assert mine.code == 1
        assert without_java(mine.out) == without_java(theirs.out)


def without_java(text: str) -> list[str]:
    """What is told of each partition, without the reason, which has the names of Java's exceptions in Kafka's."""
    return [line.partition("Error: ")[0] + "Error" * ("Error: " in line) for line in text.splitlines()]


def test_offsets_are_deleted(cluster: Broker, name: str) -> None:
    name += "-with-a-long-name"
    ours("topics", *at(cluster), "--create", "--topic", name, "--partitions", "2")
    produced(cluster, name, "1\n")
    group = ("--group", f"{name}-g")
    read = ("--topic", name, *group, "--from-beginning", "--max-messages", "1")
    ours("console_consumer", *at(cluster), *read)
    for topic in (f"{name}:0", name):
        assert same("consumer_groups", *at(cluster), "--delete-offsets", *group, "--topic", topic).code == 0
    described = ours("consumer_groups", *at(cluster), "--describe", *group)
    assert name not in described.out.replace(f"{name}-g", "")
    for arguments in (("--group", "nosuch", "--topic", name), (*group, "--topic", f"{name}:7")):
        mine, theirs = both("consumer_groups", *at(cluster), "--delete-offsets", *arguments)
        assert mine.code == 1
        assert without_java(mine.out)[2:] == without_java(theirs.out)[2:]


def test_offsets(cluster: Broker, name: str) -> None:
    ours("topics", *at(cluster), "--create", "--topic", name, "--partitions", "3")
    produced(cluster, name, "1\n2\n")
    for options in (
        ("--topic", name),
        ("--topic", name, "--partitions", "0,2", "--time", "earliest"),
        ("--topic-partitions", f"{name}:1-", "--time", "-1"),
        ("--topic", name, "--time", "max-timestamp"),
    ):
        same("get_offsets", *at(cluster), *options)
    assert ours("get_offsets", *at(cluster), "--topic", "nosuch").code == 1


def test_configs(cluster: Broker, name: str, tmp_path: Path) -> None:
    ours("topics", *at(cluster), "--create", "--topic", name)
    topic = ("--entity-type", "topics", "--entity-name", name)
    added = ours(
        "configs", *at(cluster), "--alter", *topic, "--add-config", "cleanup.policy=[compact,delete],segment.ms=70000"
    )
    assert added == Done(0, f"Completed updating config for topic {name}.\n", "")
    assert "cleanup.policy=compact,delete" in same("configs", *at(cluster), "--describe", *topic).out
    same("configs", *at(cluster), "--describe", "--topic", name, "--all")
    assert ours("configs", *at(cluster), "--alter", "--topic", name, "--delete-config", "segment.ms").code == 0
    assert "segment.ms" not in same("configs", *at(cluster), "--describe", "--topic", name).out
    same("configs", *at(cluster), "--describe", "--entity-type", "brokers")
    same("configs", *at(cluster), "--describe", "--broker", "1")
    file = tmp_path / "more.properties"
    file.write_text("retention.ms=5000\ncleanup.policy=compact,delete\n")
    same("configs", *at(cluster), "--alter", "--topic", name, "--add-config-file", str(file))
    assert "retention.ms=5000" in same("configs", *at(cluster), "--describe", "--topic", name).out
    bad = ours("configs", *at(cluster), "--alter", "--topic", name, "--add-config", "nonsense=1")
    assert (bad.code, bad.out) == (1, "")
    assert "Unknown topic config name: nonsense" in bad.err
    nothing = ours("configs", *at(cluster), "--alter", "--topic", name, "--add-config-file", str(tmp_path / "none"))
    assert (nothing.code, nothing.err) == (
        1, f"Error while executing config command: {tmp_path / 'none'}: No such file or directory\n",
    )  # fmt: skip


def test_configs_of_what_is_not_there(cluster: Broker, name: str) -> None:
    for entity in ("--group", "--client-metrics", "--topic"):
        missing = same("configs", *at(cluster), "--describe", entity, name)
        assert missing.out.endswith(f" '{name}' doesn't exist and doesn't have dynamic config.\n")
    same("configs", *at(cluster), "--describe", "--broker", "7")
    same("configs", *at(cluster), "--describe", "--entity-type", "client-metrics")


def test_configs_of_groups_and_loggers(cluster: Broker, name: str) -> None:
    ours("topics", *at(cluster), "--create", "--topic", name)
    produced(cluster, name, "1\n")
    read = ("--topic", name, "--group", name, "--from-beginning", "--max-messages", "1")
    ours("console_consumer", *at(cluster), *read)
    assert (
        same("configs", *at(cluster), "--describe", "--group", name).out == f"Dynamic configs for group {name} are:\n"
    )
    loggers = same("configs", *at(cluster), "--describe", "--broker-logger", "1")
    assert re.search(r"^  root=(INFO|ERROR) sensitive=false synonyms=\{\}$", loggers.out, re.MULTILINE)
    changed = same("configs", *at(cluster), "--alter", "--broker-logger", "1", "--add-config", "root=ERROR")
    assert changed.code == 0
    unknown = ours("configs", *at(cluster), "--alter", "--broker-logger", "1", "--add-config", "no.such=DEBUG")
    assert (unknown.code, unknown.out) == (1, "")
    assert "no.such" in unknown.err


def test_quotas_and_credentials(kafka: Broker, name: str) -> None:
    """The Penstock broker has neither yet."""
    user = ("--user", name, "--client-defaults")
    set_quota = ours(
        "configs", *at(kafka), "--alter", *user, "--add-config", "producer_byte_rate=1024,consumer_byte_rate=5"
    )
    assert set_quota.out == "Completed updating default config for clients in the cluster.\n"
    same("configs", *at(kafka), "--describe", *user)
    ours(
        "configs", *at(kafka), "--alter", "--user", name, "--add-config", "SCRAM-SHA-256=[iterations=8192,password=a,b]"
    )
    assert "SCRAM-SHA-256=iterations=8192" in same("configs", *at(kafka), "--describe", "--user", name).out


def test_records_directories_elections_and_moves(cluster: Broker, name: str, tmp_path: Path) -> None:
    ours("topics", *at(cluster), "--create", "--topic", name, "--partitions", "2")
    produced(cluster, name, "1\n2\n3\n", "--producer-property", "partitioner.class=", "--property", "ignore.error=true")
    partition = max(ours("get_offsets", *at(cluster), "--topic", name).out.split(), key=lambda line: int(line[-1]))
    number = int(partition.split(":")[1])
    file = tmp_path / "file.json"
    file.write_text(json.dumps({"partitions": [{"topic": name, "partition": number, "offset": 1}], "version": 1}))
    deleted = same("delete_records", *at(cluster), "--offset-json-file", str(file))
    assert deleted.out.endswith(f"partition: {name}-{number}\tlow_watermark: 1\n")
    mine, theirs = both("log_dirs", *at(cluster), "--describe", "--topic-list", name)
    assert mine.out.splitlines()[:2] == theirs.out.splitlines()[:2]
    shown, expected = (json.loads(each.out.splitlines()[2])["brokers"][0]["logDirs"][0] for each in (mine, theirs))
    assert sorted(shown.pop("partitions"), key=str) == sorted(expected.pop("partitions"), key=str)
    assert shown == expected
    assert same("log_dirs", *at(cluster), "--describe", "--broker-list", "7").code == 1
    same("leader_election", *at(cluster), "--topic", name, "--partition=1", "--election-type", "preferred")
    same("leader_election", *at(cluster), "--path-to-json-file", str(file), "--election-type", "UNCLEAN")
    nosuch = ("--topic", "nosuch", "--partition", "0", "--election-type", "preferred")
    mine, theirs = both("leader_election", *at(cluster), *nosuch)
    assert (mine.code, mine.out.count("\n")) == (theirs.code, theirs.out.count("\n")) == (1, 1)
    begin, reason = mine.out.split("nosuch-0: ")
    assert theirs.out.startswith(begin)
    assert theirs.out.endswith(f"Exception: {reason}")
    assert mine.err == theirs.err.splitlines()[0] + "\n" == "1 replica(s) could not be elected\n"
    mine, theirs = both("reassign_partitions", *at(cluster), "--execute", "--reassignment-json-file", "nosuch.json")
    assert (mine.code, mine.out, mine.err) == (1, "Error: nosuch.json: No such file or directory\n", "")
    assert (theirs.code, theirs.out.splitlines()[0]) == (1, "Error: Unable to read file nosuch.json")
    move = tmp_path / "move.json"
    move.write_text(json.dumps({"version": 1, "partitions": [{"topic": name, "partition": 0, "replicas": [1]}]}))
    topics = tmp_path / "topics.json"
    topics.write_text(json.dumps({"version": 1, "topics": [{"topic": name}]}))
    same("reassign_partitions", *at(cluster), "--list")
    same(
        "reassign_partitions",
        *at(cluster),
        "--generate",
        "--topics-to-move-json-file",
        str(topics),
        "--broker-list",
        "1",
    )
    same("reassign_partitions", *at(cluster), "--execute", "--reassignment-json-file", str(move), "--throttle", "10000")
    same("reassign_partitions", *at(cluster), "--verify", "--reassignment-json-file", str(move))
    for more in ((), ("--preserve-throttles",)):
        mine, theirs = both(
            "reassign_partitions", *at(cluster), "--cancel", "--reassignment-json-file", str(move), *more
        )
        # Kafka's forgets the end of a line.
        assert (mine.code, mine.out.replace("\n", "")) == (theirs.code, theirs.out.replace("\n", ""))
        assert "None of the specified partition reassignments are active." in mine.out


def test_dump_log(cluster: Broker, name: str) -> None:
    ours("topics", *at(cluster), "--create", "--topic", name)
    produced(cluster, name, "h:x\tk\tv\n", "--property", "parse.key=true", "--property", "parse.headers=true")
    produced(cluster, name, "1\n2\n", "--compression-codec", "lz4")
    transaction = ("--throughput", "-1", "--transaction-duration-ms", "60000")
    ours("producer_perf_test", *at(cluster), "--topic", name, "--num-records", "3", "--payload-monotonic", *transaction)
    log = str(cluster.partition_dir(name) / "00000000000000000000.log")
    for options in ((), ("--deep-iteration",), ("--print-data-log",), ("--print-data-log", "--skip-record-metadata")):
        shown = same("dump_log", "--files", log, *options)
    assert "payload: 2" in shown.out


def test_dump_log_of_indexes_without_entries(cluster: Broker, name: str) -> None:
    """A live index is as large as it may become, and all zero at first."""
    ours("topics", *at(cluster), "--create", "--topic", name)
    produced(cluster, name, "1\n")
    for suffix, shown in (("index", "offset: 0 position: 0\n"), ("timeindex", "timestamp: 0 offset: 0\n")):
        file = cluster.partition_dir(name) / f"{0:020}.{suffix}"
        if file.stat().st_size:
            assert same("dump_log", "--files", str(file)).out.endswith(shown)
        for more in ("--verify-index-only", "--index-sanity-check"):
            same("dump_log", "--files", str(file), more)


def test_dump_log_of_indexes_and_snapshots(tmp_path: Path) -> None:
    broker = PenstockBroker(tmp_path)
    broker.start()
    try:
        ours("topics", *at(broker), "--create", "--topic", "dumped", "--config", "index.interval.bytes=1")
        for text in ("1\n2\n", "3\n"):
            produced(broker, "dumped", text)
        transaction = ("--throughput", "-1", "--transaction-duration-ms", "60000")
        line = ("--topic", "dumped", "--num-records", "3", "--payload-monotonic", *transaction)
        ours("producer_perf_test", *at(broker), *line)
        broker.stop()
    finally:
        broker.kill()
    seen = set()
    for file in broker.partition_dir("dumped").iterdir():
        if file.suffix in (".index", ".timeindex", ".snapshot"):
            same("dump_log", "--files", str(file))
            seen.add(file.suffix)
    assert seen == {".index", ".timeindex", ".snapshot"}
    index = broker.partition_dir("dumped") / "00000000000000000000.index"
    assert ours("dump_log", "--files", str(index), "--verify-index-only").code == 0
    data = bytearray(index.read_bytes())
    data[7] ^= 1
    index.write_bytes(data)
    wrong = ours("dump_log", "--files", str(index), "--verify-index-only")
    assert wrong.code == 1
    assert "Mismatch in" in wrong.err


def test_performance(cluster: Broker, name: str) -> None:
    ours("topics", *at(cluster), "--create", "--topic", name)
    options = ("--topic", name, "--num-records", "2000", "--record-size", "100", "--throughput", "-1")
    more = ("--command-property", "acks=all", "linger.ms=5", "--warmup-records", "100")
    written, model = both("producer_perf_test", *at(cluster), *options, *more)

    def shape(text: str) -> str:
        return re.sub(r"\d+(\.\d+)?( ms)?(?![\w.])", "N", re.sub(r"\b(50|95|99|99\.9)th", "Pth", text))

    assert written.code == 0
    assert shape(written.out) == shape(model.out)
    assert re.search(r"^2000 records sent, [\d.]+ records/sec", written.out, re.MULTILINE)
    read, read_model = both("consumer_perf_test", *at(cluster), "--topic", name, "--num-records", "4000")
    assert read.out.splitlines()[0] == read_model.out.splitlines()[0]
    line, model_line = (each.out.splitlines()[1].split(", ") for each in (read, read_model))
    for tool, how in (("producer", options), ("consumer", ("--topic", name, "--num-records", "4000"))):
        found, model = both(f"{tool}_perf_test", *at(cluster), *how, "--print-metrics")
        check_metrics(found.out, model.out)
    assert len(line) == len(model_line)
    assert (line[2], line[4]) == (model_line[2], model_line[4])


def check_metrics(ours: str, javas: str) -> None:
    """What both measure has the same group and tags; each value stands behind the longest name."""
    found, model = (
        re.findall(r"^(([a-z-]+:[a-z-]+):\{.*\}) *: [-\w.]+$", each, re.MULTILINE) for each in (ours, javas)
    )
    assert len(found) > 50
    assert len({line.rindex(" : ") for line in ours.splitlines() if "{client-id=" in line}) == 1
    assert re.search(r"\n\nMetric Name +Value\n", ours)
    assert re.search(r"\n\nMetric Name +Value\n", javas)
    # Of some that are by topic or node alone in Kafka the clients here have a sum, too.
    measured = {name for _, name in model}
    assert {whole for whole, name in found if name in measured} <= {whole for whole, _ in model}
    assert {name.split(":")[0] for _, name in found} <= {name.split(":")[0] for _, name in model}


def test_transactions(cluster: Broker, name: str) -> None:
    ours("topics", *at(cluster), "--create", "--topic", name)
    import penstock

    with penstock.Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": name}) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(name, b"1").result()
        listed, listed_model = both("transactions", *at(cluster), "list")
        assert sorted(listed.out.splitlines()) == sorted(listed_model.out.splitlines())
        assert re.search(rf"^{name} *\t1 *\t\d+ *\tOngoing *\t$", listed.out, re.MULTILINE)
        described = ours("transactions", *at(cluster), "describe", "--transactional-id", name)
        assert f"{name}-0" in described.out
        model = java("transactions", *at(cluster), "describe", "--transactional-id", name)
        heads = [each.out.splitlines()[0].split() for each in (described, model)]
        assert heads[0] == heads[1]
        same("transactions", *at(cluster), "describe-producers", "--topic", name, "--partition", "0")
        aborted = ours(
            "transactions", *at(cluster), "abort", "--topic", name, "--partition", "0", "--start-offset", "0"
        )
        assert aborted.code == 0
        same("transactions", *at(cluster), "find-hanging", "--topic", name)
    with penstock.Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": name}) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(name, b"2").result()
        producer.commit_transaction()
    describe = ("transactions", *at(cluster), "describe", "--transactional-id", name)
    done, done_model = described_when(describe, "CompleteCommit")
    assert int(done.pop(7)) > 0  # the duration, which goes on
    assert int(done_model.pop(7)) > 0
    assert done == done_model
    assert re.fullmatch(r"\d{13}", done[6])
    nothing = ours("transactions", *at(cluster), "describe", "--transactional-id", "nosuch")
    assert nothing.code == 1
    assert "could not be found" in nothing.err


def described_when(describe: tuple[str, ...], state: str) -> list[list[str]]:
    """The row of both tools, once the transaction is in this state."""
    deadline = time.monotonic() + 30
    while state not in ours(*describe).out and time.monotonic() < deadline:
        time.sleep(0.1)
    return [[cell.strip() for cell in each.out.splitlines()[1].split("\t")] for each in both(*describe)]


def test_a_transaction_is_terminated_by_force(cluster: Broker, name: str) -> None:
    ours("topics", *at(cluster), "--create", "--topic", name)
    import penstock

    with penstock.Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": name}) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(name, b"never").result()
        done = ours("transactions", *at(cluster), "forceTerminateTransaction", "--transactionalId", name)
        assert (done.code, done.out) == (0, "")
        with pytest.raises(penstock.KafkaError):
            producer.commit_transaction()
    committed = ("--topic", name, "--isolation-level", "read_committed", "--from-beginning", "--timeout-ms", "2000")
    assert ours("console_consumer", *at(cluster), *committed).out == ""


def test_a_hanging_transaction_is_found_and_aborted(start_broker: Callable[..., Broker], name: str) -> None:
    """Its coordinator has never heard of it: the broker was told not to ask before it appends."""
    broker = start_broker(transaction_partition_verification_enable="false")
    ours("topics", *at(broker), "--create", "--topic", name)
    write_hanging(broker, name)
    find = ("find-hanging", "--topic", name, "--max-transaction-timeout", "0")
    found, model = both("transactions", *at(broker), *find)
    # The last column, the minutes, may be told a moment later.
    assert [line.split()[:7] for line in found.out.splitlines()] == [
        line.split()[:7] for line in model.out.splitlines()
    ]
    assert found.out.splitlines()[1].split()[:6] == [name, "0", "4711", "3", "-1", "0"]
    abort = ("abort", "--topic", name, "--partition", "0", "--start-offset")
    nothing = ours("transactions", *at(broker), *abort, "7")
    assert (nothing.code, nothing.err) == (
        1, f"Could not find any open transactions starting at offset 7 on partition {name}-0\n",
    )  # fmt: skip
    assert ours("transactions", *at(broker), *abort, "0").code == 0
    assert len(same("transactions", *at(broker), *find).out.splitlines()) == 1


def test_features(cluster: Broker, start_broker: Callable[..., Broker]) -> None:
    shown = same("features", *at(cluster), "describe")
    assert re.search(r"^Feature: transaction\.version +SupportedMinVersion: 0 ", shown.out, re.MULTILINE)
    same("features", *at(cluster), "describe", "--node-id", "1")
    for release in (None, "3.3-IV3", "3.9", "4.0", "4.0-IV0", "4.1", "4.3-IV0", "nosuch"):
        more = () if release is None else ("--release-version", release)
        same("features", *at(cluster), "version-mapping", *more)
    for feature in ("eligible.leader.replicas.version=1", "metadata.version=21", "nosuch=1", "share.version=9"):
        same("features", *at(cluster), "feature-dependencies", "--feature", feature)


def test_features_change(brokers: Callable[[str], Broker], tmp_path: Path) -> None:
    for kind in KINDS:
        broker = KINDS[kind](tmp_path / kind)
        broker.start()
        try:
            for command in (
                "downgrade --feature transaction.version=1", "upgrade --feature transaction.version=2 --dry-run",
                "upgrade --feature transaction.version=2", "upgrade --feature transaction.version=9",
                "upgrade --feature nosuch=1", "downgrade --feature transaction.version=7 --unsafe",
                "upgrade --feature transaction.version", "upgrade", "disable",
                "upgrade --release-version 4.0 --dry-run",
                "disable --feature transaction.version --dry-run",
            ):  # fmt: skip
                same("features", *at(broker), *command.split())
            assert ours("features", *at(broker), "disable", "--feature", "transaction.version").out == (
                "transaction.version was disabled.\n"
            )
            assert "FinalizedVersionLevel: 0" in next(
                line for line in same("features", *at(broker), "describe").out.splitlines() if "transaction" in line
            )
        finally:
            broker.kill()


def test_bad_input(cluster: Broker, tmp_path: Path) -> None:
    broken = tmp_path / "broken.properties"
    broken.write_text("a=b\nnonsense\n")
    done = ours("topics", *at(cluster), "--list", "--command-config", str(broken))
    assert done.code == 1
    assert "broken.properties:2): not of the form key=value" in done.out
    assert done.out.count("\n") == 1
    done = ours("topics", *at(cluster), "--list", "--command-config", str(tmp_path / "none"))
    assert (done.code, done.out.count("\n")) == (1, 1)
    assert f"{tmp_path / 'none'}: No such file or directory" in done.out
    done = ours("console_consumer", *at(cluster), "--topic", "t", "--partition", "0", "--offset", "bad")
    assert done.code == 2
    assert "The provided offset value 'bad' is incorrect" in done.err
    done = ours("topics", "--list", "--zookeeper", "127.0.0.1:1")
    assert done.code == 1
    assert "no ZooKeeper answers at 127.0.0.1:1" in done.out
    assert "--bootstrap-server" in done.out


def test_settings_in_latin_1(cluster: Broker, tmp_path: Path) -> None:
    settings = tmp_path / "old.properties"
    settings.write_bytes("# J\u00fcrgen's\nclient.id=latin\n".encode("latin-1"))
    listed = ours("topics", *at(cluster), "--list", "--command-config", str(settings))
    assert (listed.code, listed.err) == (0, "")


def test_addresses_that_are_no_broker(tmp_path: Path) -> None:
    settings = tmp_path / "short.properties"
    settings.write_text("default.api.timeout.ms=3000\nrequest.timeout.ms=2000\n")
    nobody = ours("topics", "--list", "--bootstrap-server", "127.0.0.1:1", "--command-config", str(settings))
    assert (nobody.code, nobody.out.count("\n")) == (1, 1)
    assert "127.0.0.1:1" in nobody.out
    with socket.create_server(("127.0.0.1", 0)) as server:
        stop = threading.Event()

        def serve() -> None:
            server.settimeout(0.2)
            while not stop.is_set():
                try:
                    connection, _ = server.accept()
                except TimeoutError:
                    continue
                with connection:
                    connection.recv(1000)
                    connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
                    time.sleep(0.05)

        thread = threading.Thread(target=serve)
        thread.start()
        address = f"127.0.0.1:{server.getsockname()[1]}"
        try:
            web = ours("topics", "--list", "--bootstrap-server", address, "--command-config", str(settings))
        finally:
            stop.set()
            thread.join()
    assert (web.code, web.out.count("\n")) == (1, 1)
    assert address in web.out
