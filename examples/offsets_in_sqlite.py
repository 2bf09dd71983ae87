"""Keep offsets in your own database, in the same transaction as the results: exactly once, without Kafka transactions.

Results and offsets are written together or not at all, so after any crash the reader goes on exactly behind the last
result that was kept. Works with any DB-API database (PostgreSQL, MySQL, ...). The example fails on purpose in the
middle, and starts again.
"""

from __future__ import annotations

import contextlib
import sqlite3

import penstock
from common import arguments

COUNT = 10


class CrashError(Exception):
    """Stands for anything that goes wrong before the database has committed."""


def sum_up(bootstrap: str, topic: str, group: str, file: str, *, crashes: bool) -> None:
    database = sqlite3.connect(file)
    store = penstock.DbApiOffsetStore(lambda: sqlite3.connect(file))
    store.create_table()
    with (
        contextlib.closing(database),
        penstock.Consumer(
            bootstrap_servers=bootstrap,
            group_id=group,
            offset_store=store,  # on assignment, positions come from the table
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            max_poll_records=4,
            value_deserializer="int",
        ) as consumer,
    ):
        consumer.subscribe([topic])
        while database.execute("SELECT count(*) FROM results").fetchone()[0] < COUNT:
            records = consumer.poll(timeout_ms=1_000)
            with database:  # one transaction of SQLite: committed at the end, rolled back when it raises
                for record in records:
                    database.execute("INSERT INTO results VALUES (?, ?)", (record.offset, record.value * 10))
                if crashes:
                    raise CrashError
                store.save(group, penstock.offsets_after(records), connection=database)
            print(f"kept {len(records)} results and their offsets")


def main() -> None:
    args = arguments(__doc__, topic="offsets-in-sqlite", group="sqlite", file="results.db")
    with penstock.Producer(bootstrap_servers=args.bootstrap_server, value_serializer="int") as producer:
        producer.send_many(args.topic, range(COUNT))
    with contextlib.closing(sqlite3.connect(args.file)) as database:
        database.execute("DROP TABLE IF EXISTS results")
        database.execute("CREATE TABLE results (number INTEGER, value INTEGER)")

    with contextlib.suppress(CrashError):
        sum_up(args.bootstrap_server, args.topic, args.group, args.file, crashes=True)
    print("-- failed before the commit; starting again --")
    sum_up(args.bootstrap_server, args.topic, args.group, args.file, crashes=False)


if __name__ == "__main__":
    main()
