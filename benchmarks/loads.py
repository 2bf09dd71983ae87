"""The loads, each a function of the broker's port that returns named numbers. They run in a process of their own."""

from __future__ import annotations

import json
import select
import struct
import sys
import time
from collections.abc import Callable

from benchmarks import wire
from benchmarks.coordinator_loads import COORDINATOR_LOADS

MEGABYTE = 1 << 20


def bulk_produce(port: int, topic: str, batch_bytes: int, total_bytes: int) -> dict[str, float]:
    """Pipelined produce of one prepared batch, five requests in flight on one connection."""
    batch = wire.batch_of_size(batch_bytes)
    frame = wire.produce_request(topic, batch)
    connection = wire.Connection(port)
    count = total_bytes // len(batch)
    in_flight = 0
    started = time.perf_counter()
    for _ in range(count):
        if in_flight == 5:
            _check(connection.receive())
            in_flight -= 1
        connection.socket.sendall(frame)
        in_flight += 1
    for _ in range(in_flight):
        _check(connection.receive())
    seconds = time.perf_counter() - started
    connection.close()
    return {"megabytes": count * len(batch) / 1e6, "seconds": seconds}


def bulk_fetch(port: int, topic: str, total_bytes: int) -> dict[str, float]:
    """Read a topic from its start in answers of about 1 MB, looking at batch headers only, to find the next offset."""
    connection = wire.Connection(port)
    offset = received = 0
    started = time.perf_counter()
    while received < total_bytes:
        answer = connection.call(wire.fetch_request(topic, offset, max_bytes=MEGABYTE))
        records = _fetched_records(answer)
        next_offset = _next_offset(records)
        if next_offset is None:
            break
        received += len(records)
        offset = next_offset
    seconds = time.perf_counter() - started
    connection.close()
    return {"megabytes": received / 1e6, "seconds": seconds}


def small_requests(port: int, topic: str, connections: int, seconds: float) -> dict[str, float]:
    """One-record requests, one in flight per connection, answered as fast as they can be."""
    frame = wire.produce_request(topic, wire.record_batch(1, b"x" * 100))
    clients = [wire.Connection(port) for _ in range(connections)]
    poll = select.epoll()
    by_descriptor = {}
    answer_bytes = len(clients[0].call(frame)) + 4
    for client in clients:
        client.socket.setblocking(False)
        by_descriptor[client.socket.fileno()] = (client.socket.recv, client.socket.send)
        poll.register(client.socket.fileno(), select.EPOLLIN)
        client.socket.send(frame)
    count = 0
    started = now = time.perf_counter()
    deadline = started + seconds
    while now < deadline:
        for descriptor, _ in poll.poll(1):
            receive, send = by_descriptor[descriptor]
            if len(receive(answer_bytes)) != answer_bytes:
                raise ConnectionError("a short answer")
            send(frame)
            count += 1
        now = time.perf_counter()
    for client in clients:
        client.close()
    return {"requests": count, "seconds": now - started}


def latency(port: int, topic: str, rate: int, seconds: float) -> dict[str, float]:
    """One-record requests at a steady rate on one connection; milliseconds from the due time to the answer."""
    frame = wire.produce_request(topic, wire.record_batch(1, b"x" * 100))
    connection = wire.Connection(port)
    took = []
    due = time.perf_counter() + 0.01
    for _ in range(int(rate * seconds)):
        while (left := due - time.perf_counter()) > 0:
            if left > 0.0002:
                time.sleep(left - 0.0001)
        connection.call(frame)
        took.append(time.perf_counter() - due)
        due += 1 / rate
    connection.close()
    took.sort()
    return {"p50_ms": took[len(took) // 2] * 1000, "p99_ms": took[int(len(took) * 0.99)] * 1000}


def rdkafka_produce(port: int, topic: str, record_bytes: int, count: int) -> dict[str, float]:
    from confluent_kafka import Producer

    producer = Producer(
        {"bootstrap.servers": f"127.0.0.1:{port}", "linger.ms": 5, "queue.buffering.max.messages": 1_000_000}
    )
    value = b"v" * record_bytes
    started = time.perf_counter()
    for index in range(count):
        while True:
            try:
                producer.produce(topic, value)
                break
            except BufferError:
                producer.poll(0.01)
        if index & 1023 == 0:
            producer.poll(0)
    if producer.flush(60):
        raise RuntimeError("librdkafka could not deliver everything in 60 s")
    return {"records": count, "seconds": time.perf_counter() - started}


def rdkafka_consume(port: int, topic: str, count: int) -> dict[str, float]:
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    # With its own back-off the client pauses for a second whenever it has queued enough, which would be all we measure.
    consumer = Consumer(
        {
            "fetch.queue.backoff.ms": 5,
            "bootstrap.servers": f"127.0.0.1:{port}",
            "group.id": "bench",
            "enable.auto.commit": False,
            "check.crcs": False,
        }
    )
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    received = len(consumer.consume(1, timeout=30))
    started = time.perf_counter()
    while received < count:
        messages = consumer.consume(10_000, timeout=10)
        if not messages:
            raise RuntimeError(f"librdkafka received only {received} of {count} records")
        received += len(messages)
    seconds = time.perf_counter() - started
    consumer.close()
    return {"records": received, "seconds": seconds}


def _check(answer: memoryview) -> None:
    if code := wire.produce_error(answer):
        raise RuntimeError(f"produce failed with code {code}")


def _fetched_records(answer: memoryview) -> memoryview:
    # correlation id 4, throttle 4, error 2, session 4, topic count 4, name, partition count 4, then the partition:
    # index 4, error 2, high watermark 8, last stable offset 8, log start 8, aborted count 4, preferred replica 4
    (name_length,) = struct.unpack_from(">h", answer, 18)
    position = 20 + name_length + 4
    _, code, _, _, _, aborted, _, size = struct.unpack_from(">ihqqqiii", answer, position)
    if code or aborted > 0:
        raise RuntimeError(f"fetch answered code {code}, {aborted} aborted transactions")
    start = position + 42
    return answer[start : start + max(size, 0)]


def _next_offset(records: memoryview) -> int | None:
    position = 0
    offset = None
    while position + 61 <= len(records):
        base, length = struct.unpack_from(">qi", records, position)
        if position + 12 + length > len(records):
            break
        (delta,) = struct.unpack_from(">i", records, position + 23)
        offset = base + delta + 1
        position += 12 + length
    return offset


LOADS: dict[str, Callable[..., dict[str, float]]] = {
    load.__name__: load
    for load in (bulk_produce, bulk_fetch, small_requests, latency, rdkafka_produce, rdkafka_consume)
} | COORDINATOR_LOADS


if __name__ == "__main__":
    print(json.dumps(LOADS[sys.argv[1]](**json.loads(sys.argv[2]))))
