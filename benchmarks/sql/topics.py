"""Topics of the benchmark, through our own clients."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

import pyarrow as pa

import penstock
from benchmarks.sql.data import records
from benchmarks.sql.plan import PARTITIONS
from penstock import NewTopic, OffsetSpec, TopicPartition

READ_SECONDS_MAX: Final = 120.0
_POLL_MS: Final = 500


class Topics:
    def __init__(self, port: int) -> None:
        self.bootstrap = f"127.0.0.1:{port}"
        self.admin = penstock.Admin(bootstrap_servers=self.bootstrap)

    def close(self) -> None:
        self.admin.close()

    def create(self, *names: str) -> None:
        self.admin.create_topics([NewTopic(name, num_partitions=PARTITIONS, replication_factor=1) for name in names])

    @contextmanager
    def made(self, *names: str) -> Iterator[None]:
        """Empty topics, deleted afterwards, so that the page cache holds what is measured."""
        self.create(*names)
        try:
            yield
        finally:
            self.admin.delete_topics(names)

    def delete_like(self, prefix: str) -> None:
        """Topics a program made for itself."""
        found = [name for name in self.admin.list_topics() if name.startswith(prefix)]
        if found:
            self.admin.delete_topics(found)

    def fill(self, topic: str, total: int, end_ms: int) -> None:
        """The records of a load in which a query reads `total` in all, the last of them of the time `end_ms`."""
        with penstock.Producer(bootstrap_servers=self.bootstrap, linger_ms=5) as producer:
            for table in records(topic, total, end_ms):
                for delivery in producer.send_many(topic, table):
                    delivery.result()

    def ends(self, topics: Iterable[str]) -> dict[TopicPartition, int]:
        wanted = {TopicPartition(topic, number): OffsetSpec.LATEST for topic in topics for number in range(PARTITIONS)}
        return {partition: each.offset for partition, each in self.admin.list_offsets(wanted).items()}

    def committed(self, group: str, topics: tuple[str, ...]) -> int:
        """How many records of these topics a group has committed."""
        offsets = self.admin.list_group_offsets([group])[group]
        return sum(found.offset for partition, found in offsets.items() if found and partition.topic in topics)

    def read(self, topic: str) -> Iterator[pa.RecordBatch]:
        """All that is committed in a topic now."""
        settings = {"isolation.level": "read_committed", "auto.offset.reset": "earliest", "enable.auto.commit": False}
        with penstock.Consumer({"bootstrap.servers": self.bootstrap, **settings}) as consumer:
            partitions = [TopicPartition(topic, info.partition) for info in consumer.partitions_for(topic)]
            consumer.assign(partitions)
            ends = consumer.end_offsets(partitions)
            deadline = time.monotonic() + READ_SECONDS_MAX
            while any(consumer.position(partition) < end for partition, end in ends.items()):
                if time.monotonic() > deadline:
                    raise RuntimeError(f"{topic} could not be read within {READ_SECONDS_MAX:.0f} s")
                batch = consumer.consume_arrow(_POLL_MS)
                if batch.num_rows:
                    yield batch
