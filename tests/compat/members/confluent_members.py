"""Members by confluent-kafka (librdkafka), one thread each."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import confluent_kafka
from confluent_kafka import TopicPartition

from tests.compat.members.wire import COMMIT_MS, FETCH_WAIT_MS, HEARTBEAT_MS, POLL_MS, Join, Reporter, serve


class ConfluentMember:
    def __init__(self, join: Join) -> None:
        self._join = join
        self._report = Reporter(join.member)
        self._leaving = threading.Event()
        threading.Thread(target=self._run, daemon=True).start()

    def leave(self) -> None:
        self._leaving.set()

    def _settings(self) -> dict[str, Any]:
        join = self._join
        settings = {
            "bootstrap.servers": join.bootstrap,
            "group.id": join.group,
            "partition.assignment.strategy": join.assignor,
            "session.timeout.ms": join.session_ms,
            "heartbeat.interval.ms": HEARTBEAT_MS,
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": COMMIT_MS,
            # Stored by hand after they are printed, so that no commit runs ahead of the report.
            "enable.auto.offset.store": False,
            "isolation.level": join.isolation,
            "fetch.wait.max.ms": FETCH_WAIT_MS,
            "log_level": 0,
        }
        return settings | ({"group.instance.id": join.instance} if join.instance else {})

    def _run(self) -> None:
        consumer = confluent_kafka.Consumer(self._settings())
        consumer.subscribe([self._join.topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked)
        while not self._leaving.is_set():
            self._poll(consumer)
        consumer.close()
        self._report.left()

    def _poll(self, consumer: confluent_kafka.Consumer) -> None:
        offsets: dict[int, list[int]] = {}
        for message in consumer.consume(500, timeout=POLL_MS / 1000):
            problem = message.error()
            if problem is None:
                offsets.setdefault(message.partition(), []).append(message.offset())
            # While a broker is away librdkafka says so once and tries again by itself.
            elif problem.fatal() or not _is_local(problem):
                self._report.failed(problem)
        self._report.records(offsets)
        if offsets:
            topic = self._join.topic
            stored = [TopicPartition(topic, partition, read[-1] + 1) for partition, read in offsets.items()]
            self._store(consumer, stored)

    def _store(self, consumer: confluent_kafka.Consumer, stored: list[TopicPartition]) -> None:
        try:
            consumer.store_offsets(offsets=stored)
        except confluent_kafka.KafkaException as problem:
            # The partition went to another member while its records were printed.
            if problem.args[0].code() != confluent_kafka.KafkaError._STATE:
                self._report.failed(problem)

    def _assigned(self, _: object, partitions: Sequence[TopicPartition]) -> None:
        self._report.gained(one.partition for one in partitions)

    def _revoked(self, _: object, partitions: Sequence[TopicPartition]) -> None:
        self._report.gave_up(one.partition for one in partitions)


def _is_local(problem: confluent_kafka.KafkaError) -> bool:
    return problem.code() in (confluent_kafka.KafkaError._TRANSPORT, confluent_kafka.KafkaError._ALL_BROKERS_DOWN)


if __name__ == "__main__":
    serve(ConfluentMember)
