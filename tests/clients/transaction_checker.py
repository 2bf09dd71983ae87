"""Counts transactions that a reader of committed records sees in part, too often, or though they were aborted.

Each writer has a transactional id and a thread. Every transaction puts one record into each partition, so the log tells
whether it is there as a whole: a record's value names its writer and the transaction's number. The ledger knows which
transactions were committed, which aborted, and whose end the writer did not learn.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from penstock import Consumer, Producer, TopicPartition
from penstock.client.errors import ClientError
from tests.clients.checker import JOIN_TIMEOUT_S, PROGRESS_TIMEOUT_S, wait_until


class End(Enum):
    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "not known"


@dataclass(slots=True)
class TransactionLedger:
    """Transactions by name, and how they ended for their writers."""

    ends: dict[str, End] = field(default_factory=dict)

    def count(self, end: End) -> int:
        return sum(each is end for each in list(self.ends.values()))

    def faults(self, seen: Iterable[str], partitions: int) -> list[str]:
        """What is wrong with the values that a reader of committed records saw in all partitions."""
        times = Counter(seen)
        allowed = {End.COMMITTED: {partitions}, End.ABORTED: {0}, End.UNKNOWN: {0, partitions}}
        return [
            f"{name}, {end.value}: {times[name]} of {partitions} records"
            for name, end in self.ends.items()
            if times[name] not in allowed[end]
        ] + [f"{name}: of no writer" for name in times if name not in self.ends]


class TransactionWriters:
    def __init__(self, bootstrap: str, topic: str, partitions: int, *, writers: int = 3, seed: int = 1) -> None:
        self.ledger = TransactionLedger()
        self.errors: list[BaseException] = []
        self._bootstrap, self._topic, self._partitions = bootstrap, topic, partitions
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._write, args=(f"writer{number}", random.Random(seed + number)), daemon=True)
            for number in range(writers)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(JOIN_TIMEOUT_S)
            assert not thread.is_alive(), "a writer hangs"

    def wait_for_more(self, committed: int, aborted: int) -> None:
        """Until so many more transactions have ended in each way, or a writer failed."""
        wanted = {End.COMMITTED: committed, End.ABORTED: aborted}
        goals = {end: self.ledger.count(end) + more for end, more in wanted.items()}
        wait_until(
            lambda: bool(self.errors) or all(self.ledger.count(end) >= goal for end, goal in goals.items()),
            PROGRESS_TIMEOUT_S,
            f"{committed} transactions were committed and {aborted} aborted",
        )

    def _write(self, name: str, chance: random.Random) -> None:
        number = 0
        try:
            with Producer(bootstrap_servers=self._bootstrap, transactional_id=name, linger_ms=1) as producer:
                producer.init_transactions(JOIN_TIMEOUT_S)
                while not self._stop.is_set():
                    self._write_one(producer, f"{name}-{number}", is_kept=chance.random() < 0.8)
                    number += 1
        except BaseException as error:  # noqa: BLE001 - the test shows it
            self.errors.append(error)

    def _write_one(self, producer: Producer, name: str, *, is_kept: bool) -> None:
        self.ledger.ends[name] = End.UNKNOWN
        producer.begin_transaction()
        try:
            for partition in range(self._partitions):
                producer.send(self._topic, name, partition=partition)
            if is_kept:
                producer.commit_transaction(JOIN_TIMEOUT_S)
                self.ledger.ends[name] = End.COMMITTED
                return
            producer.flush(JOIN_TIMEOUT_S)
        except ClientError as error:
            if not error.abortable:
                raise
        producer.abort_transaction(JOIN_TIMEOUT_S)
        self.ledger.ends[name] = End.ABORTED


class CommittedReader:
    """Reads along, from before the first transaction to behind the last."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self.seen: list[str] = []
        self.errors: list[BaseException] = []
        self._bootstrap = bootstrap
        self._assigned = [TopicPartition(topic, number) for number in range(partitions)]
        self._may_end, self._is_over = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def finish(self) -> list[str]:
        """What was seen, up to the present end."""
        self._may_end.set()
        wait_until(self._is_over.is_set, JOIN_TIMEOUT_S, "the reader of committed records came to the end")
        return self.seen

    def _read(self) -> None:
        try:
            with Consumer(
                bootstrap_servers=self._bootstrap, isolation_level="read_committed", auto_offset_reset="earliest"
            ) as consumer:
                consumer.assign(self._assigned)
                while not (self._may_end.is_set() and self._is_at_end(consumer)):
                    self.seen += [record.value.decode() for record in consumer.poll(200)]
        except BaseException as error:  # noqa: BLE001 - the test shows it
            self.errors.append(error)
        finally:
            self._is_over.set()

    def _is_at_end(self, consumer: Consumer) -> bool:
        ends = consumer.end_offsets(self._assigned, timeout_ms=5_000)
        return all(consumer.position(partition) >= end for partition, end in ends.items())
