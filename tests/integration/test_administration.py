"""Changes to a running broker: their effect at once, and after a clean stop as well as kill -9."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.protocol.apis import ApiKey
from penstock.protocol.messages import alter_partition_reassignments as apr
from penstock.protocol.messages import elect_leaders as el
from penstock.protocol.messages import update_features as uf
from penstock.protocol.messages.api_versions import ApiVersionsRequest
from tests.integration.administering import (
    BROKER,
    TOPIC,
    add_partitions,
    alter,
    delete_records,
    log_directories,
    setting,
)
from tests.integration.conftest import Connect, StartBroker
from tests.integration.driving import (
    EARLIEST,
    LATEST,
    batch,
    create_topic,
    describe_topics,
    fetch,
    list_offset,
    produce,
    read_values,
    send_values,
)
from tests.support.brokers import PenstockBroker
from tests.support.raw_client import ConnectionEndedError, RawClient

ENDS = [pytest.param(PenstockBroker.stop, id="stop"), pytest.param(PenstockBroker.kill, id="kill -9")]
End = Callable[[PenstockBroker], None]
DYNAMIC_TOPIC, DYNAMIC_BROKER, DYNAMIC_DEFAULT, STATIC, DEFAULT = range(1, 6)


def until(true: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def logs_of(broker: PenstockBroker, topic: str, suffix: str = ".log") -> list[str]:
    return sorted(path.name for path in broker.partition_dir(topic).iterdir() if path.name.endswith(suffix))


# -- Partitions ----------------------------------------------------------------------------------------------------


def test_new_partitions_take_records_at_once(client: RawClient, topic: str) -> None:
    create_topic(client, topic)
    send_values(client, topic, b"old")
    assert add_partitions(client, topic, 4) == 0
    for partition in range(1, 4):
        send_values(client, topic, b"new %d" % partition, partition=partition)
        assert read_values(client, topic, partition=partition) == [b"new %d" % partition]
    assert read_values(client, topic) == [b"old"]
    assert len(describe_topics(client, topic)[0].partitions) == 4


@pytest.mark.parametrize("end", ENDS)
def test_new_partitions_are_there_after_a_restart(start_broker: StartBroker, connect: Connect, end: End) -> None:
    broker = start_broker()
    client = connect(broker.port)
    create_topic(client, "t")
    assert add_partitions(client, "t", 3) == 0
    send_values(client, "t", b"value", partition=2)
    end(broker)
    broker.start()
    again = connect(broker.port)
    assert len(describe_topics(again, "t")[0].partitions) == 3
    assert read_values(again, "t", partition=2) == [b"value"]


# -- Settings ------------------------------------------------------------------------------------------------------


def test_a_smaller_limit_counts_for_the_next_batch(client: RawClient, topic: str) -> None:
    create_topic(client, topic)
    assert produce(client, topic, batch(b"x" * 1000)).error_code == 0
    assert alter(client, TOPIC, topic, {"max.message.bytes": "500"}) == 0
    assert produce(client, topic, batch(b"x" * 1000)).error_code == 10
    assert alter(client, TOPIC, topic, {"max.message.bytes": None}) == 0
    assert produce(client, topic, batch(b"x" * 1000)).error_code == 0


def test_a_smaller_segment_size_counts_for_the_next_segment(
    broker: PenstockBroker, client: RawClient, topic: str
) -> None:
    create_topic(client, topic)
    send_values(client, topic, b"x" * 600_000)
    send_values(client, topic, b"x" * 600_000)
    assert len(logs_of(broker, topic)) == 1
    assert alter(client, TOPIC, topic, {"segment.bytes": "1048576"}) == 0
    send_values(client, topic, b"x" * 600_000)
    assert len(logs_of(broker, topic)) == 2


def test_a_shorter_retention_takes_records_away(start_broker: StartBroker, connect: Connect) -> None:
    broker = start_broker(log_retention_check_interval_ms="100", log_initial_task_delay_ms="100")
    client = connect(broker.port)
    create_topic(client, "t")
    send_values(client, "t", b"old", timestamp=1000 * int(time.time()) - 3_600_000)
    time.sleep(0.5)
    assert list_offset(client, "t", EARLIEST) == 0
    assert alter(client, TOPIC, "t", {"retention.ms": "60000"}) == 0
    until(lambda: list_offset(client, "t", EARLIEST) == 1)


def test_settings_of_all_brokers_reach_topics_that_set_nothing(start_broker: StartBroker, connect: Connect) -> None:
    client = connect(start_broker().port)
    create_topic(client, "plain")
    create_topic(client, "own", max_message_bytes="100000")
    assert alter(client, BROKER, "", {"message.max.bytes": "500"}) == 0
    assert produce(client, "plain", batch(b"x" * 1000)).error_code == 10
    assert produce(client, "own", batch(b"x" * 1000)).error_code == 0
    assert alter(client, BROKER, "1", {"message.max.bytes": "5000"}) == 0
    assert produce(client, "plain", batch(b"x" * 1000)).error_code == 0
    create_topic(client, "later")
    assert setting(client, TOPIC, "later", "max.message.bytes") == ("5000", DYNAMIC_BROKER)


@pytest.mark.parametrize("end", ENDS)
def test_settings_are_there_after_a_restart(start_broker: StartBroker, connect: Connect, end: End) -> None:
    broker = start_broker({"log.retention.ms": "1000000"})
    client = connect(broker.port)
    create_topic(client, "t")
    assert setting(client, BROKER, "1", "log.retention.ms") == ("1000000", STATIC)
    assert alter(client, TOPIC, "t", {"segment.bytes": "2097152"}) == 0
    assert alter(client, BROKER, "1", {"log.retention.ms": "3000000"}) == 0
    assert alter(client, BROKER, "", {"log.retention.ms": "2000000", "message.max.bytes": "500"}) == 0
    end(broker)
    broker.start()
    again = connect(broker.port)
    assert setting(again, TOPIC, "t", "segment.bytes") == ("2097152", DYNAMIC_TOPIC)
    assert setting(again, TOPIC, "t", "retention.ms") == ("3000000", DYNAMIC_BROKER)
    assert setting(again, BROKER, "1", "message.max.bytes") == ("500", DYNAMIC_DEFAULT)
    assert produce(again, "t", batch(b"x" * 1000)).error_code == 10
    assert alter(again, BROKER, "1", {"log.retention.ms": None}) == 0
    assert alter(again, BROKER, "", {"log.retention.ms": None}) == 0
    assert setting(again, BROKER, "1", "log.retention.ms") == ("1000000", STATIC)


def test_dynamic_settings_that_no_longer_fit_do_not_stop_a_start(start_broker: StartBroker, connect: Connect) -> None:
    broker = start_broker()
    assert alter(connect(broker.port), BROKER, "", {"log.cleaner.max.compaction.lag.ms": "100"}) == 0
    broker.stop()
    broker.overrides["log.cleaner.min.compaction.lag.ms"] = "1000"
    broker.start()
    assert setting(connect(broker.port), BROKER, "1", "log.cleaner.min.compaction.lag.ms") == ("1000", STATIC)
    assert "a dynamic setting is not used" in broker.output()


def test_a_limit_of_connections_counts_at_once(start_broker: StartBroker, connect: Connect) -> None:
    broker = start_broker()
    client = connect(broker.port)
    assert alter(client, BROKER, "", {"max.connections.per.ip": "1"}) == 0
    with pytest.raises((ConnectionEndedError, ConnectionResetError)):
        describe_topics(connect(broker.port), "t")
    assert alter(client, BROKER, "", {"max.connections.per.ip": None}) == 0
    describe_topics(connect(broker.port), "t")


# -- Deleting records ----------------------------------------------------------------------------------------------


def test_deleted_records_cannot_be_read(client: RawClient, topic: str) -> None:
    create_topic(client, topic)
    for number in range(10):
        send_values(client, topic, b"%d" % number)
    result = delete_records(client, topic, 4)
    assert (result.error_code, result.low_watermark) == (0, 4)
    assert list_offset(client, topic, EARLIEST) == 4
    assert fetch(client, topic, 3).error_code == 1
    assert read_values(client, topic) == [b"%d" % number for number in range(4, 10)]
    assert delete_records(client, topic, 2).low_watermark == 4, "the start of a log never goes back"
    assert delete_records(client, topic, 11).error_code == 1
    assert delete_records(client, topic, -1).low_watermark == 10
    assert send_values(client, topic, b"next") == 10
    assert read_values(client, topic) == [b"next"]


def test_segments_before_the_start_go(broker: PenstockBroker, client: RawClient, topic: str) -> None:
    create_topic(client, topic, internal_segment_bytes="500")
    for number in range(20):
        send_values(client, topic, b"%03d" % number * 50)
    before = logs_of(broker, topic)
    assert delete_records(client, topic, 15).error_code == 0
    kept = logs_of(broker, topic)
    assert len(kept) < len(before)
    assert int(kept[0].removesuffix(".log")) <= 15 < int(kept[1].removesuffix(".log"))
    until(lambda: not logs_of(broker, topic, ".deleted"))
    assert len(read_values(client, topic)) == 5


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("settings", [{}, {"internal_segment_bytes": "500"}], ids=["one segment", "many segments"])
def test_deleted_records_stay_deleted(
    start_broker: StartBroker, connect: Connect, end: End, settings: dict[str, str]
) -> None:
    broker = start_broker()
    client = connect(broker.port)
    create_topic(client, "t", **settings)
    create_topic(client, "all", **settings)
    for number in range(20):
        send_values(client, "t", b"%03d" % number * 50)
        send_values(client, "all", b"%03d" % number * 50)
    assert delete_records(client, "t", 13).low_watermark == 13
    assert delete_records(client, "all", -1).low_watermark == 20
    end(broker)
    broker.start()
    again = connect(broker.port)
    assert list_offset(again, "t", EARLIEST) == 13
    assert read_values(again, "t") == [b"%03d" % number * 50 for number in range(13, 20)]
    assert (list_offset(again, "all", EARLIEST), list_offset(again, "all", LATEST)) == (20, 20)
    assert send_values(again, "all", b"next") == 20


# -- Log directories -----------------------------------------------------------------------------------------------


class TwoDirectories(PenstockBroker):
    @property
    def paths(self) -> list[str]:
        return [str(self.directory / name) for name in ("one", "two")]

    @property
    def data_dir(self) -> Path:
        return Path(",".join(self.paths))


@pytest.fixture
def two_directories(tmp_path: Path) -> Iterator[TwoDirectories]:
    broker = TwoDirectories(tmp_path / "two", {"node.id": "1"})
    broker.start()
    yield broker
    broker.kill()


def test_log_directories_are_described(two_directories: TwoDirectories, connect: Connect) -> None:
    paths = two_directories.paths
    client = connect(two_directories.port)
    create_topic(client, "t", 4)
    send_values(client, "t", b"x" * 1000)
    found = {each.log_dir: each for each in log_directories(client)}
    assert set(paths) == set(found)
    sizes = {
        partition.partition_index: partition.partition_size
        for each in found.values()
        for topic in each.topics
        for partition in topic.partitions
    }
    assert sorted(sizes) == [0, 1, 2, 3]
    assert sizes[0] > 1000
    assert sizes[1] == 0
    assert all(each.total_bytes >= each.usable_bytes > 0 and each.error_code == 0 for each in found.values())


# -- Features, leaders, replicas -----------------------------------------------------------------------------------


def transaction_version(client: RawClient) -> int:
    request = ApiVersionsRequest(client_software_name="tests", client_software_version="1")
    levels = client.call(ApiKey.API_VERSIONS, 4, request).finalized_features
    return next((each.max_version_level for each in levels if each.name == "transaction.version"), 0)


def test_a_feature_level_is_there_after_a_restart(start_broker: StartBroker, connect: Connect) -> None:
    broker = start_broker()
    client = connect(broker.port)
    assert transaction_version(client) == 2
    update = uf.FeatureUpdateKey(feature="transaction.version", max_version_level=0, upgrade_type=2)
    assert client.call(ApiKey.UPDATE_FEATURES, 2, uf.UpdateFeaturesRequest(feature_updates=[update])).error_code == 0
    assert transaction_version(client) == 0
    broker.kill()
    broker.start()
    assert transaction_version(connect(broker.port)) == 0


def test_leaders_and_replicas_stay_where_there_is_one_broker(client: RawClient, topic: str) -> None:
    create_topic(client, topic)
    wanted = [el.TopicPartitions(topic=topic, partitions=[0])]
    elected = client.call(ApiKey.ELECT_LEADERS, 2, el.ElectLeadersRequest(topic_partitions=wanted))
    assert elected.replica_election_results[0].partition_result[0].error_code == 84
    same = apr.ReassignablePartition(partition_index=0, replicas=[1])
    request = apr.AlterPartitionReassignmentsRequest(topics=[apr.ReassignableTopic(name=topic, partitions=[same])])
    moved = client.call(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 1, request)
    assert moved.responses[0].partitions[0].error_code == 0
    send_values(client, topic, b"value")
