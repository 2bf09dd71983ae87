"""The coordinator through thousands of steps: clients of both protocols, late and failing commits, leadership lost
between append and commit, crashes, brokers that are down.

Whatever happens, after every step:
- what the shard holds is what its log says, so a crash at this very moment would change nothing (a fresh shard is built
  from the log and compared, both its committed and its newest view);
- no identity (producer id and epoch) is handed to two owners;
- a transaction has one end: no partition gets an abort and a commit for the same identity, and markers are written for
  decisions that are committed in the log only;
- an end that was answered stays what it was.
And once everything is well again, nothing hangs.
"""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.types import TopicPartition
from penstock.coordinator.records.transaction_records import decode_transaction_key, decode_transaction_value
from penstock.coordinator.transaction.answers import Answer
from penstock.coordinator.transaction.metadata import Producer
from penstock.coordinator.transaction.operations.ending import EndTransaction
from penstock.coordinator.transaction.operations.owning import InitProducerId
from penstock.coordinator.transaction.operations.partitions import PartitionsOfTransaction
from penstock.coordinator.transaction.states import TransactionState
from penstock.records.batch import read_header
from penstock.records.builder import read_records
from tests.unit.coordinator.transaction.stage import ORDERS_0, ORDERS_1, PAYMENTS_0, TransactionStage, WrittenMarker

IDS = st.sampled_from(["tran-0", "tran-1", "tran-2"])
PLACES = st.sets(st.sampled_from([ORDERS_0, ORDERS_1, PAYMENTS_0]), min_size=1)
FRESH = st.integers(0, 9)
TRANSACTION_TIMEOUT_MS = 20_000

Client = tuple[str, Producer]


