"""`penstock.aio.Producer` and `penstock.aio.Consumer`."""

from __future__ import annotations

import time

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
from penstock import TopicPartition
from penstock.aio import Consumer, Producer


def _producer(job: Job, linger_ms: int = LINGER_MS) -> Producer:
    return Producer(bootstrap_servers=job.bootstrap, linger_ms=linger_ms, batch_size=BATCH_BYTES)


def _consumer(job: Job) -> Consumer:
    return Consumer(
        bootstrap_servers=job.bootstrap, auto_offset_reset="earliest", enable_auto_commit=False,
        max_poll_records=POLL_RECORDS,
    )  # fmt: skip


async def _produce(job: Job) -> Numbers:
    topic, value = job.topic, job.value
    async with _producer(job) as producer:
        await (await producer.send(topic, value))
        with measured(job.count) as numbers:
            for _ in range(job.count):
                await producer.send(topic, value)
            await producer.flush()
    return numbers


async def _produce_keyed(job: Job) -> Numbers:
    topic, value = job.topic, job.value
    async with _producer(job) as producer:
        await (await producer.send(topic, value))
        with measured(job.count) as numbers:
            for index in range(job.count):
                await producer.send(topic, value, KEYS[index & 1023])
            await producer.flush()
    return numbers


async def _latency(job: Job) -> Numbers:
    latencies: list[float] = []
    async with _producer(job, linger_ms=0) as producer:
        await (await producer.send(job.topic, job.value))
        for _ in range(job.count // 10 + job.count):
            started = time.perf_counter()
            await (await producer.send(job.topic, job.value))
            latencies.append(time.perf_counter() - started)
    return percentiles(latencies[job.count // 10 :])


async def _consume(job: Job) -> Numbers:
    tally, size = Tally(job.count), 0
    async with _consumer(job) as consumer:
        consumer.assign([TopicPartition(job.topic, 0)])
        while not tally.has_begun:
            tally.took_records(await consumer.poll(1_000))
        with measured(tally.left) as numbers:
            while tally.left > 0:
                records = await consumer.poll(1_000)
                for record in records:
                    size += len(record.value)
                tally.took_records(records)
    return numbers


async def _iterate(job: Job) -> Numbers:
    tally, size, count = Tally(job.count), 0, 1
    async with _consumer(job) as consumer:
        consumer.assign([TopicPartition(job.topic, 0)])
        records = aiter(consumer)
        await anext(records)
        with measured(job.count - 1) as numbers:
            async for record in records:
                size += len(record.value)
                count += 1
                if count == job.count:
                    tally.took(count, record.offset)
                    break
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
