"""Commit by hand, and wait: after each batch, and for chosen offsets.

`commit()` takes the positions behind all records given so far; `commit({partition: offset})` takes what you say. The
offset to commit is that of the next record to read, so the last one's plus one.
"""

from __future__ import annotations

import penstock
from common import arguments


def main() -> None:
    args = arguments(__doc__, topic="commit-sync", group="commit-sync")
    with penstock.Producer(bootstrap_servers=args.bootstrap_server) as producer:
        producer.send_many(args.topic, [f"line {number}" for number in range(10)])

    with penstock.Consumer(
        bootstrap_servers=args.bootstrap_server,
        group_id=args.group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    ) as consumer:
        consumer.subscribe([args.topic])
        read = 0
        while read < 10:
            for record in consumer.poll(timeout_ms=1_000, max_records=3):
                read += 1
                partition = penstock.TopicPartition(record.topic, record.partition)
                if read == 5:  # an important record: its offset is committed by itself
                    consumer.commit({partition: penstock.OffsetAndMetadata(record.offset + 1, "half way")})
                    print(f"half way, committed {consumer.committed([partition])[partition]}")
            consumer.commit()
        print(f"at the end, committed {consumer.committed([partition])[partition]}")


if __name__ == "__main__":
    main()
