"""`penstock.Producer` and `penstock.Consumer`, record by record and by batch."""

from __future__ import annotations

from typing import Any, Final

from benchmarks.clients.jobs import BATCH_BYTES, KEYS, LINGER_MS, POLL_RECORDS, Job, Numbers, Tally, measured, timed
from penstock import Consumer, Producer, TopicPartition

CALL_BYTES: Final = 10_000_000
"""Values of one `send_many`, about."""


def _producer(job: Job, linger_ms: int = LINGER_MS) -> Producer:
    producer = Producer(bootstrap_servers=job.bootstrap, linger_ms=linger_ms, batch_size=BATCH_BYTES)
    producer.send(job.topic, job.value).result(30)
    return producer


def _consumer(job: Job) -> Consumer:
    consumer = Consumer(
        bootstrap_servers=job.bootstrap, auto_offset_reset="earliest", enable_auto_commit=False,
        max_poll_records=POLL_RECORDS,
    )  # fmt: skip
    consumer.assign([TopicPartition(job.topic, 0)])
    return consumer


def produce(job: Job) -> Numbers:
    topic, value = job.topic, job.value
    with _producer(job) as producer, measured(job.count) as numbers:
        send = producer.send
        for _ in range(job.count):
            send(topic, value)
        producer.flush()
    return numbers


def produce_keyed(job: Job) -> Numbers:
    topic, value = job.topic, job.value
    with _producer(job) as producer, measured(job.count) as numbers:
        send = producer.send
        for index in range(job.count):
            send(topic, value, KEYS[index & 1023])
        producer.flush()
    return numbers


def latency(job: Job) -> Numbers:
    topic, value = job.topic, job.value
    with _producer(job, linger_ms=0) as producer:
        return timed(lambda: producer.send(topic, value).result(30), job.count)


def consume(job: Job) -> Numbers:
    tally, size = Tally(job.count), 0
    with _consumer(job) as consumer:
        while not tally.has_begun:
            records = consumer.poll(1_000)
            tally.took_records(records)
        with measured(tally.left) as numbers:
            while tally.left > 0:
                records = consumer.poll(1_000)
                for record in records:
                    size += len(record.value)
                tally.took_records(records)
    return numbers


def iterate(job: Job) -> Numbers:
    tally, size, count = Tally(job.count), 0, 1
    with _consumer(job) as consumer:
        records = iter(consumer)
        next(records)
        with measured(job.count - 1) as numbers:
            for record in records:
                size += len(record.value)
                count += 1
                if count == job.count:
                    tally.took(count, record.offset)
                    break
    return numbers


def send_many_list(job: Job) -> Numbers:
    values = [job.value] * min(job.count, CALL_BYTES // job.value_bytes)
    with _producer(job) as producer, measured(job.count) as numbers:
        for start in range(0, job.count, len(values)):
            producer.send_many(job.topic, values[: job.count - start])
        producer.flush()
    return numbers


def send_many_arrow(job: Job) -> Numbers:
    import pyarrow

    rows = min(job.count, CALL_BYTES // job.value_bytes)
    table: Any = pyarrow.table({"value": pyarrow.array([job.value] * rows, pyarrow.binary())})
    with _producer(job) as producer, measured(job.count) as numbers:
        for start in range(0, job.count, rows):
            producer.send_many(job.topic, table.slice(0, job.count - start))
        producer.flush()
    return numbers


def consume_arrow(job: Job) -> Numbers:
    import pyarrow.compute  # not to measure the import

    del pyarrow
    tally = Tally(job.count)
    with _consumer(job) as consumer:
        while not tally.has_begun:
            tally.took_rows(consumer.consume_arrow(1_000, 1_000))
        with measured(tally.left) as numbers:
            while tally.left > 0:
                tally.took_rows(consumer.consume_arrow(1_000))
    return numbers
