"""The pure parts of Kafka's tools: lines to records and back, offsets, times, rules, plans."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from penstock.base.types import TopicPartition
from penstock.cli.failures import Failed
from penstock.cli.kafka import topics
from penstock.cli.kafka.configs import TOOL as CONFIGS
from penstock.cli.kafka.configs import Entity, entities
from penstock.cli.kafka.consumer_perf_test import java_date
from penstock.cli.kafka.get_offsets import rules, timestamp_of
from penstock.cli.kafka.group_descriptions import aligned, assignment_text
from penstock.cli.kafka.group_offsets import parse_datetime, parse_duration, read_csv
from penstock.cli.kafka.json_files import partition_entries, read_json
from penstock.cli.kafka.lines import (
    FORMATTER_KEYS,
    READER_KEYS,
    Line,
    LineError,
    LineFormatter,
    LineReader,
    unknown_keys,
)
from penstock.cli.kafka.parsing import UsageError, parse
from penstock.cli.kafka.perf_numbers import Latencies, metric_lines
from penstock.cli.kafka.reassign_partitions import partition_status, read_plan, spread
from penstock.cli.kafka.zookeeper import listeners
from penstock.records.record import ConsumerRecord

KEYED = {"parse.key": "true", "key.separator": ":"}


def test_lines_become_records() -> None:
    assert LineReader({}).read(b"a b\r\n", 1) == Line(None, b"a b")
    assert LineReader(KEYED).read(b"k:v:w\n", 1) == Line(b"k", b"v:w")
    reader = LineReader({"parse.headers": "true", "parse.key": "true", "null.marker": "NULL"})
    assert reader.read(b"h1:a,h2:NULL\tk\tNULL\n", 1) == Line(b"k", None, (("h1", b"a"), ("h2", None)))
    assert reader.read(b"NULL\tNULL\tv\n", 1) == Line(None, b"v")


def test_lines_that_do_not_fit() -> None:
    with pytest.raises(LineError, match="No key separator found on line number 3: 'c'"):
        LineReader(KEYED).read(b"c\n", 3)
    with pytest.raises(LineError, match="No header key separator found in pair 'h' on line number 1"):
        LineReader({"parse.headers": "true"}).read(b"h\tv", 1)
    assert LineReader({**KEYED, "ignore.error": "true"}).read(b"c\n", 3) == Line(None, b"c")
    with pytest.raises(UsageError, match="may not be equal"):
        LineReader({"headers.delimiter": ","})


def test_unknown_properties_of_lines() -> None:
    assert not list(unknown_keys(READER_KEYS, READER_KEYS, "reader"))
    assert not list(unknown_keys(["key.deserializer.schema"], FORMATTER_KEYS, "formatter"))
    (misspelt,) = unknown_keys(["parse.kye"], READER_KEYS, "reader")
    assert misspelt == "parse.kye is no property of the reader and has no effect; did you mean parse.key?"
    (strange,) = unknown_keys(["print.foo"], FORMATTER_KEYS, "formatter")
    assert strange.startswith(
        "print.foo is no property of the formatter and has no effect; there are print.timestamp, "
    )


def test_records_become_lines() -> None:
    record = ConsumerRecord("t", 2, 7, 1000, 0, b"k", None, (("h", b"x"), ("i", None)))
    assert LineFormatter({}).line(record) == b"null\n"
    everything = {f"print.{each}": "true" for each in ("timestamp", "partition", "offset", "epoch", "headers", "key")}
    line = b"CreateTime:1000\tPartition:2\tOffset:7\tEpoch:NOT_PRESENT\th:x,i:null\tk\tnull\n"
    assert LineFormatter(everything).line(record) == line
    bare = ConsumerRecord("t", 0, 0, 5, 1, None, b"\x00\x00\x01\x00")
    shown = {"print.timestamp": "true", "print.headers": "true", "key.separator": "|", "line.separator": ";"}
    number = {"value.deserializer": "org.apache.kafka.common.serialization.IntegerDeserializer"}
    assert LineFormatter({**shown, **number}).line(bare) == b"LogAppendTime:5|NO_HEADERS|256;"
    with pytest.raises(LineError, match="4 bytes are no value of LongDeserializer"):
        LineFormatter({"value.deserializer": "LongDeserializer"}).line(bare)
    with pytest.raises(UsageError, match=r"com\.acme\.Thing is a Java class"):
        LineFormatter({"value.deserializer": "com.acme.Thing"})


def test_patterns_of_topics() -> None:
    assert [name for name in ("a", "ab", "b") if topics.topic_matcher("a.*")(name)] == ["a", "ab"]
    assert [name for name in ("a", "ab", "b") if topics.topic_matcher("a,b")(name)] == ["a", "b"]
    with pytest.raises(UsageError, match="neither a topic nor a regular expression"):
        topics.topic_matcher("a[")


def test_replica_assignments() -> None:
    assert topics.replica_assignment("1:2,2:1") == [[1, 2], [2, 1]]
    for bad in ("1:x", "1:1", "1:2,1"):
        with pytest.raises(UsageError):
            topics.replica_assignment(bad)


def test_offset_rules() -> None:
    wanted = rules("a:1,b:0-2,c,d:3-,e:-2")
    found = [f"{name}{number}" for name in "abcdef" for number in range(5) if wanted(name, number)]
    assert found == ["a1", "b0", "b1", "c0", "c1", "c2", "c3", "c4", "d3", "d4", "e0", "e1"]
    assert rules(":2")("anything", 2)
    with pytest.raises(Failed, match="Invalid rule specification: t1:x"):
        rules("t1:x")
    assert (timestamp_of("latest"), timestamp_of("-2"), timestamp_of("77")) == (-1, -2, 77)
    with pytest.raises(Failed, match="Malformed time argument soon"):
        timestamp_of("soon")


def test_times_of_resets() -> None:
    assert parse_datetime("2020-01-01T00:00:00.500") == 1577836800500
    assert parse_datetime("2020-01-01T01:00:00.000+01:00") == 1577836800000
    assert parse_duration("P1DT2H3M4S") == timedelta(days=1, hours=2, minutes=3, seconds=4)
    assert parse_duration("PT0.5S") == timedelta(seconds=0.5)
    for bad in ("P", "1H", "PT", "PT5X"):
        with pytest.raises(UsageError, match="PnDTnHnMnS"):
            parse_duration(bad)
    with pytest.raises(UsageError, match="YYYY-MM-DD"):
        parse_datetime("yesterday")


def test_offsets_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "offsets.csv"
    file.write_text('t1,0,5\n"t1",1,6\n\n')
    assert read_csv(str(file), ["g"]) == {"g": {TopicPartition("t1", 0): 5, TopicPartition("t1", 1): 6}}
    file.write_text("g1,t1,0,5\ng2,t1,0,7\n")
    assert read_csv(str(file), ["g1", "g2"])["g2"] == {TopicPartition("t1", 0): 7}
    file.write_text("t1,0\n")
    with pytest.raises(Failed, match=r"offsets.csv:1: 't1,0' is not of the form topic,partition,offset"):
        read_csv(str(file), ["g"])


def test_columns() -> None:
    assert aligned([["A", "B"], ["longer than that", "x"]], [5, 0]) == ["A                B", "longer than that x"]
    assert assignment_text([TopicPartition("a", 0), TopicPartition("a", 2), TopicPartition("b", 1)]) == "a:0,2;b:1"
    assert assignment_text([]) == "-"


def test_entities() -> None:
    def read(line: str) -> list[Entity]:
        return entities(parse(CONFIGS.options, line.split()))

    assert read("--topic t") == read("--entity-type topics --entity-name t") == [Entity("topics", "t")]
    assert read("--entity-type brokers --entity-default") == read("--broker-defaults") == [Entity("brokers", "")]
    assert read("--entity-type users") == [Entity("users", None)]
    both = [Entity("users", "u"), Entity("clients", "")]
    assert read("--entity-type clients --entity-default --entity-type users --entity-name u") == both
    assert read("--user u --client-defaults") == both
    for bad in ("", "--entity-type nonsense", "--topic t --user u", "--entity-name x"):
        with pytest.raises(UsageError):
            read(bad)


def test_registrations_in_zookeeper() -> None:
    registration = {
        "listener_security_protocol_map": {"INSIDE": "PLAINTEXT", "OUTSIDE": "SASL_SSL"},
        "endpoints": ["INSIDE://a:9092", "OUTSIDE://b:9093"],
        "host": "a",
        "port": 9092,
    }
    assert listeners(registration, "PLAINTEXT") == ["a:9092"]
    assert listeners(registration, "sasl_ssl") == ["b:9093"]
    assert listeners(registration, "SSL") == ["a:9092", "b:9093"]
    assert listeners({"host": "old", "port": 9092}, "PLAINTEXT") == ["old:9092"]
    assert listeners({"host": None, "port": -1}, "PLAINTEXT") == []


def test_json_files(tmp_path: Path) -> None:
    file = tmp_path / "f.json"
    for text, message in (
        ("{", r"f\.json:1:2 is no JSON"),
        ("[]", "has no JSON object"),
        ('{"version": 2}', "is of version 2"),
        ("{}", "has no list of partitions"),
        ('{"partitions": [{"topic": "t"}]}', "names no topic and partition"),
        (
            '{"partitions": [{"topic": "t", "partition": 0}, {"topic": "t", "partition": 0}]}',
            "names partition t-0 twice",
        ),
    ):
        file.write_text(text)
        with pytest.raises(Failed, match=message):
            list(partition_entries(str(file), read_json(str(file))))


def test_plans_of_reassignments(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_text('{"partitions": [{"topic": "t", "partition": 0, "replicas": [1, 2], "log_dirs": ["any", "/d"]}]}')
    assert read_plan(str(file)) == ({TopicPartition("t", 0): (1, 2)}, {("t", 0, 2): "/d"})
    file.write_text('{"partitions": [{"topic": "t", "partition": 0, "replicas": [1, 1]}]}')
    with pytest.raises(Failed, match="names a broker twice"):
        read_plan(str(file))
    now = {TopicPartition("t", each): (1, 2) for each in range(3)}
    assert list(spread(now, [1, 2, 3], 0).values()) == [(1, 2), (2, 3), (3, 1)]
    tp = TopicPartition("t", 0)
    assert partition_status(tp, (1,), (1,), moving=False) == "Reassignment of partition t-0 is completed."
    assert partition_status(tp, (1,), (2,), moving=True) == "Reassignment of partition t-0 is still in progress."
    assert "replica set is 2 rather than 1" in partition_status(tp, (1,), (2,), moving=False)


def test_numbers_of_performance() -> None:
    numbers = Latencies(0.0)
    for latency in range(1, 101):
        numbers.add(latency, 1024)
    assert [numbers.percentile(each) for each in (0.5, 0.95, 0.99, 0.999)] == [50, 95, 99, 100]
    assert numbers.summary_line(2.0, "records") == (
        "100 records sent, 50.000000 records/sec (0.05 MB/sec), 50.50 ms avg latency, 100.00 ms max latency, "
        "50 ms 50th, 95 ms 95th, 99 ms 99th, 100 ms 99.9th."
    )
    assert Latencies(0.0).interval_line(1.0).startswith("0 records sent, 0.0 records/sec")
    moment = datetime(2026, 1, 2, 3, 4, 5, 678000)
    assert java_date(moment, "yyyy-MM-dd HH:mm:ss:SSS") == "2026-01-02 03:04:05:678"


def test_metrics_have_kafkas_names() -> None:
    nan = float("nan")
    metrics = {
        "records-lag-max": 3.0, 'request-rate{node-id="node--1"}': 0.25, "commit-latency-avg": nan,
        "a.b-c-0.records-lag": 3, "last-poll-seconds-ago": 1.0,
    }  # fmt: skip
    assert list(metric_lines(metrics, "consumer", "me")) == [
        "\nMetric Name" + " " * 75 + "Value",
        "consumer-coordinator-metrics:commit-latency-avg:{client-id=me}                      : NaN",
        "consumer-fetch-manager-metrics:records-lag-max:{client-id=me}                       : 3.000",
        "consumer-fetch-manager-metrics:records-lag:{client-id=me, topic=a.b-c, partition=0} : 3.000",
        "consumer-metrics:last-poll-seconds-ago:{client-id=me}                               : 1.000",
        "consumer-node-metrics:request-rate:{client-id=me, node-id=node--1}                  : 0.250",
    ]
    assert list(metric_lines({"batch-size-avg": 1.0}, "producer", "me"))[1] == (
        "producer-metrics:batch-size-avg:{client-id=me} : 1.000"
    )
