"""kafka-python."""

from __future__ import annotations

from typing import Any

import kafka  # type: ignore[import-untyped]

from benchmarks.clients.jobs import BATCH_BYTES, KEYS, LINGER_MS, POLL_RECORDS, Job, Numbers, Tally, measured, timed


def _producer(job: Job, linger_ms: int = LINGER_MS) -> Any:
    producer = kafka.KafkaProducer(
        bootstrap_servers=job.bootstrap, acks="all", enable_idempotence=True, linger_ms=linger_ms,
        batch_size=BATCH_BYTES,
    )  # fmt: skip
    producer.send(job.topic, job.value).get(30)
    return producer


def _consumer(job: Job) -> Any:
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=job.bootstrap, auto_offset_reset="earliest", enable_auto_commit=False
    )
    consumer.assign([kafka.TopicPartition(job.topic, 0)])
    return consumer


def produce(job: Job) -> Numbers:
    topic, value = job.topic, job.value
    producer = _producer(job)
    with measured(job.count) as numbers:
        for _ in range(job.count):
            producer.send(topic, value)
        producer.flush(60)
    producer.close()
    return numbers


def produce_keyed(job: Job) -> Numbers:
    topic, value = job.topic, job.value
    producer = _producer(job)
    with measured(job.count) as numbers:
        for index in range(job.count):
            producer.send(topic, value, KEYS[index & 1023])
        producer.flush(60)
    producer.close()
    return numbers


def latency(job: Job) -> Numbers:
    topic, value = job.topic, job.value
    producer = _producer(job, linger_ms=0)
    numbers = timed(lambda: producer.send(topic, value).get(30), job.count)
    producer.close()
    return numbers


def consume(job: Job) -> Numbers:
    tally, size = Tally(job.count), 0
    consumer = _consumer(job)
    partition = kafka.TopicPartition(job.topic, 0)
    while not tally.has_begun:
        tally.took_records(consumer.poll(timeout_ms=1_000, max_records=1).get(partition, ()))
    with measured(tally.left) as numbers:
        while tally.left > 0:
            records = consumer.poll(timeout_ms=1_000, max_records=POLL_RECORDS).get(partition, ())
            for record in records:
                size += len(record.value)
            tally.took_records(records)
    consumer.close()
    return numbers


def iterate(job: Job) -> Numbers:
    tally, size, count = Tally(job.count), 0, 1
    consumer = _consumer(job)
    next(consumer)
    with measured(job.count - 1) as numbers:
        for record in consumer:
            size += len(record.value)
            count += 1
            if count == job.count:
                tally.took(count, record.offset)
                break
    consumer.close()
    return numbers
