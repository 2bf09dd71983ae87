"""Kafka's own command-line tools, each as a process of its own, the way people run them."""

from __future__ import annotations

import re
import subprocess
import time

from tests.compat.admin import create_topic, end_offset
from tests.compat.clients.base import Record
from tests.compat.clients.registry import CLIENTS
from tests.support import peers
from tests.support.java import shared_peer, tool_command


def run(tool: str, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        tool_command(tool, *arguments), input=stdin, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def test_console_producer_and_consumer(bootstrap: str, topic: str) -> None:
    lines = [f"key{index}:line {index}" for index in range(20)]
    properties = ["--reader-property", "parse.key=true", "--reader-property", "key.separator=:"]
    run(
        "ConsoleProducer", "--bootstrap-server", bootstrap, "--topic", topic, *properties, stdin="\n".join(lines) + "\n"
    )
    arguments = ["--bootstrap-server", bootstrap, "--topic", topic, "--partition", "0", "--offset", "earliest"]
    shown = ["--formatter-property", "print.key=true", "--formatter-property", "key.separator=:"]
    read = run("consumer.ConsoleConsumer", *arguments, *shown, "--max-messages", "20", "--timeout-ms", "20000")
    assert read.stdout.splitlines() == lines
    assert "Processed a total of 20 messages" in read.stderr


def test_topics(bootstrap: str, topic: str) -> None:
    assert (
        f"Created topic {topic}"
        in run("TopicCommand", "--bootstrap-server", bootstrap, "--create", "--topic", topic).stdout
    )
    assert topic in run("TopicCommand", "--bootstrap-server", bootstrap, "--list").stdout.split()


def test_get_offsets(bootstrap: str, topic: str) -> None:
    create_topic(bootstrap, topic, partitions=3)
    now = int(time.time() * 1000)
    records = [Record(b"k", b"v", (), now + step) for step in (0, 1, 2, 9, 4, 5)]
    CLIENTS["confluent-kafka"].write(bootstrap, topic, records, partition=1)
    offsets = run("GetOffsetShell", "--bootstrap-server", bootstrap, "--topic", topic).stdout.split()
    assert offsets == [f"{topic}:0:0", f"{topic}:1:6", f"{topic}:2:0"]
    for place, expected in (("earliest", "0"), ("latest", "6"), ("max-timestamp", "3")):
        arguments = ["--bootstrap-server", bootstrap, "--topic-partitions", f"{topic}:1", "--time", place]
        assert shared_peer().tool("GetOffsetShell", *arguments).text.strip() == f"{topic}:1:{expected}"


def test_producer_perf(bootstrap: str, topic: str) -> None:
    create_topic(bootstrap, topic, partitions=2)
    arguments = ["--bootstrap-server", bootstrap, "--topic", topic, "--num-records", "20000", "--record-size", "100"]
    printed = run("ProducerPerformance", *arguments, "--throughput", "-1", "--command-property", "acks=all").stdout
    assert re.search(r"20000 records sent, [\d.]+ records/sec", printed), printed
    assert end_offset(bootstrap, topic, 0) + end_offset(bootstrap, topic, 1) == 20000


def test_producer_perf_with_every_codec(bootstrap: str, topic: str) -> None:
    create_topic(bootstrap, topic)
    arguments = ["--bootstrap-server", bootstrap, "--topic", topic, "--num-records", "2000", "--record-size", "500"]
    for codec in ("gzip", "snappy", "lz4", "zstd"):
        properties = ["--throughput", "-1", "--command-property", f"compression.type={codec}"]
        result = shared_peer().tool("ProducerPerformance", *arguments, *properties)
        assert "2000 records sent" in result.text, result
    assert end_offset(bootstrap, topic) == 8000


def test_kcat_lists_metadata(bootstrap: str, topic: str) -> None:
    create_topic(bootstrap, topic, partitions=2)
    command = [str(peers.kcat()), "-L", "-b", bootstrap, "-t", topic]
    listed = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout
    assert f'topic "{topic}" with 2 partitions' in listed
    assert f"at {bootstrap}" in listed
