"""A queue: members of one group share the records, and each record goes to one of them.

Every partition has one reader in the group at a time; so there may be as many members at work as there are partitions,
and records with the same key, which are in the same partition, stay in order.
"""

from __future__ import annotations

import threading
from collections import Counter

import penstock
from common import arguments, make_topic

COUNT = 100


def main() -> None:
    args = arguments(__doc__, topic="point-to-point", group="point-to-point")
    make_topic(args.bootstrap_server, args.topic, partitions=4)
    readers: Counter[str] = Counter()
    everything = threading.Event()
    lock = threading.Lock()
    ready = threading.Barrier(3)

    def read(name: str) -> None:
        with penstock.Consumer(
            bootstrap_servers=args.bootstrap_server,
            group_id=args.group,
            client_id=name,
            auto_offset_reset="earliest",
            heartbeat_interval_ms=300,  # hear of a rebalance soon
        ) as consumer:
            consumer.subscribe([args.topic])
            while len(consumer.assignment()) != 2:  # until the two members share the four partitions
                consumer.poll(timeout_ms=100)
            ready.wait(30)
            while not everything.is_set():
                records = consumer.poll(timeout_ms=100)
                with lock:
                    readers[name] += len(records)
                    if readers.total() >= COUNT:
                        everything.set()

    threads = [threading.Thread(target=read, args=(name,)) for name in ("first", "second")]
    for thread in threads:
        thread.start()
    ready.wait(30)
    with penstock.Producer(bootstrap_servers=args.bootstrap_server) as producer:
        producer.send_many(args.topic, [(f"customer {number % 20}", f"order {number}") for number in range(COUNT)])
    for thread in threads:
        thread.join(60)
    print(f"first read {readers['first']}, second read {readers['second']}, together {readers.total()} of {COUNT}")


if __name__ == "__main__":
    main()
