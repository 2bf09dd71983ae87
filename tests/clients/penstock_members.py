"""Members by our own blocking consumer, one thread each. Commands and events: tests/compat/members/wire.py."""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Sequence

from penstock.base.errors import KafkaError
from penstock.base.types import TopicPartition
from penstock.client.consumer.blocking import Consumer
from tests.compat.members.wire import COMMIT_MS, FETCH_WAIT_MS, HEARTBEAT_MS, POLL_MS, Join, Reporter, serve


class PenstockMember:
    def __init__(self, join: Join) -> None:
        self._join = join
        self._report = Reporter(join.member)
        self._leaving = threading.Event()
        threading.Thread(target=self._run, daemon=True).start()

    def leave(self) -> None:
        self._leaving.set()

    def _make(self) -> Consumer:
        join = self._join
        return Consumer(
            bootstrap_servers=join.bootstrap,
            group_id=join.group,
            group_instance_id=join.instance,
            partition_assignment_strategy=[join.assignor],
            session_timeout_ms=join.session_ms,
            heartbeat_interval_ms=HEARTBEAT_MS,
            auto_offset_reset="earliest",
            auto_commit_interval_ms=COMMIT_MS,
            isolation_level=join.isolation,
            fetch_max_wait_ms=FETCH_WAIT_MS,
        )

    def _run(self) -> None:
        try:
            with self._make() as consumer:
                consumer.subscribe([self._join.topic], on_assign=self._assigned, on_revoke=self._revoked)
                while not self._leaving.is_set():
                    self._poll(consumer)
        except Exception as problem:
            # A member that ends without a word looks like a group that stalls.
            self._report.failed(problem)
            raise
        self._report.left()

    def _poll(self, consumer: Consumer) -> None:
        offsets: dict[int, list[int]] = defaultdict(list)
        try:
            for record in consumer.poll(POLL_MS):
                offsets[record.partition].append(record.offset)
        except KafkaError as problem:
            self._report.failed(problem)
        self._report.records(offsets)

    def _assigned(self, consumer: Consumer, partitions: Sequence[TopicPartition]) -> None:
        self._report.gained((one.partition for one in partitions), consumer.group_metadata().generation_id)

    def _revoked(self, consumer: Consumer, partitions: Sequence[TopicPartition]) -> None:
        self._report.gave_up(one.partition for one in partitions)


if __name__ == "__main__":
    # On standard error, which the host keeps for whoever looks into a failure.
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(threadName)s %(name)s %(message)s")
    logging.getLogger("penstock.client.consumer.group").setLevel(logging.DEBUG)
    serve(PenstockMember)
