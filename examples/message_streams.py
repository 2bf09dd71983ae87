"""A topic opened as four streams: four threads each iterate over one, and the queues are filled in the background.

A partition always feeds the same stream, so its records stay in order. A record counts as finished when the next one is
taken; only finished records are committed.
"""

from __future__ import annotations

import threading

import penstock
from common import arguments, make_topic

COUNT = 200


def main() -> None:
    args = arguments(__doc__, topic="message-streams", group="message-streams")
    make_topic(args.bootstrap_server, args.topic, partitions=4)
    with penstock.Producer(bootstrap_servers=args.bootstrap_server) as producer:
        for number in range(COUNT):
            producer.send(args.topic, f"record {number}", partition=number % 4)

    partitions: dict[int, set[int]] = {}
    counts = dict.fromkeys(range(4), 0)
    lock = threading.Lock()
    everything = threading.Event()

    def take(stream: penstock.MessageStream) -> None:
        for record in stream:  # ends when the streams are closed
            with lock:
                partitions.setdefault(stream.number, set()).add(record.partition)
                counts[stream.number] += 1
                if sum(counts.values()) == COUNT:
                    everything.set()

    with penstock.MessageStreams(
        bootstrap_servers=args.bootstrap_server,
        group_id=args.group,
        auto_offset_reset="earliest",
        topics=args.topic,
        streams=4,
        queue_max=20,
    ) as streams:
        threads = [threading.Thread(target=take, args=(stream,)) for stream in streams]
        for thread in threads:
            thread.start()
        everything.wait(60)
    for thread in threads:
        thread.join(10)
    for number, count in counts.items():
        print(f"stream {number}: {count} records of partitions {sorted(partitions.get(number, ()))}")


if __name__ == "__main__":
    main()
