"""Members by kafka-python, one thread each."""

from __future__ import annotations

import logging
import threading
from typing import Any

import kafka
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.errors import KafkaError

from tests.compat.members.wire import COMMIT_MS, FETCH_WAIT_MS, HEARTBEAT_MS, Join, Reporter, serve

# Long enough for a whole rebalance: version 3.0 may forget to join again when its poll ends in the middle of one, on
# every broker.
LONG_POLL_MS = 1000
ASSIGNORS = {
    one.name: one
    for one in (
        RangePartitionAssignor,
        RoundRobinPartitionAssignor,
        StickyPartitionAssignor,
        CooperativeStickyAssignor,
    )
}


class KafkaPythonMember(kafka.ConsumerRebalanceListener):  # type: ignore[misc]
    def __init__(self, join: Join) -> None:
        self._join = join
        self._report = Reporter(join.member)
        self._leaving = threading.Event()
        self._consumer: Any = None
        threading.Thread(target=self._run, daemon=True).start()

    def leave(self) -> None:
        self._leaving.set()

    def _run(self) -> None:
        join = self._join
        self._consumer = kafka.KafkaConsumer(
            bootstrap_servers=join.bootstrap,
            group_id=join.group,
            group_instance_id=join.instance,
            partition_assignment_strategy=(ASSIGNORS[join.assignor],),
            session_timeout_ms=join.session_ms,
            heartbeat_interval_ms=HEARTBEAT_MS,
            auto_offset_reset="earliest",
            auto_commit_interval_ms=COMMIT_MS,
            isolation_level=join.isolation,
            fetch_max_wait_ms=FETCH_WAIT_MS,
        )
        # It may lead a group before it knows of any partition, and then assigns none, for minutes.
        self._consumer.partitions_for_topic(join.topic)
        self._consumer.subscribe([join.topic], listener=self)
        while not self._leaving.is_set():
            self._poll()
        self._consumer.close()
        self._report.left()

    def _poll(self) -> None:
        try:
            read = self._consumer.poll(timeout_ms=LONG_POLL_MS)
        except KafkaError as problem:
            self._report.failed(problem)
            return
        self._report.records({place.partition: [one.offset for one in records] for place, records in read.items()})

    def on_partitions_assigned(self, assigned: set[Any]) -> None:
        self._report.gained((one.partition for one in assigned), self._consumer.group_metadata().generation_id)

    def on_partitions_revoked(self, revoked: set[Any]) -> None:
        self._report.gave_up(one.partition for one in revoked)


def main() -> None:
    logging.disable(logging.CRITICAL)
    serve(KafkaPythonMember)


if __name__ == "__main__":
    main()
