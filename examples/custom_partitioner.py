"""Choose partitions by a rule of your own: orders of important customers have the last partition to themselves.

A partitioner is a function, or an object with a method `partition`. It sees key and value before and after they were
serialized, and the cluster as it is known at present.
"""

from __future__ import annotations

from typing import Any

import penstock
from common import arguments, make_topic

IMPORTANT = frozenset({"crown", "museum"})


def partition(
    topic: str,
    key: Any,
    key_bytes: bytes | None,
    value: Any,
    value_bytes: bytes | None,
    cluster: penstock.ClusterSnapshot,
) -> int:
    count = len(cluster.topics[topic].partitions)
    if key in IMPORTANT:
        return count - 1
    # The others share the rest. (Python's own hash of text differs from process to process: it would not do.)
    return sum(key_bytes or b"") % (count - 1)


def main() -> None:
    args = arguments(__doc__, topic="custom-partitioner")
    make_topic(args.bootstrap_server, args.topic, partitions=3)
    with penstock.Producer(bootstrap_servers=args.bootstrap_server, partitioner=partition) as producer:
        customers = ["baker", "crown", "smith", "museum", "miller", "crown"]
        deliveries = [(customer, producer.send(args.topic, "an order", key=customer)) for customer in customers]
        for customer, delivery in deliveries:
            print(f"{customer} -> partition {delivery.result(timeout=30).partition}")


if __name__ == "__main__":
    main()
