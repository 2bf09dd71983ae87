"""Publish and subscribe: every group gets every record, whatever other groups do.

A subscriber that should see everything has a group of its own.
"""

from __future__ import annotations

import threading

import penstock
from common import arguments

NEWS = ["rain tomorrow", "bridge reopened", "team wins"]


def main() -> None:
    args = arguments(__doc__, topic="publish-subscribe", prefix="subscriber")
    received: dict[str, list[str]] = {}

    def subscribe(group: str) -> None:
        with penstock.Consumer(
            bootstrap_servers=args.bootstrap_server,
            group_id=group,
            auto_offset_reset="earliest",
            value_deserializer="string",
        ) as consumer:
            consumer.subscribe([args.topic])
            # The loop ends with the last news; a real subscriber's would not.
            for record in consumer:
                received.setdefault(group, []).append(record.value)
                if len(received[group]) == len(NEWS):
                    return

    groups = [f"{args.prefix}-{number}" for number in range(3)]
    with penstock.Producer(bootstrap_servers=args.bootstrap_server) as producer:
        producer.send_many(args.topic, NEWS)
    threads = [threading.Thread(target=subscribe, args=(group,)) for group in groups]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for group in groups:
        print(f"{group} received {received[group]}")


if __name__ == "__main__":
    main()
