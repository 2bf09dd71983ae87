"""Just enough of the protocol to load a broker without spending the machine's time in the client.

Fixed, non-flexible versions (Produce 7, Fetch 11, CreateTopics 4), requests made once and sent many times. Written by
hand, so that the load does not depend on the code it measures.
"""

from __future__ import annotations

import socket
import struct
import time

import crc32c

PRODUCE, FETCH, API_VERSIONS, CREATE_TOPICS, DELETE_TOPICS = 0, 1, 18, 19, 20
_CLIENT = b"bench"


def text(value: str) -> bytes:
    raw = value.encode()
    return struct.pack(">h", len(raw)) + raw


def request(api_key: int, version: int, correlation_id: int, body: bytes) -> bytes:
    head = struct.pack(">hhih", api_key, version, correlation_id, len(_CLIENT)) + _CLIENT
    return struct.pack(">i", len(head) + len(body)) + head + body


def _varint(value: int) -> bytes:
    value = (value << 1) ^ (value >> 63)
    out = bytearray()
    while value > 0x7F:
        out.append((value & 0x7F) | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def record_batch(record_count: int, value: bytes) -> bytes:
    """An uncompressed batch of records without keys, stamped with the present time."""
    records = bytearray()
    for index in range(record_count):
        body = b"\x00" + _varint(0) + _varint(index) + _varint(-1) + _varint(len(value)) + value + _varint(0)
        records += _varint(len(body)) + body
    now = int(time.time() * 1000)
    tail = struct.pack(">hiqqqhii", 0, record_count - 1, now, now, -1, -1, -1, record_count) + records
    return struct.pack(">qiibI", 0, len(tail) + 9, -1, 2, crc32c.crc32c(tail)) + tail


def batch_of_size(total_bytes: int, value_bytes: int = 1000) -> bytes:
    """A batch of as many such records as fit."""
    # The largest record of a batch is its last: the more records, the longer their offset deltas.
    record_bytes = len(record_batch(1, bytes(value_bytes))) - 61 + 2
    count = max(1, (total_bytes - 61) // record_bytes)
    return record_batch(count, bytes(range(256)) * (value_bytes // 256) + bytes(value_bytes % 256))


def produce_request(topic: str, batch: bytes, *, acks: int = 1, correlation_id: int = 0) -> bytes:
    body = struct.pack(">hhi", -1, acks, 30_000) + struct.pack(">i", 1) + text(topic)
    body += struct.pack(">iii", 1, 0, len(batch)) + batch
    return request(PRODUCE, 7, correlation_id, body)


def fetch_request(topic: str, offset: int, *, max_bytes: int) -> bytes:
    head = struct.pack(">iiiibii", -1, 500, 1, max_bytes, 0, 0, -1)
    body = head + struct.pack(">i", 1) + text(topic) + struct.pack(">iiiqqi", 1, 0, -1, offset, -1, max_bytes)
    return request(FETCH, 11, 0, body + struct.pack(">i", 0) + text(""))


class Connection:
    """One blocking connection that reads as much as there is at a time."""

    def __init__(self, port: int, *, buffer_bytes: int = 4 << 20) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = memoryview(bytearray(buffer_bytes))
        self._start = self._end = 0

    def receive(self) -> memoryview:
        """One answer without its size; valid until the next call."""
        self._need(4)
        size = 4 + int(struct.unpack_from(">i", self._buffer, self._start)[0])
        self._need(size)
        answer = self._buffer[self._start + 4 : self._start + size]
        self._start += size
        return answer

    def _need(self, count: int) -> None:
        if self._start == self._end:
            self._start = self._end = 0
        if self._start + count > len(self._buffer):
            rest = bytes(self._buffer[self._start : self._end])
            self._buffer = memoryview(bytearray(max(len(self._buffer), 2 * count)))
            self._buffer[: len(rest)] = rest
            self._start, self._end = 0, len(rest)
        while self._end - self._start < count:
            received = self.socket.recv_into(self._buffer[self._end :])
            if not received:
                raise ConnectionError("the broker closed the connection")
            self._end += received

    def call(self, frame: bytes) -> memoryview:
        self.socket.sendall(frame)
        return self.receive()

    def close(self) -> None:
        self.socket.close()


def create_topic(port: int, topic: str) -> None:
    body = struct.pack(">i", 1) + text(topic) + struct.pack(">ihii", 1, 1, 0, 0) + struct.pack(">ib", 30_000, 0)
    connection = Connection(port)
    answer = connection.call(request(CREATE_TOPICS, 4, 0, body))
    connection.close()
    # correlation id, throttle, topic count, name, error code
    (name_length,) = struct.unpack_from(">h", answer, 12)
    (code,) = struct.unpack_from(">h", answer, 14 + name_length)
    if code:
        raise RuntimeError(f"creating {topic} failed with code {code}")
    _wait_until_led(port, topic)


def _wait_until_led(port: int, topic: str) -> None:
    """Kafka answers before the leader is ready: produce until that works."""
    frame = produce_request(topic, record_batch(1, b"first"))
    connection = Connection(port)
    deadline = time.monotonic() + 15
    while produce_error(connection.call(frame)):
        if time.monotonic() > deadline:
            raise RuntimeError(f"{topic} has no leader after 15 s")
        time.sleep(0.05)
    connection.close()


def delete_topic(port: int, topic: str) -> None:
    connection = Connection(port)
    connection.call(request(DELETE_TOPICS, 3, 0, struct.pack(">i", 1) + text(topic) + struct.pack(">i", 30_000)))
    connection.close()


def produce_error(answer: memoryview) -> int:
    """The error code of the only partition of a Produce answer."""
    (name_length,) = struct.unpack_from(">h", answer, 8)
    return int(struct.unpack_from(">h", answer, 10 + name_length + 8)[0])
