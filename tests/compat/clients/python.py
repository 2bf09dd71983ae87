"""The Python clients: confluent-kafka (librdkafka), aiokafka, kafka-python."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import aiokafka
import confluent_kafka
import kafka

from tests.compat.clients.base import Client, Record, without_null_headers

READ_TIMEOUT_S = 40.0
MAX_REQUEST_BYTES = 20_000_000


class Confluent(Client):
    """confluent-kafka. Its consumer wants a group id even when nothing is done with it."""

    name = "confluent-kafka"

    def write(
        self,
        bootstrap: str,
        topic: str,
        records: Sequence[Record],
        *,
        codec: str = "none",
        partition: int = 0,
        acks: int = -1,
        idempotent: bool = False,
    ) -> None:
        errors: list[confluent_kafka.KafkaError] = []
        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "compression.codec": codec,
                "acks": acks,
                "enable.idempotence": idempotent,
                "linger.ms": 20,
                "message.max.bytes": MAX_REQUEST_BYTES,
                "message.timeout.ms": int(READ_TIMEOUT_S * 1000),
            }
        )
        for record in records:
            extra: dict[str, Any] = {} if record.timestamp is None else {"timestamp": record.timestamp}
            producer.produce(
                topic,
                key=record.key,
                value=record.value,
                headers=list(record.headers),
                partition=partition,
                on_delivery=lambda error, _message: errors.append(error) if error else None,
                **extra,
            )
        left = producer.flush(READ_TIMEOUT_S)
        if errors:
            raise confluent_kafka.KafkaException(errors[0])
        assert left == 0, f"{left} records were not acknowledged"

    def read(self, bootstrap: str, topic: str, *, partition: int = 0, start: int = 0, count: int = 1) -> list[Record]:
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "unused",
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 100,
            }
        )
        try:
            consumer.assign([confluent_kafka.TopicPartition(topic, partition, start)])
            return self._poll(consumer, count)
        finally:
            consumer.close()

    def _poll(self, consumer: Any, count: int) -> list[Record]:
        records: list[Record] = []
        deadline = time.monotonic() + READ_TIMEOUT_S
        while len(records) < count and time.monotonic() < deadline:
            for message in consumer.consume(count - len(records), timeout=0.2):
                if message.error():
                    raise confluent_kafka.KafkaException(message.error())
                records.append(
                    Record(
                        key=message.key(),
                        value=message.value(),
                        headers=tuple(message.headers() or ()),
                        timestamp=message.timestamp()[1],
                        offset=message.offset(),
                    )
                )
        return records


class AioKafka(Client):
    """aiokafka."""

    name = "aiokafka"
    writes_xerial_snappy = True

    def write(
        self,
        bootstrap: str,
        topic: str,
        records: Sequence[Record],
        *,
        codec: str = "none",
        partition: int = 0,
        acks: int = -1,
        idempotent: bool = False,
    ) -> None:
        async def run() -> None:
            async with aiokafka.AIOKafkaProducer(
                bootstrap_servers=bootstrap,
                compression_type=None if codec == "none" else codec,
                acks=acks,
                enable_idempotence=idempotent,
                linger_ms=20,
                max_request_size=MAX_REQUEST_BYTES,
                max_batch_size=MAX_REQUEST_BYTES if any(len(one.value or b"") > 16384 for one in records) else 16384,
            ) as producer:
                sent = [
                    await producer.send(
                        topic,
                        key=one.key,
                        value=one.value,
                        headers=list(one.headers),
                        partition=partition,
                        timestamp_ms=one.timestamp,
                    )
                    for one in records
                ]
                await asyncio.gather(*sent)

        asyncio.run(asyncio.wait_for(run(), READ_TIMEOUT_S))

    def read(self, bootstrap: str, topic: str, *, partition: int = 0, start: int = 0, count: int = 1) -> list[Record]:
        async def run() -> list[Record]:
            records: list[Record] = []
            place = aiokafka.TopicPartition(topic, partition)
            async with aiokafka.AIOKafkaConsumer(bootstrap_servers=bootstrap, group_id=None) as consumer:
                consumer.assign([place])
                consumer.seek(place, start)
                while len(records) < count:
                    got = await consumer.getmany(place, timeout_ms=200)
                    records += [
                        Record(
                            key=one.key,
                            value=one.value,
                            headers=tuple(one.headers),
                            timestamp=one.timestamp,
                            offset=one.offset,
                        )
                        for one in got.get(place, [])
                    ]
            return records

        return asyncio.run(asyncio.wait_for(run(), READ_TIMEOUT_S))


class KafkaPython(Client):
    """kafka-python."""

    name = "kafka-python"
    writes_xerial_snappy = True

    def as_written(self, records: Sequence[Record]) -> list[Record]:
        return without_null_headers(records)

    def write(
        self,
        bootstrap: str,
        topic: str,
        records: Sequence[Record],
        *,
        codec: str = "none",
        partition: int = 0,
        acks: int = -1,
        idempotent: bool = False,
    ) -> None:
        producer = kafka.KafkaProducer(
            bootstrap_servers=bootstrap,
            compression_type=None if codec == "none" else codec,
            acks=acks,
            enable_idempotence=idempotent,
            linger_ms=20,
            max_request_size=MAX_REQUEST_BYTES,
            delivery_timeout_ms=int(READ_TIMEOUT_S * 1000),
            request_timeout_ms=10_000,
        )
        try:
            sent = [
                producer.send(
                    topic,
                    key=one.key,
                    value=one.value,
                    headers=list(one.headers),
                    partition=partition,
                    timestamp_ms=one.timestamp,
                )
                for one in records
            ]
            producer.flush(READ_TIMEOUT_S)
            for future in sent:
                future.get(READ_TIMEOUT_S)
        finally:
            producer.close(timeout=5)

    def read(self, bootstrap: str, topic: str, *, partition: int = 0, start: int = 0, count: int = 1) -> list[Record]:
        place = kafka.TopicPartition(topic, partition)
        consumer = kafka.KafkaConsumer(bootstrap_servers=bootstrap, group_id=None, enable_auto_commit=False)
        records: list[Record] = []
        deadline = time.monotonic() + READ_TIMEOUT_S
        try:
            consumer.assign([place])
            consumer.seek(place, start)
            while len(records) < count and time.monotonic() < deadline:
                records += [
                    Record(
                        key=one.key,
                        value=one.value,
                        headers=tuple(one.headers),
                        timestamp=one.timestamp,
                        offset=one.offset,
                    )
                    for one in consumer.poll(timeout_ms=200).get(place, [])
                ]
        finally:
            consumer.close()
        return records
