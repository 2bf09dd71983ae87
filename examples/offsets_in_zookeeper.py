"""Keep offsets in ZooKeeper, where Kafka's first consumers kept them, and go on there after a restart.

The nodes are /consumers/<group>/offsets/<topic>/<partition>, so old tools can read them and old groups can be moved.
Needs kazoo: `pip install penstock[zookeeper]`.
"""

from __future__ import annotations

import penstock
from common import arguments


def read(bootstrap: str, topic: str, group: str, store: penstock.ZooKeeperOffsetStore, count: int) -> list[str]:
    """Read so many records, and keep the offset behind the last one."""
    with penstock.Consumer(
        bootstrap_servers=bootstrap,
        group_id=group,
        offset_store=store,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        value_deserializer="string",
    ) as consumer:
        consumer.subscribe([topic])
        values: list[str] = []
        while len(values) < count:
            values += [record.value for record in consumer.poll(timeout_ms=1_000, max_records=count - len(values))]
        consumer.commit()  # goes to the store
        return values


def main() -> None:
    args = arguments(__doc__, topic="offsets-in-zookeeper", group="zookeeper", zookeeper="localhost:2181")
    with penstock.Producer(bootstrap_servers=args.bootstrap_server) as producer:
        producer.send_many(args.topic, ["a", "b", "c", "d", "e"])

    partition = penstock.TopicPartition(args.topic, 0)
    with penstock.ZooKeeperOffsetStore(args.zookeeper) as store:
        print(f"read {read(args.bootstrap_server, args.topic, args.group, store, 2)}")
        print(f"ZooKeeper has offset {store.load(args.group, [partition])[partition].offset}")
        print(f"after a restart {read(args.bootstrap_server, args.topic, args.group, store, 3)}")


if __name__ == "__main__":
    main()
