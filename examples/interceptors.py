"""Hooks in front of and behind every record: one adds a time stamp, one counts successes and failures.

`on_send` runs in the thread that sends, before anything is serialized; what it returns goes on to the next interceptor.
`on_acknowledgement` runs in the producer's thread when the record was written or has failed.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

import penstock
from common import arguments, make_topic


class TimeStamp(penstock.ProducerInterceptor):
    """Puts the time of sending into a header."""

    def on_send(self, record: penstock.ProducerRecord) -> penstock.ProducerRecord:
        now = str(time.time_ns() // 1_000_000).encode()
        return replace(record, headers=[*headers_of(record), ("sent-at", now)])


class Counting(penstock.ProducerInterceptor):
    """Counts how records end; the total is printed when the producer is closed."""

    def __init__(self) -> None:
        self.successes = 0
        self.failures = 0

    def on_acknowledgement(self, metadata: penstock.RecordMetadata | None, error: penstock.KafkaError | None) -> None:
        if error is None:
            self.successes += 1
        else:
            self.failures += 1

    def close(self) -> None:
        print(f"{self.successes} successes, {self.failures} failures")


def headers_of(record: penstock.ProducerRecord) -> list[tuple[str, bytes | None]]:
    """Headers may be given as pairs or as a mapping."""
    headers = record.headers or ()
    return list(headers.items() if isinstance(headers, Mapping) else headers)


def main() -> None:
    args = arguments(__doc__, topic="interceptors")
    make_topic(args.bootstrap_server, args.topic, max_message_bytes="50000")
    interceptors = [TimeStamp(), Counting()]
    with penstock.Producer(bootstrap_servers=args.bootstrap_server, interceptor_classes=interceptors) as producer:
        for number in range(10):
            producer.send(args.topic, f"reading {number}", headers=[("sensor", b"7")])
        # Larger than the topic takes: the broker refuses it, and that is counted too.
        print(f"refused: {producer.send(args.topic, bytes(100_000)).exception(timeout=30)}")


if __name__ == "__main__":
    main()
