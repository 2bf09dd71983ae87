"""Send many records without waiting; a function is told how each one ended.

The callback runs in the producer's own thread, so it should be quick. It gets the record's place or an error, never
both. One record here is larger than its topic takes: it fails alone, the others are written.
"""

from __future__ import annotations

import os
from collections import Counter

import penstock
from common import arguments, make_topic


def main() -> None:
    args = arguments(__doc__, topic="produce-callback")
    make_topic(args.bootstrap_server, args.topic, max_message_bytes="50000")
    ended: Counter[str] = Counter()

    def on_delivery(written: penstock.RecordMetadata | None, error: penstock.KafkaError | None) -> None:
        if written is not None:
            ended["written"] += 1
        else:
            ended["failed"] += 1
            print(f"failed: {type(error).__name__}: {error}")

    with penstock.Producer(bootstrap_servers=args.bootstrap_server, compression_type="lz4") as producer:
        for number in range(1000):
            producer.send(args.topic, f"event {number}", on_delivery=on_delivery)
        producer.send(args.topic, os.urandom(100_000), on_delivery=on_delivery)
        # Leaving the block would wait as well; flush shows how to do it in between.
        producer.flush(timeout=30)
        print(f"{ended['written']} written, {ended['failed']} failed")


if __name__ == "__main__":
    main()
