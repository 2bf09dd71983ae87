"""A round trip through broker and clients in a process that cannot load the compiled kernel; see `test_pure_kernel`."""

from __future__ import annotations

import sys

_COMPILED = ("_consuming", "_kernel", "_partitioning", "_sending", "_writing")
for name in _COMPILED:
    # None in this place makes the import fail, as on a machine where it was not built.
    sys.modules[f"penstock.records.{name}"] = None  # type: ignore[assignment]

import pyarrow as pa  # noqa: E402 - behind the block above

from penstock import Consumer, Producer, TopicPartition  # noqa: E402
from penstock.records import kernel  # noqa: E402
from penstock.testing import EphemeralBroker  # noqa: E402

COUNT = 200
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def values(prefix: str) -> list[bytes]:
    return [f"{prefix}-{number}".encode() for number in range(COUNT)]


def read(bootstrap: str, topic: str, count: int) -> list[bytes]:
    found: list[bytes] = []
    with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        while len(found) < count:
            records = consumer.poll(10_000)
            assert records, f"{len(found)} of {count} records of {topic} came"
            assert all(each.key == b"k" and each.headers == (("h", b"x"),) for each in records)
            found += [each.value for each in records]
    return found


def codec_round_trip(bootstrap: str, codec: str) -> None:
    with Producer(bootstrap_servers=bootstrap, compression_type=codec) as producer:
        for value in values(codec):
            producer.send(f"codec-{codec}", value, b"k", headers={"h": b"x"})
        producer.flush(20)
    assert read(bootstrap, f"codec-{codec}", COUNT) == values(codec)


def arrow_round_trip(bootstrap: str) -> None:
    table = pa.table({"key": [b"k"] * COUNT, "value": values("arrow")})
    with Producer(bootstrap_servers=bootstrap, compression_type="zstd") as producer:
        for delivery in producer.send_many("arrow", table):
            delivery.result(20)
    batches: list[pa.RecordBatch] = []
    with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition("arrow", 0)])
        while sum(each.num_rows for each in batches) < COUNT:
            batches.append(consumer.consume_arrow(10_000))
            assert batches[-1].num_rows
    found = pa.Table.from_batches(batches)
    assert found["value"].to_pylist() == values("arrow")
    assert found["offset"].to_pylist() == [*range(COUNT)]


def main() -> None:
    assert not kernel.COMPILED
    with EphemeralBroker() as broker:
        for codec in CODECS:
            codec_round_trip(broker.bootstrap_servers, codec)
        arrow_round_trip(broker.bootstrap_servers)
    print("all came back")


if __name__ == "__main__":
    main()
