"""What producers may ask for: acknowledgements, idempotence, large records, topics that are not there yet."""

from __future__ import annotations

import time

import pytest

from tests.compat.admin import create_topic, end_offset
from tests.compat.batches import batches_of, first_segment
from tests.compat.clients.base import CODECS, Record
from tests.compat.clients.registry import CLIENTS
from tests.compat.samples import sample_records
from tests.support.brokers import Broker

RECORDS = [Record(b"key", b"value %d" % index) for index in range(25)]
LARGE_BYTES = 900_000


def values(bootstrap: str, topic: str, count: int) -> list[bytes | None]:
    return [one.value for one in CLIENTS["confluent-kafka"].read(bootstrap, topic, count=count)]


@pytest.mark.parametrize("acks", [0, 1, -1], ids=["none", "leader", "all"])
@pytest.mark.parametrize("name", list(CLIENTS))
def test_acks(bootstrap: str, topic: str, name: str, acks: int) -> None:
    create_topic(bootstrap, topic)
    CLIENTS[name].write(bootstrap, topic, RECORDS, acks=acks)
    deadline = time.monotonic() + 10
    while end_offset(bootstrap, topic) < len(RECORDS) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert values(bootstrap, topic, len(RECORDS)) == [one.value for one in RECORDS]


@pytest.mark.parametrize("name", list(CLIENTS))
def test_idempotent(broker: Broker, topic: str, name: str) -> None:
    create_topic(broker.bootstrap, topic)
    CLIENTS[name].write(broker.bootstrap, topic, RECORDS, idempotent=True)
    assert values(broker.bootstrap, topic, len(RECORDS)) == [one.value for one in RECORDS]
    batches = batches_of(first_segment(broker.partition_dir(topic)))
    assert all(batch.producer_id >= 0 for batch in batches)
    assert [batch.base_sequence for batch in batches] == [batch.base_offset for batch in batches]


@pytest.mark.parametrize("codec", CODECS)
def test_idempotent_with_every_codec(broker: Broker, topic: str, codec: str) -> None:
    """Several producers of one topic: each has an id of its own and starts its own sequence."""
    create_topic(broker.bootstrap, topic)
    for name in ("confluent-kafka", "java", "franz-go"):
        CLIENTS[name].write(broker.bootstrap, topic, sample_records(), codec=codec, idempotent=True)
    batches = batches_of(first_segment(broker.partition_dir(topic)))
    assert len({batch.producer_id for batch in batches}) == 3
    assert end_offset(broker.bootstrap, topic) == 3 * len(sample_records())


@pytest.mark.parametrize("name", list(CLIENTS))
def test_large_record(bootstrap: str, topic: str, name: str) -> None:
    create_topic(bootstrap, topic)
    value = b"0123456789" * (LARGE_BYTES // 10)
    CLIENTS[name].write(bootstrap, topic, [Record(b"key", value), Record(b"key", b"after")])
    assert values(bootstrap, topic, 2) == [value, b"after"]


@pytest.mark.parametrize("name", list(CLIENTS))
def test_topic_is_made_by_asking_for_it(bootstrap: str, topic: str, name: str) -> None:
    CLIENTS[name].write(bootstrap, topic, RECORDS[:1])
    assert values(bootstrap, topic, 1) == [RECORDS[0].value]


def test_many_partitions(bootstrap: str, topic: str) -> None:
    partitions = 60
    create_topic(bootstrap, topic, partitions)
    client = CLIENTS["kafka-python"]
    for partition in (0, 7, 59):
        client.write(bootstrap, topic, RECORDS[: partition % 5 + 1], partition=partition)
    for partition in (0, 7, 59):
        read = CLIENTS["java"].read(bootstrap, topic, partition=partition, count=partition % 5 + 1)
        assert [one.offset for one in read] == list(range(partition % 5 + 1))
    assert end_offset(bootstrap, topic, 30) == 0
