"""Records for the consumer's tests, written over the plain protocol, so that no producer is needed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from penstock.base.errors import ErrorCode
from penstock.client.config import ClientConfig, ClientKind
from penstock.client.core.client import ClientCore
from penstock.client.core.loop_thread import LoopThread
from penstock.client.errors import error_for
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from penstock.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from penstock.records.builder import build_batch
from penstock.records.compression import Codec
from penstock.records.record import ConsumerRecord, Record

TIMEOUT_MS = 60_000


def batch(values: Iterable[bytes | None], *, codec: Codec = Codec.NONE, timestamp: int | None = None) -> bytes:
    at = int(time.time() * 1000) if timestamp is None else timestamp
    return build_batch([Record(at, b"key", value, (("h", b"x"),)) for value in values], codec=codec)


def produce(bootstrap: str, topic: str, values: Iterable[bytes | None], partition: int = 0, **options: Any) -> int:
    """The offset of the first record."""
    return produce_batch(bootstrap, topic, batch(values, **options), partition)


def produce_batch(bootstrap: str, topic: str, data: bytes, partition: int = 0) -> int:
    offset: int = in_core(bootstrap, lambda core: _produce(core, topic, partition, data))
    return offset


def numbers(count: int, start: int = 0) -> list[bytes]:
    return [b"%d" % index for index in range(start, start + count)]


def delete_records(bootstrap: str, topic: str, offset: int, partition: int = 0) -> None:
    """Everything before `offset` goes."""
    chosen = DeleteRecordsTopic(
        name=topic, partitions=[DeleteRecordsPartition(partition_index=partition, offset=offset)]
    )
    request = DeleteRecordsRequest(topics=[chosen], timeout_ms=TIMEOUT_MS)

    async def work(core: ClientCore) -> None:
        leader = await _leader(core, topic, partition)
        answer = await core.send(leader, ApiKey.DELETE_RECORDS, request, timeout_ms=TIMEOUT_MS)
        code = answer.topics[0].partitions[0].error_code
        if code:
            raise error_for(code)

    in_core(bootstrap, work)


def in_core(bootstrap: str, work: Callable[[ClientCore], Any]) -> Any:
    async def run() -> Any:
        core = ClientCore(ClientConfig(ClientKind.ADMIN, {"bootstrap.servers": bootstrap}))
        await core.start()
        try:
            return await work(core)
        finally:
            await core.close()

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(run())
    thread = LoopThread("test-produce")
    try:
        return thread.run(run(), TIMEOUT_MS / 1000)
    finally:
        thread.close()


async def _leader(core: ClientCore, topic: str, partition: int) -> int:
    info = await core.metadata.topic(topic, TIMEOUT_MS)
    leader = info.partitions[partition].leader
    assert leader is not None
    return leader


async def _produce(core: ClientCore, topic: str, partition: int, data: bytes) -> int:
    request = ProduceRequest(
        acks=-1,
        timeout_ms=TIMEOUT_MS,
        topic_data=[TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=partition, records=data)])],
    )
    async for attempt in core.retry(timeout_ms=TIMEOUT_MS, what="producing"):
        leader = await _leader(core, topic, partition)
        answer = await core.send(leader, ApiKey.PRODUCE, request, timeout_ms=TIMEOUT_MS, at_most=12)
        response = answer.responses[0].partition_responses[0]
        if response.error_code == ErrorCode.NONE:
            offset: int = response.base_offset
            return offset
        attempt.failed(error_for(response.error_code, response.error_message))
    raise AssertionError("unreachable")


def values(records: Sequence[ConsumerRecord]) -> list[Any]:
    return [record.value for record in records]


def read(consumer: Any, count: int, timeout_s: float = 60.0, poll_ms: float = 500) -> list[ConsumerRecord]:
    """Exactly `count` records, from as many polls as it takes."""
    deadline = time.monotonic() + timeout_s
    found: list[ConsumerRecord] = []
    while len(found) < count:
        assert time.monotonic() < deadline, f"{len(found)} of {count} records came in {timeout_s} s"
        found += consumer.poll(poll_ms)
    assert len(found) == count
    return found


async def read_async(consumer: Any, count: int, timeout_s: float = 60.0) -> list[ConsumerRecord]:
    found: list[ConsumerRecord] = []
    async with asyncio.timeout(timeout_s):
        while len(found) < count:
            found += await consumer.poll(500)
    assert len(found) == count
    return found
