"""Commit by hand without waiting, and wait only once, at the end.

`commit_async` returns at once; its callback runs inside a later `poll`, in the order of the commits. A commit that
failed is not repeated, as a later one covers it; the last of all is made with `commit()`, which waits and repeats.
"""

from __future__ import annotations

from collections.abc import Mapping

import penstock
from common import arguments


def main() -> None:
    args = arguments(__doc__, topic="commit-async", group="commit-async")
    with penstock.Producer(bootstrap_servers=args.bootstrap_server) as producer:
        producer.send_many(args.topic, [f"line {number}" for number in range(10)])

    committed: list[int] = []

    def on_commit(
        offsets: Mapping[penstock.TopicPartition, penstock.OffsetAndMetadata], error: Exception | None
    ) -> None:
        if error is not None:
            print(f"could not commit {offsets}: {error}")
            return
        committed.extend(each.offset for each in offsets.values())
        print(f"committed up to {committed[-1]}")

    with penstock.Consumer(
        bootstrap_servers=args.bootstrap_server,
        group_id=args.group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    ) as consumer:
        consumer.subscribe([args.topic])
        read = 0
        while read < 10:
            records = consumer.poll(timeout_ms=1_000, max_records=3)
            read += len(records)
            if records:
                consumer.commit_async(callback=on_commit)
        consumer.commit()
        (partition,) = consumer.assignment()
        print(f"in order: {committed == sorted(committed)}, at the end {consumer.position(partition)}")


if __name__ == "__main__":
    main()
