"""Exactly once: read, transform and write in transactions, with the read offsets as part of each transaction.

Either the results and the offsets of a batch become visible together, or neither does. The example fails on purpose
after it wrote half of a batch; that transaction is aborted, the batch is read again, and readers of committed records
see every result once.
"""

from __future__ import annotations

import contextlib

import penstock
from common import arguments

COUNT = 10


class CrashError(Exception):
    """Stands for anything that goes wrong in the middle of the work."""


def double(bootstrap: str, source: str, target: str, name: str, *, crashes: bool) -> None:
    """Read numbers from one topic, write their doubles to another."""
    with (
        penstock.Consumer(
            bootstrap_servers=bootstrap,
            group_id=name,
            auto_offset_reset="earliest",
            enable_auto_commit=False,  # offsets are committed by the transaction
            isolation_level="read_committed",
            max_poll_records=4,
            value_deserializer="int",
        ) as consumer,
        # The name stays the same over restarts: a new producer takes over from an old one, and fences it off.
        penstock.Producer(bootstrap_servers=bootstrap, transactional_id=name, value_serializer="int") as producer,
    ):
        producer.init_transactions()
        consumer.subscribe([source])
        done = 0
        while done < COUNT:
            records = consumer.poll(timeout_ms=1_000)
            if not records:
                continue
            with producer.transaction():  # commits at the end of the block, aborts when it raises
                for record in records:
                    producer.send(target, record.value * 2)
                    if crashes:
                        producer.flush()  # so that it is really in the log, and not only in memory
                        raise CrashError
                producer.send_offsets(penstock.offsets_after(records), consumer.group_metadata())
            done += len(records)
            print(f"committed a transaction with {len(records)} results")


def read_all(bootstrap: str, topic: str, isolation_level: str) -> list[int]:
    with penstock.Consumer(
        bootstrap_servers=bootstrap, isolation_level=isolation_level, value_deserializer="int"
    ) as consumer:
        partition = penstock.TopicPartition(topic, 0)
        consumer.assign([partition])
        consumer.seek_to_beginning()
        end = consumer.end_offsets([partition])[partition]
        values: list[int] = []
        while consumer.position(partition) < end:
            values += [record.value for record in consumer.poll(timeout_ms=1_000)]
        return values


def main() -> None:
    args = arguments(__doc__, source="numbers", target="doubles", name="doubler")
    with penstock.Producer(bootstrap_servers=args.bootstrap_server, value_serializer="int") as producer:
        producer.send_many(args.source, range(COUNT))

    with contextlib.suppress(CrashError):
        double(args.bootstrap_server, args.source, args.target, args.name, crashes=True)
    print("-- failed in the middle of a transaction; starting again --")
    double(args.bootstrap_server, args.source, args.target, args.name, crashes=False)
    print(f"in the log: {read_all(args.bootstrap_server, args.target, 'read_uncommitted')}")
    print(f"committed:  {read_all(args.bootstrap_server, args.target, 'read_committed')}")


if __name__ == "__main__":
    main()
