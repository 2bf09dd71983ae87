"""The application of the sample project: it confirms orders."""

from __future__ import annotations

from confluent_kafka import Consumer, KafkaException, Producer


def confirm(bootstrap_servers: str, source: str, target: str, *, count: int) -> None:
    """Read `count` orders and write a confirmation of each."""
    common = {"bootstrap.servers": bootstrap_servers, "log_level": 0}
    consumer = Consumer({**common, "group.id": "orders", "auto.offset.reset": "earliest", "enable.auto.commit": False})
    producer = Producer({**common, "retry.backoff.ms": 50, "enable.idempotence": True})
    failures: list[object] = []
    consumer.subscribe([source])
    try:
        for _ in range(count):
            message = consumer.poll(20)
            assert message is not None, "no order came"
            confirmed = b"confirmed " + message.value()
            producer.produce(target, confirmed, on_delivery=lambda error, _: error and failures.append(error))
        producer.flush(20)
        if failures:
            raise KafkaException(failures[0])
        consumer.commit(asynchronous=False)
    finally:
        consumer.close()
