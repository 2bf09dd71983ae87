"""Read the records of one day again: look up the offsets of its begin and its end by time.

Nothing of this changes what a group has committed: the reader has its partitions assigned by hand. Records carry the
time at which they were made (here set by the producer to three days of January 2024).
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import penstock
from common import arguments, make_topic


def milliseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def produce_three_days(bootstrap: str, topic: str) -> None:
    with penstock.Producer(bootstrap_servers=bootstrap) as producer:
        for day in (14, 15, 16):
            for hour in range(0, 24, 6):
                made = datetime(2024, 1, day, hour, tzinfo=UTC)
                producer.send(topic, f"{made:%d %b %H:%M}", timestamp_ms=milliseconds(made))


def read_day(bootstrap: str, topic: str, day: datetime) -> list[str]:
    with penstock.Consumer(bootstrap_servers=bootstrap, value_deserializer="string") as consumer:
        partitions = [penstock.TopicPartition(topic, each.partition) for each in consumer.partitions_for(topic)]
        consumer.assign(partitions)
        begins = consumer.offsets_for_times(dict.fromkeys(partitions, milliseconds(day)))
        ends = consumer.offsets_for_times(dict.fromkeys(partitions, milliseconds(day + timedelta(days=1))))
        behind_last = consumer.end_offsets(partitions)
        left: dict[penstock.TopicPartition, int] = {}
        for partition in partitions:
            begin, end = begins[partition], ends[partition]
            if begin is None:  # nothing at or after the day's begin
                consumer.pause([partition])
                continue
            consumer.seek(partition, begin.offset)
            stop = end.offset if end is not None else behind_last[partition]
            if begin.offset < stop:
                left[partition] = stop
        values: list[str] = []
        while left:
            for record in consumer.poll(timeout_ms=1_000):
                partition = penstock.TopicPartition(record.topic, record.partition)
                if record.offset < left.get(partition, 0):
                    values.append(record.value)
            left = {each: stop for each, stop in left.items() if consumer.position(each) < stop}
        return sorted(values)


def main() -> None:
    args = arguments(__doc__, topic="read-a-day-again", day="2024-01-15")
    # Without a limit, since a broker would delete records as old as these.
    if make_topic(args.bootstrap_server, args.topic, partitions=2, retention_ms="-1"):
        produce_three_days(args.bootstrap_server, args.topic)
    day = datetime.fromisoformat(args.day).replace(tzinfo=UTC)
    for value in read_day(args.bootstrap_server, args.topic, day):
        print(value)


if __name__ == "__main__":
    main()
