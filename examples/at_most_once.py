"""At most once: commit first, then work. A crash in between loses records, and never repeats one.

Right where a repetition hurts more than a gap. The example crashes on purpose in the middle of a batch, starts again,
and shows what was lost.
"""

from __future__ import annotations

import contextlib

import penstock
from common import arguments


class CrashError(Exception):
    """Stands for power cuts and out-of-memory killers."""


def work(bootstrap: str, topic: str, group: str, handled: list[int], *, crashes: bool) -> None:
    with penstock.Consumer(
        bootstrap_servers=bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        max_poll_records=4,
        value_deserializer="int",
    ) as consumer:
        consumer.subscribe([topic])
        while 9 not in handled:
            records = consumer.poll(timeout_ms=1_000)
            consumer.commit()  # before the work: from here on these records are never read again
            for record in records:
                handled.append(record.value)
                print(f"handled {record.value}")
                if crashes:
                    raise CrashError


def main() -> None:
    args = arguments(__doc__, topic="at-most-once", group="at-most-once")
    with penstock.Producer(bootstrap_servers=args.bootstrap_server, value_serializer="int") as producer:
        producer.send_many(args.topic, range(10))

    handled: list[int] = []
    with contextlib.suppress(CrashError):
        work(args.bootstrap_server, args.topic, args.group, handled, crashes=True)
    print("-- crashed; starting again --")
    work(args.bootstrap_server, args.topic, args.group, handled, crashes=False)
    print(f"lost: {sorted(set(range(10)) - set(handled))}, repeated: {len(handled) - len(set(handled))}")


if __name__ == "__main__":
    main()
