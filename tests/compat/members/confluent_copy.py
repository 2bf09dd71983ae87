"""Copies a topic with librdkafka, partition by partition, each value in upper case, exactly once.

The records and the offsets which they stand for are one transaction. Arguments: bootstrap, input, output, group,
transactional id. An error that aborts a transaction makes it go back to the committed offsets, one that ends the
producer ends the program. So does an alarm: ``send_offsets_to_transaction`` of librdkafka 2.16 may wait for ever for a
group coordinator that came back, whichever broker it is; its maintainers know.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

BATCH_MAX = 50
TIMEOUT_S = 30.0
RETRY_FOR_S = 60.0
TRANSACTION_MAX_S = 10


class CopyJob:
    def __init__(self, bootstrap: str, source: str, target: str, group: str, transactional_id: str) -> None:
        self._target = target
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "session.timeout.ms": 2000,
                "heartbeat.interval.ms": 300,
                "fetch.wait.max.ms": 100,
            }
        )
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": 20_000,
                "linger.ms": 5,
            }
        )
        again(lambda: self._producer.init_transactions(TIMEOUT_S))
        self._consumer.subscribe([source])

    def run(self) -> None:
        print("ready", flush=True)
        while True:
            messages = self._consumer.consume(BATCH_MAX, timeout=0.1)
            good = [one for one in messages if one.error() is None]
            if good:
                signal.alarm(TRANSACTION_MAX_S)
                self._copy(good)
                signal.alarm(0)

    def _copy(self, messages: list[Message]) -> None:
        self._producer.begin_transaction()
        try:
            self._produce(messages)
            positions = self._consumer.position(self._consumer.assignment())
            read = [place for place in positions if place.offset >= 0]
            group = self._consumer.consumer_group_metadata()
            again(lambda: self._producer.send_offsets_to_transaction(read, group, TIMEOUT_S))
            again(lambda: self._producer.commit_transaction(TIMEOUT_S))
        except KafkaException as problem:
            if not problem.args[0].txn_requires_abort():
                raise
            print(f"aborting: {problem}", flush=True)
            again(lambda: self._producer.abort_transaction(TIMEOUT_S))
            self._go_back()

    def _produce(self, messages: list[Message]) -> None:
        for one in messages:
            value = (one.value() or b"").upper()
            self._producer.produce(self._target, value, one.key(), partition=one.partition() or 0)
            self._producer.poll(0)

    def _go_back(self) -> None:
        """To the committed offsets, as what was polled since then is not copied."""
        for place in self._consumer.committed(self._consumer.assignment(), timeout=TIMEOUT_S):
            start = place.offset if place.offset >= 0 else 0
            try:
                self._consumer.seek(TopicPartition(place.topic, place.partition, start))
            except KafkaException as problem:
                # Not ours any more: whoever owns it starts from the commit.
                if problem.args[0].code() not in (KafkaError._STATE, KafkaError._UNKNOWN_PARTITION):
                    raise


def again(call: Callable[[], None]) -> None:
    """While the error says that the same call may be made again."""
    deadline = time.monotonic() + RETRY_FOR_S
    while True:
        try:
            call()
        except KafkaException as problem:
            if not problem.args[0].retriable() or time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            return


if __name__ == "__main__":
    CopyJob(*sys.argv[1:]).run()
