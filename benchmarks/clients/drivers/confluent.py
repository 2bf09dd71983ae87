"""confluent-kafka: librdkafka, whose I/O is in C threads."""

from __future__ import annotations

from typing import Any

import confluent_kafka

from benchmarks.clients.jobs import BATCH_BYTES, KEYS, LINGER_MS, POLL_RECORDS, Job, Numbers, Tally, measured, timed


def _producer(job: Job, linger_ms: int = LINGER_MS) -> Any:
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": job.bootstrap,
            "linger.ms": linger_ms,
            "batch.size": BATCH_BYTES,
            "acks": "all",
            "enable.idempotence": True,
        }
    )
    producer.produce(job.topic, job.value)
    _flush(producer)
    return producer


def _consumer(job: Job) -> Any:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": job.bootstrap,
            "group.id": "bench",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            # With its own back-off it pauses for a second whenever it has queued enough: that is not its speed.
            "fetch.queue.backoff.ms": 5,
        }
    )
    consumer.assign([confluent_kafka.TopicPartition(job.topic, 0, 0)])
    return consumer


def _flush(producer: Any) -> None:
    left = producer.flush(60)
    if left:
        raise RuntimeError(f"{left} records were not sent after 60 s")


def produce(job: Job) -> Numbers:
    topic, value = job.topic, job.value
    producer = _producer(job)
    with measured(job.count) as numbers:
        for _ in range(job.count):
            while True:
                try:
                    producer.produce(topic, value)
                    break
                except BufferError:
                    producer.poll(0.01)
        _flush(producer)
    return numbers


def produce_keyed(job: Job) -> Numbers:
    topic, value = job.topic, job.value
    producer = _producer(job)
    with measured(job.count) as numbers:
        for index in range(job.count):
            while True:
                try:
                    producer.produce(topic, value, KEYS[index & 1023])
                    break
                except BufferError:
                    producer.poll(0.01)
        _flush(producer)
    return numbers


def latency(job: Job) -> Numbers:
    topic, value = job.topic, job.value
    producer = _producer(job, linger_ms=0)
    done: list[Any] = []

    def delivered(error: Any, _: Any) -> None:
        if error is not None:
            raise RuntimeError(str(error))
        done.append(True)

    def send_and_wait() -> None:
        done.clear()
        producer.produce(topic, value, on_delivery=delivered)
        while not done:
            producer.poll(1)

    return timed(send_and_wait, job.count)


def _took(tally: Tally, messages: list[Any]) -> None:
    if messages:
        tally.took(len(messages), messages[-1].offset())
    else:
        tally.took_nothing()


def consume(job: Job) -> Numbers:
    tally, size = Tally(job.count), 0
    consumer = _consumer(job)
    while not tally.has_begun:
        _took(tally, consumer.consume(1, 1))
    with measured(tally.left) as numbers:
        while tally.left > 0:
            # It waits until it has as many as it was asked for: never for more than there are.
            messages = consumer.consume(min(POLL_RECORDS, tally.left), 1)
            for message in messages:
                size += len(message.value())
            _took(tally, messages)
    consumer.close()
    return numbers


def iterate(job: Job) -> Numbers:
    tally, size, count = Tally(job.count), 0, 1
    consumer = _consumer(job)
    consumer.poll(20)
    with measured(job.count - 1) as numbers:
        while count < job.count:
            message = consumer.poll(20)
            if message is None or message.error():
                raise RuntimeError(f"{count} records were read, then {message and message.error()}")
            size += len(message.value())
            count += 1
        tally.took(count, message.offset())
    consumer.close()
    return numbers
