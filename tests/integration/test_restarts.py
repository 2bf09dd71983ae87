"""What a broker keeps over restarts, and what it lets go: retention and deleted topics."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from penstock.protocol.messages.metadata import MetadataRequest
from tests.integration.conftest import Connect, StartBroker
from tests.integration.driving import (
    EARLIEST,
    LATEST,
    create_topic,
    delete_topic,
    describe_topics,
    fetch,
    list_offset,
    new_producer_id,
    now_ms,
    read_all,
    read_values,
    send_values,
)
from tests.integration.watching import open_files, wait_for
from tests.support.brokers import ROOT, PenstockBroker
from tests.support.ports import answers, free_port
from tests.support.processes import LoggedProcess
from tests.support.raw_client import RawClient

RETENTION_CHECKS = {"log.retention.check.interval.ms": "100", "log.initial.task.delay.ms": "100"}
HOUR_MS = 3_600_000


def own_settings(client: RawClient, topic: str) -> dict[str, str | None]:
    resource = DescribeConfigsResource(resource_type=2, resource_name=topic, configuration_keys=None)
    (result,) = client.call(ApiKey.DESCRIBE_CONFIGS, 4, DescribeConfigsRequest(resources=[resource])).results
    return {row.name: row.value for row in result.configs if row.config_source == 1}


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_topics_ids_settings_records_and_cluster_survive(
    start_broker: StartBroker, connect: Connect, topic: str, how: str
) -> None:
    broker = start_broker()
    client = connect(broker.port)
    ids = {name: create_topic(client, name, partitions=3, retention_ms="777777") for name in (topic, f"{topic}.b")}
    for partition in range(3):
        send_values(client, topic, b"%d" % partition, partition=partition)
    cluster_id = client.call(ApiKey.METADATA, 12, MetadataRequest(topics=[])).cluster_id
    last_producer_id = new_producer_id(client)
    getattr(broker, how)()
    broker.start()
    client = connect(broker.port)
    assert {each.name: each.topic_id for each in describe_topics(client, *ids)} == ids
    assert all(len(each.partitions) == 3 for each in describe_topics(client, *ids))
    assert own_settings(client, topic) == {"retention.ms": "777777"}
    assert [read_values(client, topic, partition=each) for each in range(3)] == [[b"0"], [b"1"], [b"2"]]
    assert client.call(ApiKey.METADATA, 12, MetadataRequest(topics=[])).cluster_id == cluster_id
    assert new_producer_id(client) > last_producer_id
    assert send_values(client, topic, b"next") == 1


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_deleted_topic_stays_deleted(start_broker: StartBroker, connect: Connect, topic: str, how: str) -> None:
    """Also when the broker ends before the files are unlinked."""
    broker = start_broker()
    client = connect(broker.port)
    create_topic(client, topic)
    send_values(client, topic, b"gone")
    delete_topic(client, topic)
    assert [path for path in broker.data_dir.iterdir() if path.name.startswith(topic)], "unlinked without a delay"
    getattr(broker, how)()
    broker.start()
    client = connect(broker.port)
    assert describe_topics(client, topic)[0].error_code == 3
    create_topic(client, topic)
    assert read_values(client, topic) == []


def test_a_deleted_topic_leaves_no_directory(broker: PenstockBroker, client: RawClient, topic: str) -> None:
    create_topic(client, topic, partitions=3)
    for partition in range(3):
        send_values(client, topic, b"x", partition=partition)
    before = open_files(broker)
    delete_topic(client, topic)
    assert not broker.partition_dir(topic).exists()
    wait_for(
        lambda: not [path for path in broker.data_dir.iterdir() if path.name.startswith(topic)],
        "the directories to go after log.segment.delete.delay.ms",
    )
    wait_for(lambda: open_files(broker) < before, "the broker to close the files")


def test_a_topic_with_the_longest_name(broker: PenstockBroker, client: RawClient) -> None:
    name = "n" * 249
    create_topic(client, name)
    send_values(client, name, b"x")
    assert read_values(client, name) == [b"x"]
    delete_topic(client, name)
    wait_for(
        lambda: not [path for path in broker.data_dir.iterdir() if path.name.startswith("nnn")], "the directory to go"
    )


def test_retention_by_size(start_broker: StartBroker, connect: Connect, topic: str) -> None:
    broker = start_broker(RETENTION_CHECKS)
    client = connect(broker.port)
    create_topic(client, topic, internal_segment_bytes="5000", retention_bytes="12000", file_delete_delay_ms="100")
    for _ in range(40):
        send_values(client, topic, b"x" * 1000)
    directory = broker.partition_dir(topic)
    wait_for(lambda: list_offset(client, topic, EARLIEST) > 20, "the first segments to go")
    wait_for(lambda: not list(directory.glob("*.deleted")), "the renamed files to go")
    start = list_offset(client, topic, EARLIEST)
    assert list_offset(client, topic, LATEST) == 40
    too_old = fetch(client, topic, 0)
    assert (too_old.error_code, too_old.log_start_offset) in {(1, start), (1, -1)}
    assert read_all(client, topic)[0].offset == start
    kept = sum(path.stat().st_size for path in directory.glob("*.log"))
    assert 12_000 <= kept <= 12_000 + 5000
    broker.kill()
    broker.start()
    client = connect(broker.port)
    assert list_offset(client, topic, EARLIEST) >= start
    assert list_offset(client, topic, LATEST) == 40


def test_retention_by_time(start_broker: StartBroker, connect: Connect, topic: str) -> None:
    broker = start_broker(RETENTION_CHECKS)
    client = connect(broker.port)
    create_topic(client, topic, internal_segment_bytes="3000", retention_ms=str(HOUR_MS), file_delete_delay_ms="100")
    for _ in range(9):
        send_values(client, topic, b"old" * 400, timestamp=now_ms() - 2 * HOUR_MS)
    fresh = [send_values(client, topic, b"new" * 400) for _ in range(6)]
    wait_for(lambda: list_offset(client, topic, EARLIEST) >= 7, "the old segments to go")
    assert list_offset(client, topic, EARLIEST) <= fresh[0]
    assert [record.value for record in read_all(client, topic)][-6:] == [b"new" * 400] * 6


def test_a_whole_log_that_is_too_old_goes_and_offsets_go_on(
    start_broker: StartBroker, connect: Connect, topic: str
) -> None:
    broker = start_broker(RETENTION_CHECKS)
    client = connect(broker.port)
    create_topic(client, topic, retention_ms=str(HOUR_MS))
    for _ in range(5):
        send_values(client, topic, b"old", timestamp=now_ms() - 2 * HOUR_MS)
    wait_for(lambda: list_offset(client, topic, EARLIEST) == 5, "the only segment to go")
    assert read_values(client, topic) == []
    assert send_values(client, topic, b"next") == 5
    for how in ("stop", "kill"):
        getattr(broker, how)()
        broker.start()
        client = connect(broker.port)
        assert (list_offset(client, topic, EARLIEST), list_offset(client, topic, LATEST)) == (5, 6)
        assert read_values(client, topic) == [b"next"]


def test_a_compacted_topic_is_not_trimmed_by_retention(start_broker: StartBroker, connect: Connect, topic: str) -> None:
    broker = start_broker(RETENTION_CHECKS)
    client = connect(broker.port)
    limits: dict[str, Any] = {"internal_segment_bytes": "3000", "retention_ms": "1000", "retention_bytes": "1000"}
    create_topic(client, topic, cleanup_policy="compact", **limits)
    create_topic(client, f"{topic}-deleted", **limits)
    for _ in range(10):
        for name in (topic, f"{topic}-deleted"):
            send_values(client, name, b"x" * 1000, timestamp=now_ms() - HOUR_MS)
    wait_for(lambda: list_offset(client, f"{topic}-deleted", EARLIEST) > 0, "the other topic to be trimmed")
    assert list_offset(client, topic, EARLIEST) == 0
    assert len(read_values(client, topic)) == 10


def test_a_reader_of_a_segment_that_goes_is_not_harmed(start_broker: StartBroker, connect: Connect, topic: str) -> None:
    broker = start_broker(RETENTION_CHECKS)
    client = connect(broker.port)
    create_topic(client, topic, internal_segment_bytes="200000", retention_bytes="400000", file_delete_delay_ms="0")
    for number in range(30):
        send_values(client, topic, b"%06d" % number * 10_000)
        start = list_offset(client, topic, EARLIEST)
        data = fetch(client, topic, start)
        if data.error_code == 0:
            assert data.records
        else:
            assert data.error_code == 1, "the segment went between the two requests"


def test_flush_messages_answers_when_it_is_on_disk(start_broker: StartBroker, connect: Connect, topic: str) -> None:
    broker = start_broker()
    client = connect(broker.port)
    create_topic(client, topic, flush_messages="1")
    for number in range(5):
        assert send_values(client, topic, b"%d" % number) == number
    broker.kill()
    broker.start()
    assert len(read_values(connect(broker.port), topic)) == 5


def test_partitions_spread_over_several_data_directories(tmp_path: Path, connect: Connect, topic: str) -> None:
    directories = [tmp_path / "one", tmp_path / "two"]
    port = free_port()
    command = [sys.executable, "-m", "penstock", "serve", "--data-dir", ",".join(map(str, directories))]
    command += ["--listeners", f"PLAINTEXT://127.0.0.1:{port}"]

    def start() -> LoggedProcess:
        process = LoggedProcess(command, tmp_path / "log", env={"PYTHONPATH": str(ROOT / "src")})
        process.wait_until(lambda: answers(port), 20, "penstock serve")
        return process

    process = start()
    try:
        client = connect(port)
        create_topic(client, topic, partitions=6)
        for partition in range(6):
            send_values(client, topic, b"%d" % partition, partition=partition)
        assert [len(list(each.glob(f"{topic}-*"))) for each in directories] == [3, 3]
        assert process.stop() == 0
        process = start()
        client = connect(port)
        assert [read_values(client, topic, partition=each) for each in range(6)] == [
            [b"%d" % each] for each in range(6)
        ]
    finally:
        process.kill()
