"""The coordinator against the simple model: every code and every identity, with a crash between any two requests."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from penstock.base.errors import ErrorCode
from penstock.base.types import TopicPartition
from penstock.coordinator.transaction.metadata import Producer
from tests.unit.coordinator.transaction.model import Model
from tests.unit.coordinator.transaction.stage import ORDERS_0, ORDERS_1, PAYMENTS_0, TransactionStage

IDS = st.sampled_from(["tran-0", "tran-1"])
PLACES = st.sets(st.sampled_from([ORDERS_0, ORDERS_1, PAYMENTS_0]), min_size=1)


class ModelMachine(RuleBasedStateMachine):
    @initialize()
    def start(self) -> None:
        self.stage = TransactionStage()
        self.model = Model()
        self.producers: dict[str, list[Producer]] = {}

    def teardown(self) -> None:
        if hasattr(self, "stage"):
            self.stage.close()

    def producer_of(self, name: str, index: int) -> Producer:
        known = self.producers.get(name, [Producer(1, 0)])
        return known[-1 - index % len(known)]

    def settle(self) -> None:
        self.stage.world.settle(30)

    @rule(name=IDS)
    def init(self, name: str) -> None:
        answer = self.stage.init(name)
        assert self.model.init(name, answer.producer) is answer.code
        if answer.code is ErrorCode.NONE:
            self.producers.setdefault(name, []).append(answer.producer)
        self.settle()

    @rule(name=IDS, index=st.integers(0, 2), places=PLACES)
    def add(self, name: str, index: int, places: set[TopicPartition]) -> None:
        producer = self.producer_of(name, index)
        assert self.stage.add(producer, *places, transactional_id=name) is self.model.add(name, producer, places)

    @rule(name=IDS, index=st.integers(0, 2), commit=st.booleans(), version=st.sampled_from([0, 2]))
    def end(self, name: str, index: int, commit: bool, version: int) -> None:
        producer = self.producer_of(name, index)
        answer = self.stage.end(producer, commit=commit, version=version, transactional_id=name)
        assert answer.code is self.model.end(name, producer, commit, version)
        if answer.code is ErrorCode.NONE and version >= 2:
            assert answer.producer == self.model.ids[name].producer
            self.producers[name].append(answer.producer)
        self.settle()

    @rule()
    def crash(self) -> None:
        self.stage.crash()
        self.settle()

    @invariant()
    def identities_and_partitions_agree(self) -> None:
        if not hasattr(self, "stage"):
            return
        for name, known in self.model.ids.items():
            metadata = self.stage.metadata(name)
            assert metadata.producer == known.producer, (name, metadata, known)
            assert metadata.partitions == known.open, (name, metadata, known)


TestModelMachine = ModelMachine.TestCase
TestModelMachine.settings = settings(max_examples=60, stateful_step_count=60, deadline=None)
