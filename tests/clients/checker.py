"""Counts what a load lost, doubled or reordered while its brokers were killed.

Writers number their records per key, so that the log alone tells the whole story: `check_log` compares what was
acknowledged with what is there. Readers of a group may be given a record again (a commit that did not arrive), but
never one that was committed, and never with a gap in front of it: `GroupLedger` follows every stay of a partition with
a member. Both are plain bookkeeping; `Writers` and `Readers` are the threads that feed them.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock import Consumer, Producer, TopicPartition
from penstock.client.errors import KafkaError, is_retriable

JOIN_TIMEOUT_S = 60.0
PROGRESS_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How many records of which kind; `examples` names some of them."""

    lost: int = 0
    doubled: int = 0
    reordered: int = 0
    foreign: int = 0
    examples: tuple[str, ...] = ()

    @property
    def is_clean(self) -> bool:
        return not (self.lost or self.doubled or self.reordered or self.foreign)


def check_log(written: Mapping[bytes, int], found: Iterable[tuple[bytes, int]]) -> Verdict:
    """`written` counts acknowledged records per key, numbered from 0; `found` are (key, number) in the log's order."""
    numbers: dict[bytes, list[int]] = {}
    for key, number in found:
        numbers.setdefault(key, []).append(number)
    verdicts = [_check_key(key, written.get(key, 0), numbers.get(key, [])) for key in {*written, *numbers}]
    return Verdict(
        lost=sum(verdict.lost for verdict in verdicts),
        doubled=sum(verdict.doubled for verdict in verdicts),
        reordered=sum(verdict.reordered for verdict in verdicts),
        foreign=sum(verdict.foreign for verdict in verdicts),
        examples=tuple(example for verdict in verdicts for example in verdict.examples)[:10],
    )


def _check_key(key: bytes, count: int, numbers: list[int]) -> Verdict:
    times = Counter(numbers)
    lost = [number for number in range(count) if number not in times]
    doubled = [number for number, seen in times.items() if seen > 1]
    firsts = list(dict.fromkeys(numbers))
    reordered = [after for before, after in itertools.pairwise(firsts) if after < before]
    foreign = [number for number in times if not 0 <= number < count]
    kinds = {"lost": lost, "doubled": doubled, "reordered": reordered, "foreign": foreign}
    return Verdict(
        **{kind: len(bad) for kind, bad in kinds.items()},
        examples=tuple(f"{key!r}: {kind} {bad[:5]}" for kind, bad in kinds.items() if bad),
    )


@dataclass
class GroupLedger:
    """What the members of a group were given, by partition. Threads share it."""

    taken: dict[TopicPartition, set[int]] = field(default_factory=dict)
    committed: dict[TopicPartition, int] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    again: int = 0
    """Records that were given a second time, which a lost commit excuses."""
    _expected: dict[tuple[str, TopicPartition], int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def assigned(self, member: str, partitions: Iterable[TopicPartition]) -> None:
        """A new stay: its first record may be any that was not committed."""
        with self._lock:
            for partition in partitions:
                self._expected.pop((member, partition), None)

    def took(self, member: str, partition: TopicPartition, offset: int) -> None:
        with self._lock:
            seen = self.taken.setdefault(partition, set())
            expected = self._expected.get((member, partition))
            if expected is not None and offset != expected:
                self.faults.append(f"{member} got {partition} offset {offset} after {expected - 1}")
            if offset in seen:
                self.again += 1
                if offset < self.committed.get(partition, 0):
                    self.faults.append(f"{member} got {partition} offset {offset} again, which was committed")
            seen.add(offset)
            self._expected[member, partition] = offset + 1

    def commit_done(self, offsets: Mapping[TopicPartition, int]) -> None:
        with self._lock:
            for partition, offset in offsets.items():
                self.committed[partition] = max(offset, self.committed.get(partition, 0))

    def missing(self, ends: Mapping[TopicPartition, int]) -> int:
        with self._lock:
            return sum(end - len(self.taken.get(partition, ())) for partition, end in ends.items())


class Writers:
    """Threads that share one producer, each with keys of its own; `written` counts what was acknowledged."""

    def __init__(
        self,
        producer: Producer,
        topic: str,
        *,
        name: str = "writer",
        threads: int = 3,
        keys: int = 5,
        per_round: int = 20,
    ) -> None:
        self.written: dict[bytes, int] = {}
        self.errors: list[BaseException] = []
        self._producer, self._topic, self._per_round = producer, topic, per_round
        self._stop = threading.Event()
        names = [[f"{name}{number}-key{key}".encode() for key in range(keys)] for number in range(threads)]
        self._threads = [threading.Thread(target=self._write, args=(each,), daemon=True) for each in names]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Nothing more is sent; everything sent has its end."""
        self._stop.set()
        for thread in self._threads:
            thread.join(JOIN_TIMEOUT_S)
            assert not thread.is_alive(), "a writer hangs in send()"
        self._producer.flush(JOIN_TIMEOUT_S)

    def _write(self, keys: list[bytes]) -> None:
        number = 0
        try:
            while not self._stop.is_set():
                for _ in range(self._per_round):
                    for key in keys:
                        self._producer.send(self._topic, b"%d" % number, key, on_delivery=self._told)
                        self.written[key] = number + 1
                    number += 1
                self._stop.wait(0.02)
        except KafkaError as error:
            self.errors.append(error)

    @property
    def count(self) -> int:
        """Records handed over so far."""
        return sum(list(self.written.values()))

    def _told(self, _: object, error: BaseException | None) -> None:
        if error is not None:
            self.errors.append(error)


class Readers:
    """Members of one group, a thread each, which commit after every poll."""

    def __init__(self, bootstrap: str, topic: str, ledger: GroupLedger, *, members: int = 2, **options: Any) -> None:
        self.errors: list[BaseException] = []
        self._bootstrap, self._topic, self._ledger, self._options = bootstrap, topic, ledger, options
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._read, args=(f"member{number}",), daemon=True) for number in range(members)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(JOIN_TIMEOUT_S)
            assert not thread.is_alive(), "a reader hangs"

    def _read(self, member: str) -> None:
        try:
            with Consumer(
                bootstrap_servers=self._bootstrap, group_id="checked", auto_offset_reset="earliest",
                enable_auto_commit=False, **self._options,
            ) as consumer:  # fmt: skip
                consumer.subscribe([self._topic], on_assign=lambda _, found: self._ledger.assigned(member, found))
                while not self._stop.is_set():
                    self._round(consumer, member)
        except BaseException as error:  # noqa: BLE001 - the test shows it
            self.errors.append(error)

    def _round(self, consumer: Consumer, member: str) -> None:
        ends: dict[TopicPartition, int] = {}
        for record in consumer.poll(200):
            partition = TopicPartition(record.topic, record.partition)
            self._ledger.took(member, partition, record.offset)
            ends[partition] = record.offset + 1
        if not ends:
            return
        try:
            consumer.commit(ends, timeout_ms=2_000)
        except KafkaError as error:
            # A broker that is away, a generation that has passed: what was not committed may come again.
            if not (is_retriable(error) or error.code in GENERATION_PASSED):
                raise
            return
        self._ledger.commit_done(ends)


GENERATION_PASSED = (22, 25, 27)
"""ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, REBALANCE_IN_PROGRESS."""


def wait_until(condition: Callable[[], bool], timeout_s: float, what: str) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"not within {timeout_s:.0f} s: {what}"
        time.sleep(0.05)
