"""aiokafka, on uvloop as the asyncio face of Penstock is."""

from __future__ import annotations

import time
from typing import Any

import aiokafka  # type: ignore[import-untyped]
import uvloop

from benchmarks.clients.jobs import (
    BATCH_BYTES,
    KEYS,
    LINGER_MS,
    POLL_RECORDS,
    Job,
    Numbers,
    Tally,
    measured,
    percentiles,
)


def _producer(job: Job, linger_ms: int = LINGER_MS) -> Any:
    return aiokafka.AIOKafkaProducer(
        bootstrap_servers=job.bootstrap, acks="all", enable_idempotence=True, linger_ms=linger_ms,
        max_batch_size=BATCH_BYTES,
    )  # fmt: skip


async def _consumer(job: Job) -> Any:
    consumer = aiokafka.AIOKafkaConsumer(
        bootstrap_servers=job.bootstrap, auto_offset_reset="earliest", enable_auto_commit=False
    )
    await consumer.start()
    consumer.assign([aiokafka.TopicPartition(job.topic, 0)])
    return consumer


async def _produce(job: Job) -> Numbers:
    topic, value = job.topic, job.value
    async with _producer(job) as producer:
        await producer.send_and_wait(topic, value)
        with measured(job.count) as numbers:
            for _ in range(job.count):
                await producer.send(topic, value)
            await producer.flush()
    return numbers


async def _produce_keyed(job: Job) -> Numbers:
    topic, value = job.topic, job.value
    async with _producer(job) as producer:
        await producer.send_and_wait(topic, value)
        with measured(job.count) as numbers:
            for index in range(job.count):
                await producer.send(topic, value, KEYS[index & 1023])
            await producer.flush()
    return numbers


async def _latency(job: Job) -> Numbers:
    latencies: list[float] = []
    async with _producer(job, linger_ms=0) as producer:
        await producer.send_and_wait(job.topic, job.value)
        for _ in range(job.count // 10 + job.count):
            started = time.perf_counter()
            await producer.send_and_wait(job.topic, job.value)
            latencies.append(time.perf_counter() - started)
    return percentiles(latencies[job.count // 10 :])


async def _consume(job: Job) -> Numbers:
    tally, size = Tally(job.count), 0
    consumer = await _consumer(job)
    partition = aiokafka.TopicPartition(job.topic, 0)
    while not tally.has_begun:
        tally.took_records((await consumer.getmany(timeout_ms=1_000, max_records=1)).get(partition, ()))
    with measured(tally.left) as numbers:
        while tally.left > 0:
            found = await consumer.getmany(timeout_ms=1_000, max_records=POLL_RECORDS)
            records = found.get(partition, ())
            for record in records:
                size += len(record.value)
            tally.took_records(records)
    await consumer.stop()
    return numbers


async def _iterate(job: Job) -> Numbers:
    tally, size, count = Tally(job.count), 0, 1
    consumer = await _consumer(job)
    await consumer.getone()
    with measured(job.count - 1) as numbers:
        async for record in consumer:
            size += len(record.value)
            count += 1
            if count == job.count:
                tally.took(count, record.offset)
                break
    await consumer.stop()
    return numbers


def produce(job: Job) -> Numbers:
    return uvloop.run(_produce(job))


def produce_keyed(job: Job) -> Numbers:
    return uvloop.run(_produce_keyed(job))


def latency(job: Job) -> Numbers:
    return uvloop.run(_latency(job))


def consume(job: Job) -> Numbers:
    return uvloop.run(_consume(job))


def iterate(job: Job) -> Numbers:
    return uvloop.run(_iterate(job))
