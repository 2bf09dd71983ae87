"""Read one partition by hand: no group, a position of your own, and an eye on who leads.

When the leader goes away the client looks for the new one and goes on at the same position; the epoch of the leader,
which comes with each record, rises. Nothing is lost and nothing is read twice. Reads `--count` records from `--offset`;
`produce_sync.py --topic low-level` writes some.
"""

from __future__ import annotations

import penstock
from common import arguments


def main() -> None:
    args = arguments(__doc__, topic="low-level", partition="0", offset="0", count="10")
    partition = penstock.TopicPartition(args.topic, int(args.partition))
    with penstock.Consumer(bootstrap_servers=args.bootstrap_server, value_deserializer="string") as consumer:
        consumer.assign([partition])
        consumer.seek(partition, int(args.offset))
        leader = None
        left = int(args.count)
        while left > 0:
            records = consumer.poll(timeout_ms=1_000, max_records=left)
            left -= len(records)
            for record in records:
                # Asking for the leader only when its epoch changed keeps this off the network.
                if record.leader_epoch != leader:
                    leader = record.leader_epoch
                    broker = consumer.partitions_for(args.topic)[partition.partition].leader
                    print(f"broker {broker} leads {args.topic}-{partition.partition} in epoch {leader}")
                print(f"{record.offset}: {record.value}")
        print(f"position {consumer.position(partition)}, lag {consumer.lag(partition)}")


if __name__ == "__main__":
    main()