class TransactionMachine(RuleBasedStateMachine):
    @initialize(commits_at_once=st.booleans(), version=st.sampled_from([0, 1, 2]))
    def start(self, commits_at_once: bool, version: int) -> None:
        self.stage = TransactionStage(commits_at_once=commits_at_once, transaction_version=version)
        self.clients: list[Client] = []
        self.versions: dict[str, int] = {}
        self.given: dict[Producer, Producer | None] = {}
        self.answered: dict[tuple[str, Producer], bool] = {}
        self.asked: list[tuple[asyncio.Future[Any], Any]] = []
        self.checked = 0

    def teardown(self) -> None:
        if hasattr(self, "stage"):
            self.recover()
            self.stage.close()

    # -- Clients -------------------------------------------------------------------------------------------------------

    def ask(self, work: Any, note: Any) -> None:
        self.asked.append((self.stage.begin(work), note))
        self.collect()

    def collect(self) -> None:
        waiting = []
        for future, note in self.asked:
            if future.done():
                note(future.result())
            else:
                waiting.append((future, note))
        self.asked = waiting

    def pick(self, index: int) -> Client | None:
        return self.clients[-1 - index % len(self.clients)] if self.clients else None

    @rule(transactional_id=IDS)
    def own(self, transactional_id: str) -> None:
        request = InitProducerId(transactional_id=transactional_id, timeout_ms=TRANSACTION_TIMEOUT_MS)
        self.ask(
            self.stage.coordinator.init_producer_id(request),
            lambda answer: self.note_owner(transactional_id, None, answer),
        )

    @rule(index=FRESH)
    def bump(self, index: int) -> None:
        client = self.pick(index)
        if client is not None:
            name, producer = client
            request = InitProducerId(transactional_id=name, timeout_ms=TRANSACTION_TIMEOUT_MS, expected=producer)
            self.ask(
                self.stage.coordinator.init_producer_id(request),
                lambda answer: self.note_owner(name, producer, answer),
            )

    def note_owner(self, name: str, expected: Producer | None, answer: Answer) -> None:
        if answer.code is not ErrorCode.NONE:
            return
        # The same identity twice only for the same question.
        assert answer.producer not in self.given or (
            expected is not None and self.given[answer.producer] == expected
        ), (answer, self.given)
        self.given[answer.producer] = expected
        self.clients.append((name, answer.producer))

    @rule(index=FRESH, places=PLACES)
    def add(self, index: int, places: set[TopicPartition]) -> None:
        client = self.pick(index)
        if client is not None:
            request = PartitionsOfTransaction(
                transactional_id=client[0], producer=client[1], partitions=frozenset(places)
            )
            self.ask(self.stage.coordinator.add_partitions(request), lambda _: None)

    @rule(index=FRESH, commit=st.booleans(), second_protocol=st.booleans())
    def end(self, index: int, commit: bool, second_protocol: bool) -> None:
        client = self.pick(index)
        if client is None:
            return
        name, producer = client
        # An application is of one protocol.
        version = self.versions.setdefault(name, 2 if second_protocol else 0)
        request = EndTransaction(transactional_id=name, producer=producer, commit=commit, client_version=version)
        self.ask(
            self.stage.coordinator.end_transaction(request),
            lambda answer: self.note_end(name, producer, commit, version, answer),
        )

    def note_end(self, name: str, producer: Producer, commit: bool, version: int, answer: Answer) -> None:
        if answer.code is not ErrorCode.NONE or version < 2:
            return
        known = self.answered.setdefault((name, producer), commit)
        assert known == commit, f"{name} {producer} was told of both ends"
        if answer.producer not in self.given:
            self.given[answer.producer] = producer
            self.clients.append((name, answer.producer))

    # -- The world -----------------------------------------------------------------------------------------------------

    @rule(back=st.integers(0, 2))
    def commit(self, back: int) -> None:
        if self.stage.log.leader_epoch is not None:
            self.stage.log.commit(max(self.stage.log.hw, self.stage.log.end - back))
            self.step()

    @rule(code=st.sampled_from([ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.KAFKA_STORAGE_ERROR]))
    def refuse(self, code: ErrorCode) -> None:
        self.stage.log.refusals.append(KafkaError(code))

    @rule(keeps_all=st.booleans())
    def lose_leadership_and_win_it_again(self, keeps_all: bool) -> None:
        epoch = (self.stage.log.leader_epoch or 0) + 1
        self.stage.log.lose(truncate_to=None if keeps_all else self.stage.log.hw)
        self.step()
        self.stage.log.leader_epoch = epoch
        if keeps_all:
            self.stage.log.hw = self.stage.log.end
        self.stage.load()
        self.step()

    @rule()
    def crash(self) -> None:
        self.stage.crash()
        self.step()

    @rule(node=st.sampled_from([1, 2]))
    def broker_down(self, node: int) -> None:
        self.stage.peers.down.add(node)

    @rule()
    def brokers_up(self) -> None:
        self.stage.peers.down.clear()

    @rule()
    def hold_or_release_markers(self) -> None:
        if self.stage.peers.is_holding:
            self.stage.peers.release()
        else:
            self.stage.peers.is_holding = True
        self.step()

    @rule(place=st.sampled_from([ORDERS_0, ORDERS_1]), node=st.sampled_from([1, 2, -1]))
    def move_leader(self, place: TopicPartition, node: int) -> None:
        self.stage.peers.leaders[place] = node

    @rule(seconds=st.sampled_from([0.05, 1.0, 25.0]))
    def wait(self, seconds: float) -> None:
        self.stage.world.advance(seconds)
        self.step()

    def step(self) -> None:
        self.stage.world.settle(20)
        self.collect()

    # -- What must hold ------------------------------------------------------------------------------------------------

    @invariant()
    def the_shard_is_what_the_log_says(self) -> None:
        if not hasattr(self, "stage"):
            return
        self.stage.runtime.check_invariants()
        shard, hw = self.stage.shard, self.stage.log.hw
        committed, newest = self.replayed(hw), self.replayed(self.stage.log.end)
        assert {key: _told(each) for key, each in shard.transactions.items_committed()} == committed
        assert {key: _told(each) for key, each in shard.transactions.items()} == newest

    def replayed(self, up_to: int) -> dict[str, tuple[Any, ...]]:
        found: dict[str, tuple[Any, ...]] = {}
        for name, value in self.records(up_to):
            if value is None:
                found.pop(name, None)
            else:
                places = frozenset(
                    TopicPartition(topic, number)
                    for topic, numbers in value.transaction_partitions or ()
                    for number in numbers
                )
                found[name] = (value.producer_id, value.producer_epoch, value.transaction_status, places)
        return found

    def records(self, up_to: int) -> Any:
        for batch in self.stage.log.batches:
            for record in read_records(batch, 0, read_header(batch)):
                if record.offset < up_to:
                    value = None if record.value is None else decode_transaction_value(record.value)
                    yield decode_transaction_key(record.key or b""), value

    @invariant()
    def a_transaction_has_one_end(self) -> None:
        if not hasattr(self, "stage") or len(self.stage.peers.written) == self.checked:
            return
        self.checked = len(self.stage.peers.written)
        ends: dict[tuple[TopicPartition, Producer], list[bool]] = {}
        decided = {
            (value.producer_id, value.producer_epoch, value.transaction_status)
            for _, value in self.records(self.stage.log.end)
            if value is not None
        }
        for marker in self.stage.peers.written:
            ends.setdefault((marker.place, marker.producer), []).append(marker.commit)
            status = TransactionState.PREPARE_COMMIT if marker.commit else TransactionState.PREPARE_ABORT
            assert (*marker.producer, status) in decided, marker
            self.check_answered(marker)
        for (place, producer), found in ends.items():
            if any(marker.version >= 2 for marker in self.stage.peers.written if marker.producer == producer):
                assert len(set(found)) == 1, f"{place} got both ends of {producer}: {found}"

    def check_answered(self, marker: WrittenMarker) -> None:
        if marker.version < 2:
            return
        before = Producer(marker.producer.id, marker.producer.epoch - 1)
        for (_, producer), commit in self.answered.items():
            if producer == before:
                assert commit == marker.commit, (marker, commit)

    # -- The end of a run ----------------------------------------------------------------------------------------------

    def recover(self) -> None:
        """All is well again: nothing may hang."""
        stage = self.stage
        stage.log.refusals.clear()
        stage.log.commits_at_once = True
        stage.peers.down.clear()
        stage.peers.leaders.update({ORDERS_0: 1, ORDERS_1: 2})
        stage.log.commit()
        stage.peers.release()
        self.step()
        for _ in range(4):
            stage.world.advance(15)
            self.step()
        assert not self.asked, "a request was never answered"
        for name, metadata in stage.shard.transactions.items():
            assert metadata.state.is_idle, (name, metadata)
        assert stage.coordinator.markers.pending_count == 0
        self.the_shard_is_what_the_log_says()
        self.a_transaction_has_one_end()
        self.every_partition_was_released()

    def every_partition_was_released(self) -> None:
        """Each partition of a decided transaction has its marker."""
        written = {(each.place, each.producer, each.commit) for each in self.stage.peers.written}
        for name, value in self.records(self.stage.log.end):
            if value is None or not TransactionState(value.transaction_status).is_prepared:
                continue
            commit = value.transaction_status == TransactionState.PREPARE_COMMIT
            for topic, numbers in value.transaction_partitions or ():
                for number in numbers:
                    key = (TopicPartition(topic, number), Producer(value.producer_id, value.producer_epoch), commit)
                    assert key in written, (name, key)


def _told(metadata: Any) -> tuple[Any, ...]:
    return (metadata.producer_id, metadata.producer_epoch, metadata.state, metadata.partitions)


TestTransactionMachine = TransactionMachine.TestCase
TestTransactionMachine.settings = settings(max_examples=60, stateful_step_count=60, deadline=None)
