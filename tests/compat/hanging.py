"""A transaction that hangs: nobody will ever end it."""

from __future__ import annotations

from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from penstock.records.builder import build_batch
from penstock.records.record import Record
from tests.support.brokers import Broker
from tests.support.raw_client import connect


def write_hanging(broker: Broker, topic: str) -> None:
    """A record of a transaction that no coordinator knows; `transaction.partition.verification.enable` must be off."""
    record = Record(1000, b"k", b"v", ())
    batch = build_batch([record], producer_id=4711, producer_epoch=3, base_sequence=0, transactional=True)
    data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=batch)])
    request = ProduceRequest(transactional_id="lost", acks=-1, timeout_ms=10_000, topic_data=[data])
    with connect("127.0.0.1", broker.port) as client:
        answer = client.call(ApiKey.PRODUCE, 11, request)
    assert answer.responses[0].partition_responses[0].error_code == 0
