"""A pool of workers: one consumer feeds eight threads, and records of one key stay in order.

Good for slow work (calls of other services): there may be many more workers than partitions. A handler that fails is
called again; offsets are committed only behind records that are finished.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict

import penstock
from common import arguments, make_topic

COUNT = 60
KEYS = 12


def main() -> None:
    args = arguments(__doc__, topic="worker-pool", group="worker-pool")
    make_topic(args.bootstrap_server, args.topic, partitions=2)
    with penstock.Producer(bootstrap_servers=args.bootstrap_server) as producer:
        producer.send_many(args.topic, [(f"key {number % KEYS}", str(number)) for number in range(COUNT)])

    seen: dict[str, list[int]] = defaultdict(list)
    threads: set[int] = set()
    lock = threading.Lock()
    failed = threading.Event()

    def handle(record: penstock.ConsumerRecord) -> None:
        time.sleep(0.02)  # slow work
        if record.value == "30" and not failed.is_set():
            failed.set()
            raise ConnectionError("the other service was away for a moment")
        with lock:
            seen[record.key].append(int(record.value))
            threads.add(threading.get_ident())
            if sum(map(len, seen.values())) == COUNT:
                pool.stop()

    with penstock.Consumer(
        bootstrap_servers=args.bootstrap_server,
        group_id=args.group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,  # the pool commits
        key_deserializer="string",
        value_deserializer="string",
    ) as consumer:
        pool = penstock.ParallelConsumer(consumer, handle, topics=[args.topic], workers=8, order="key", retries=3)
        began = time.monotonic()
        pool.run()  # until stop()
        print(f"handled {pool.handled} records in {len(threads)} threads, {time.monotonic() - began:.1f} s")
        in_order = all(numbers == sorted(numbers) for numbers in seen.values())
        print(f"each key in order: {in_order}; one failure repeated: {failed.is_set()}")
        offsets = consumer.committed([penstock.TopicPartition(args.topic, number) for number in range(2)])
        print(f"committed {sum(each.offset for each in offsets.values() if each is not None)}")


if __name__ == "__main__":
    main()
