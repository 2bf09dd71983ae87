"""Options in the words of Spark's Kafka connector."""

from __future__ import annotations

import pytest

from penstock.base.types import TopicPartition
from penstock.sql.spark.source.options import ReadOptions, read_options, write_options

ADDRESS = {"kafka.bootstrap.servers": "b:1"}


def parsed(streaming: bool = True, **options: str) -> ReadOptions:
    return read_options({**ADDRESS, "subscribe": "t", **options}, streaming=streaming)


def test_topics_are_given_in_one_of_three_ways() -> None:
    assert read_options({**ADDRESS, "subscribe": "a, b"}, streaming=True).topics == ("a", "b")
    assert read_options({**ADDRESS, "subscribePattern": "a.*"}, streaming=True).pattern == "a.*"
    chosen = read_options({**ADDRESS, "assign": '{"a":[0,2]}'}, streaming=True).assigned
    assert chosen == (TopicPartition("a", 0), TopicPartition("a", 2))


def test_a_stream_begins_at_the_end_and_a_batch_at_the_beginning() -> None:
    assert parsed(streaming=True).starting.kind == "latest"
    assert parsed(streaming=False).starting.kind == "earliest"
    assert parsed(streaming=False).ending.kind == "latest"


def test_a_time_wins_over_times_by_partition_and_those_over_offsets() -> None:
    offsets, times = '{"t":{"0":5}}', '{"t":{"0":1000}}'
    assert parsed(startingOffsets=offsets).starting.offsets == {TopicPartition("t", 0): 5}
    assert parsed(startingOffsets=offsets, startingOffsetsByTimestamp=times).starting.kind == "timestamps"
    rule = parsed(startingOffsetsByTimestamp=times, startingTimestamp="7").starting
    assert (rule.kind, rule.timestamp, rule.strategy) == ("timestamp", 7, "error")


def test_kafka_options_go_to_the_client() -> None:
    options = parsed(**{"kafka.security.protocol": "SSL", "kafka.isolation.level": "read_uncommitted"})
    assert options.reading_client()["security.protocol"] == "SSL"
    assert options.reading_client()["isolation.level"] == "read_uncommitted"
    assert parsed().reading_client()["isolation.level"] == "read_committed"


@pytest.mark.parametrize(("text", "seconds"), [("15m", 900), ("30s", 30), ("500ms", 0.5), ("2h", 7200), ("250", 0.25)])
def test_durations(text: str, seconds: float) -> None:
    assert parsed(maxTriggerDelay=text).trigger_delay_max_s == seconds


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({}, "subscribe"),
        ({"subscribe": "a", "assign": "{}"}, "exactly one"),
        ({"assign": "{"}, "assign"),
        ({"assign": '{"a":["x"]}'}, "assign"),
        ({"subscribe": "a", "startingOffsets": "first"}, "startingOffsets"),
        ({"subscribe": "a", "startingOffsets": '{"a":{"0":-3}}'}, "startingOffsets"),
        ({"subscribe": "a", "maxOffsetsPerTrigger": "many"}, "maxOffsetsPerTrigger"),
        ({"subscribe": "a", "failOnDataLoss": "perhaps"}, "failOnDataLoss"),
        ({"subscribe": "a", "maxTriggerDelay": "soon"}, "maxTriggerDelay"),
        ({"subscribe": "a", "endingOffsets": "latest"}, "endingOffsets"),
        ({"subscribe": "a", "kafka.auto.offset.reset": "earliest"}, r"kafka\.auto\.offset\.reset"),
    ],
)
def test_a_wrong_option_is_named(options: dict[str, str], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        read_options({**ADDRESS, **options}, streaming=True)


def test_the_address_is_needed() -> None:
    with pytest.raises(ValueError, match=r"kafka\.bootstrap\.servers"):
        read_options({"subscribe": "t"}, streaming=True)
    with pytest.raises(ValueError, match=r"kafka\.bootstrap\.servers"):
        write_options({"topic": "t"})
