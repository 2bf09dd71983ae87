"""Topics for the loads: filled without any of the clients, counted without them, deleted after use."""

from __future__ import annotations

import struct
from typing import Final

from benchmarks import wire
from benchmarks.clients.jobs import BATCH_BYTES

LIST_OFFSETS: Final = 2
LATEST: Final = -1


class Topic:
    """A topic of one partition; `create_topic` wrote its first record."""

    def __init__(self, port: int, name: str) -> None:
        self._port = port
        self.name = name

    def __enter__(self) -> Topic:
        wire.create_topic(self._port, self.name)
        return self

    def __exit__(self, *_: object) -> None:
        wire.delete_topic(self._port, self.name)

    def fill(self, count: int, value: bytes) -> None:
        """Up to `count` records, in batches as large as a producer's."""
        left = count - self.end_offset()
        per_batch = max(1, BATCH_BYTES // (len(value) + 8))
        connection = wire.Connection(self._port)
        full = wire.produce_request(self.name, wire.record_batch(per_batch, value))
        while left > 0:
            step = min(left, per_batch)
            frame = full if step == per_batch else wire.produce_request(self.name, wire.record_batch(step, value))
            code = wire.produce_error(connection.call(frame))
            if code:
                raise RuntimeError(f"filling {self.name} failed with code {code}")
            left -= step
        connection.close()

    def end_offset(self) -> int:
        body = struct.pack(">ii", -1, 1) + wire.text(self.name) + struct.pack(">iiq", 1, 0, LATEST)
        connection = wire.Connection(self._port)
        answer = connection.call(wire.request(LIST_OFFSETS, 1, 0, body))
        # correlation id, topic count, name, partition count, partition, error code, timestamp, offset
        (name_length,) = struct.unpack_from(">h", answer, 8)
        code, _, offset = struct.unpack_from(">hqq", answer, 10 + name_length + 8)
        connection.close()
        if code:
            raise RuntimeError(f"the end of {self.name} was answered with code {code}")
        return int(offset)
