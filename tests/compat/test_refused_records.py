"""Records that are too large or otherwise refused: the broker's code reaches each client as its own error."""

from __future__ import annotations

import asyncio
import time

import aiokafka.errors
import confluent_kafka
import kafka.errors
import pytest
from confluent_kafka import KafkaError, KafkaException

from tests.compat.admin import create_topic, end_offset
from tests.compat.clients.base import Record
from tests.compat.clients.registry import CLIENTS

TOO_LARGE = Record(b"key", b"x" * 1_500_000)
FINE = Record(b"key", b"fine")


def refused_by_the_broker(bootstrap: str, topic: str, name: str) -> str:
    """The text of the error which a client gets for the record above (its own limit is raised before)."""
    with pytest.raises((RuntimeError, KafkaException, kafka.errors.KafkaError)) as caught:
        CLIENTS[name].write(bootstrap, topic, [TOO_LARGE])
    return repr(caught.value)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("confluent-kafka", "MSG_SIZE_TOO_LARGE"),
        ("aiokafka", "MessageSizeTooLargeError"),
        ("kafka-python", "MessageSizeTooLargeError"),
        ("kcat", "Message size too large"),
        ("java", "RecordTooLargeException"),
        ("sarama", "Message was too large"),
        ("kafkajs", "MESSAGE_TOO_LARGE"),
        ("platformatic", "MESSAGE_TOO_LARGE"),
    ],
)
def test_larger_than_the_topic_allows(bootstrap: str, topic: str, name: str, expected: str) -> None:
    create_topic(bootstrap, topic)
    assert expected in refused_by_the_broker(bootstrap, topic, name)
    # Nothing was appended, and the topic goes on.
    CLIENTS[name].write(bootstrap, topic, [FINE])
    assert end_offset(bootstrap, topic) == 1


def test_limit_of_the_topic(bootstrap: str, topic: str) -> None:
    create_topic(bootstrap, topic, configs={"max.message.bytes": "3000000"})
    CLIENTS["java"].write(bootstrap, topic, [TOO_LARGE])
    assert CLIENTS["confluent-kafka"].read(bootstrap, topic)[0].value == TOO_LARGE.value


def test_limits_of_the_clients(bootstrap: str, topic: str) -> None:
    """With their own defaults the clients refuse before the broker is asked."""
    create_topic(bootstrap, topic)
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap})
    with pytest.raises(KafkaException) as caught:
        producer.produce(topic, TOO_LARGE.value)
    assert caught.value.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE
    with (
        kafka.KafkaProducer(bootstrap_servers=bootstrap) as other,
        pytest.raises(kafka.errors.MessageSizeTooLargeError),
    ):
        other.send(topic, TOO_LARGE.value).get(10)

    async def run() -> None:
        async with aiokafka.AIOKafkaProducer(bootstrap_servers=bootstrap) as third:
            with pytest.raises(aiokafka.errors.MessageSizeTooLargeError):
                await third.send(topic, TOO_LARGE.value)

    asyncio.run(run())
    assert end_offset(bootstrap, topic) == 0


def error_code(bootstrap: str, topic: str, record: Record) -> int:
    with pytest.raises(KafkaException) as caught:
        CLIENTS["confluent-kafka"].write(bootstrap, topic, [record])
    return int(caught.value.args[0].code())


def test_record_without_key_on_a_compacted_topic(bootstrap: str, topic: str) -> None:
    create_topic(bootstrap, topic, configs={"cleanup.policy": "compact"})
    assert error_code(bootstrap, topic, Record(None, b"value")) == KafkaError.INVALID_RECORD
    CLIENTS["confluent-kafka"].write(bootstrap, topic, [FINE])
    assert end_offset(bootstrap, topic) == 1


def test_time_stamp_out_of_bounds(bootstrap: str, topic: str) -> None:
    bounds = {"message.timestamp.before.max.ms": "60000", "message.timestamp.after.max.ms": "60000"}
    create_topic(bootstrap, topic, configs=bounds)
    now = int(time.time() * 1000)
    for wrong in (now - 120_000, now + 120_000):
        assert error_code(bootstrap, topic, FINE._replace(timestamp=wrong)) == KafkaError.INVALID_TIMESTAMP
    CLIENTS["confluent-kafka"].write(bootstrap, topic, [FINE._replace(timestamp=now)])
    assert end_offset(bootstrap, topic) == 1


def test_log_append_time(bootstrap: str, topic: str) -> None:
    create_topic(bootstrap, topic, configs={"message.timestamp.type": "LogAppendTime"})
    before = int(time.time() * 1000)
    CLIENTS["java"].write(bootstrap, topic, [FINE._replace(timestamp=1000)] * 3, codec="gzip")
    seen = {
        name: [one.timestamp for one in CLIENTS[name].read(bootstrap, topic, count=3)] for name in ("java", "sarama")
    }
    assert seen["java"] == seen["sarama"]
    assert all(stamp is not None and before <= stamp <= before + 30_000 for stamp in seen["java"])


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd", "uncompressed"])
def test_codec_of_the_topic(bootstrap: str, topic: str, codec: str) -> None:
    """The broker compresses anew when the topic asks for another codec; every language reads the result."""
    create_topic(bootstrap, topic, configs={"compression.type": codec})
    now = int(time.time() * 1000)
    records = [Record(b"key", b"value %d " % index * 30, (("h", b"x"),), now + index) for index in range(50)]
    for produced in ("lz4", "none", "snappy"):
        CLIENTS["confluent-kafka"].write(bootstrap, topic, records, codec=produced)
    expected = [one._replace(offset=index) for index, one in enumerate(records * 3)]
    for name in ("confluent-kafka", "kafka-python", "aiokafka", "java", "franz-go", "sarama"):
        assert CLIENTS[name].read(bootstrap, topic, count=150) == expected, name
