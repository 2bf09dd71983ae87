"""What transactional producers are told, by Apache Kafka and by Penstock: cases as in `differential`."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from penstock.protocol.apis import ApiKey
from penstock.protocol.messages import add_offsets_to_txn as ao
from penstock.protocol.messages import add_partitions_to_txn as ap
from penstock.protocol.messages import describe_producers as dp
from penstock.protocol.messages import describe_transactions as dx
from penstock.protocol.messages import end_txn as et
from penstock.protocol.messages import find_coordinator as fc
from penstock.protocol.messages import init_producer_id as ip
from penstock.protocol.messages import list_transactions as lt
from penstock.protocol.messages import offset_fetch as of
from penstock.protocol.messages import txn_offset_commit as tc
from penstock.protocol.messages import write_txn_markers as wm
from tests.compat.differential import Case, CaseFunction, Cases, Peers, both_brokers
from tests.integration.driving import batch, produce_request
from tests.integration.side_by_side import Peer

CASES = Cases()
case = CASES.add

CONCURRENT_TRANSACTIONS = 51
NOT_READY = {14, 15, 16}
NOW = int(time.time() * 1000)
_numbers = itertools.count()


def prepare(peer: Peer) -> None:
    peer.create("three", 3)
    peer.create("other", 1)
    for kind in (0, 1):
        request = fc.FindCoordinatorRequest(key_type=kind, coordinator_keys=["any"])
        until(lambda r=request: peer.call(ApiKey.FIND_COORDINATOR, 6, r).coordinators[0].error_code, NOT_READY)  # type: ignore[misc]
    for number in range(300):
        init = ip.InitProducerIdRequest(transactional_id=f"warm-{number}", transaction_timeout_ms=10_000)
        until(lambda r=init: peer.call(ApiKey.INIT_PRODUCER_ID, 4, r).error_code, NOT_READY)  # type: ignore[misc]


def until(code: Callable[[], int], not_yet: set[int]) -> int:
    """The first code that does not say `come back`."""
    deadline = time.monotonic() + 30
    while (answered := code()) in not_yet and time.monotonic() < deadline:
        time.sleep(0.02)
    return answered


@pytest.fixture(scope="module")
def peers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peers]:
    with both_brokers(tmp_path_factory, prepare) as both:
        yield both


# -- A producer as a client is one -------------------------------------------------------------------------------------


class Producer:
    """One transactional id of its own for one case."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.id = f"tx-{next(_numbers)}"
        self.producer_id = -1
        self.epoch = -1
        self.sequence = 0

    def plain(self, answer: Any) -> Any:
        if isinstance(answer, str):
            return "the id" if answer == self.id else answer.replace(self.id, "the id")
        if isinstance(answer, list):
            return [self.plain(each) for each in answer]
        if isinstance(answer, dict):
            return {key: self.plain(value) for key, value in answer.items() if not key.endswith("_time_ms")}
        return answer

    def init(self, version: int = 4, *, timeout_ms: int = 30_000, **changes: Any) -> Any:
        settings = {"transactional_id": self.id, "transaction_timeout_ms": timeout_ms} | changes
        request = ip.InitProducerIdRequest(**settings)
        answers: list[Any] = []

        def ask() -> int:
            answers.append(self.peer.call(ApiKey.INIT_PRODUCER_ID, version, request))
            code: int = answers[-1].error_code
            return code

        if until(ask, {CONCURRENT_TRANSACTIONS}) == 0:
            self.producer_id, self.epoch = answers[-1].producer_id, answers[-1].producer_epoch
        return answers[-1]

    def ready(self) -> Producer:
        assert self.init().error_code == 0
        return self

    def owner(self, changes: dict[str, Any]) -> tuple[str, int, int]:
        """Transactional id, producer id and epoch, changed as a case wants it; epochs are relative."""
        return (
            changes.get("id", self.id),
            self.producer_id + changes.get("producer", 0),
            self.epoch + changes.get("epoch", 0),
        )

    def add(self, version: int = 3, partitions: dict[str, list[int]] | None = None, **changes: Any) -> Any:
        name, producer_id, epoch = self.owner(changes)
        wanted = {"three": [0]} if partitions is None else partitions
        topics = [ap.AddPartitionsToTxnTopic(name=topic, partitions=rows) for topic, rows in wanted.items()]
        if version < 4:
            request = ap.AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=name,
                v3_and_below_producer_id=producer_id,
                v3_and_below_producer_epoch=epoch,
                v3_and_below_topics=topics,
            )
        else:
            row = ap.AddPartitionsToTxnTransaction(
                transactional_id=name,
                producer_id=producer_id,
                producer_epoch=epoch,
                verify_only=changes.get("verify_only", False),
                topics=topics,
            )
            request = ap.AddPartitionsToTxnRequest(transactions=[row])
        return self.peer.call(ApiKey.ADD_PARTITIONS_TO_TXN, version, request)

    def produce(self, version: int = 11, partition: int = 0, topic: str = "three", **changes: Any) -> Any:
        name, producer_id, epoch = self.owner(changes)
        data = batch(
            b"x",
            timestamp=NOW,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=self.sequence + changes.get("sequence", 0),
            transactional=True,
        )
        named = self.peer.topic(topic, by_id=version >= 13)
        request = produce_request(named, {partition: data}, transactional_id=name)
        answer = self.peer.call(ApiKey.PRODUCE, version, request)
        (row,) = answer.responses[0].partition_responses
        self.sequence += row.error_code == 0
        # Offsets depend on the cases before; only their order counts.
        return [row.error_code, row.base_offset >= 0]

    def end(self, version: int = 3, *, committed: bool = True, **changes: Any) -> Any:
        name, producer_id, epoch = self.owner(changes)
        request = et.EndTxnRequest(
            transactional_id=name, producer_id=producer_id, producer_epoch=epoch, committed=committed
        )
        answers: list[Any] = []

        def ask() -> int:
            answers.append(self.peer.call(ApiKey.END_TXN, version, request))
            code: int = answers[-1].error_code
            return code

        until(ask, {CONCURRENT_TRANSACTIONS})
        return answers[-1]

    def add_offsets(self, version: int = 3, group: str | None = None, **changes: Any) -> Any:
        name, producer_id, epoch = self.owner(changes)
        request = ao.AddOffsetsToTxnRequest(
            transactional_id=name,
            producer_id=producer_id,
            producer_epoch=epoch,
            group_id=self.id if group is None else group,
        )
        return self.peer.call(ApiKey.ADD_OFFSETS_TO_TXN, version, request)

    def commit_offsets(self, version: int = 3, **changes: Any) -> Any:
        name, producer_id, epoch = self.owner(changes)
        row = tc.TxnOffsetCommitRequestPartition(
            partition_index=changes.get("partition", 0),
            committed_offset=7,
            committed_metadata=changes.get("metadata", "note"),
        )
        request = tc.TxnOffsetCommitRequest(
            transactional_id=name,
            group_id=changes.get("group", self.id),
            producer_id=producer_id,
            producer_epoch=epoch,
            generation_id=changes.get("generation", -1),
            member_id=changes.get("member", ""),
            topics=[tc.TxnOffsetCommitRequestTopic(name=changes.get("topic", "three"), partitions=[row])],
        )
        return self.peer.call(ApiKey.TXN_OFFSET_COMMIT, version, request)

    def fetch_offsets(self, *, stable: bool = False) -> Any:
        group = of.OffsetFetchRequestGroup(
            group_id=self.id, topics=[of.OffsetFetchRequestTopics(name="three", partition_indexes=[0])]
        )
        return self.peer.call(ApiKey.OFFSET_FETCH, 8, of.OffsetFetchRequest(groups=[group], require_stable=stable))

    def describe(self, *names: str) -> Any:
        request = dx.DescribeTransactionsRequest(transactional_ids=list(names) or [self.id])
        return self.peer.call(ApiKey.DESCRIBE_TRANSACTIONS, 0, request)


def scenario(story: Callable[[Producer, int], Any]) -> CaseFunction:
    def ask(peer: Peer, version: int) -> Any:
        producer = Producer(peer)
        return producer.plain(peer.comparable(story(producer, version)))

    return ask


# -- InitProducerId --------------------------------------------------------------------------------------------------

case("twice", ApiKey.INIT_PRODUCER_ID, scenario(lambda one, version: [one.init(version), one.init(version)]))
for label, changes in {
    "empty id": {"transactional_id": ""},
    "time-out 0": {"transaction_timeout_ms": 0},
    "negative time-out": {"transaction_timeout_ms": -1},
    "time-out too long": {"transaction_timeout_ms": 900_001},
    "largest time-out": {"transaction_timeout_ms": 900_000},
}.items():
    case(label, ApiKey.INIT_PRODUCER_ID, scenario(lambda one, version, c=changes: one.init(version, **c)))  # type: ignore[misc]


def bump(producer: int = 0, epoch: int = 0) -> CaseFunction:
    def story(one: Producer, version: int) -> Any:
        one.ready()
        wanted = {"producer_id": one.producer_id + producer, "producer_epoch": one.epoch + epoch}
        return [one.init(version, **wanted), one.init(version, **wanted)]

    return scenario(story)


case("own epoch, then again", ApiKey.INIT_PRODUCER_ID, bump(), since=3)
case("old epoch", ApiKey.INIT_PRODUCER_ID, bump(epoch=-1), since=3)
case("future epoch", ApiKey.INIT_PRODUCER_ID, bump(epoch=5), since=3)
case("other producer", ApiKey.INIT_PRODUCER_ID, bump(producer=1_000_000), since=3)


def init_in_transaction(one: Producer, version: int) -> Any:
    one.ready().add()
    one.produce()
    answer = one.init(version)
    return [answer, one.describe()]


case("in a transaction", ApiKey.INIT_PRODUCER_ID, scenario(init_in_transaction))


# -- AddPartitionsToTxn and Produce ------------------------------------------------------------------------------------

OWNERS: dict[str, dict[str, Any]] = {
    "good": {},
    "old epoch": {"epoch": -1},
    "future epoch": {"epoch": 1},
    "other producer": {"producer": 1_000_000},
    "unknown id": {"id": "nobody"},
    "no id": {"id": ""},
}
for label, changes in OWNERS.items():
    case(label, ApiKey.ADD_PARTITIONS_TO_TXN, scenario(lambda one, version, c=changes: one.ready().add(version, **c)))  # type: ignore[misc]
for label, partitions in {
    "several": {"three": [0, 1], "other": [0]},
    "unknown topic": {"missing": [0]},
    "unknown partition": {"three": [0, 9]},
}.items():
    case(
        label,
        ApiKey.ADD_PARTITIONS_TO_TXN,
        scenario(lambda one, version, p=partitions: [one.ready().add(version, p), one.describe()]),  # type: ignore[misc]
    )
case(
    "none",
    ApiKey.ADD_PARTITIONS_TO_TXN,
    scenario(lambda one, version: [one.ready().add(version, {}), one.describe()]),
    deviates="Kafka begins a transaction without partitions, which holds the id until somebody ends it",
)


def verifying(*, added: bool, **changes: Any) -> CaseFunction:
    def story(one: Producer, version: int) -> Any:
        one.ready()
        if added:
            one.add()
        return one.add(version, verify_only=True, **changes)

    return scenario(story)


case("verified", ApiKey.ADD_PARTITIONS_TO_TXN, verifying(added=True), since=4)
case("verified without one", ApiKey.ADD_PARTITIONS_TO_TXN, verifying(added=False), since=4)
case("verified for an old epoch", ApiKey.ADD_PARTITIONS_TO_TXN, verifying(added=True, epoch=-1), since=4)


def producing(*, added: bool = True, **changes: Any) -> CaseFunction:
    def story(one: Producer, version: int) -> Any:
        one.ready()
        if added:
            one.add()
        answer = one.produce(version, **changes)
        state = one.describe()
        return [answer, state, one.end().error_code]

    return scenario(story)


case("in a transaction", ApiKey.PRODUCE, producing())
case("not added", ApiKey.PRODUCE, producing(added=False))
case("another partition", ApiKey.PRODUCE, producing(partition=1))
case("old epoch", ApiKey.PRODUCE, producing(epoch=-1))
case("future epoch", ApiKey.PRODUCE, producing(epoch=1))
case("sequence gap", ApiKey.PRODUCE, producing(sequence=5))


# -- EndTxn ------------------------------------------------------------------------------------------------------------


def ending(*, committed: bool, added: bool = True, twice: bool = False, **changes: Any) -> CaseFunction:
    def story(one: Producer, version: int) -> Any:
        one.ready()
        if added:
            one.add()
            one.produce()
        return [one.end(version, committed=committed, **changes) for _ in range(2 if twice else 1)]

    return scenario(story)


for label, changes in OWNERS.items():
    case(label, ApiKey.END_TXN, ending(committed=True, **changes))
case("abort", ApiKey.END_TXN, ending(committed=False))
case("commit twice", ApiKey.END_TXN, ending(committed=True, twice=True))
case("abort twice", ApiKey.END_TXN, ending(committed=False, twice=True))
case("commit of nothing", ApiKey.END_TXN, ending(committed=True, added=False))
case("abort of nothing", ApiKey.END_TXN, ending(committed=False, added=False))


def commit_after_abort(one: Producer, version: int) -> Any:
    one.ready().add()
    one.produce()
    return [one.end(version, committed=False).error_code, one.end(version, committed=True).error_code]


case("commit after abort", ApiKey.END_TXN, scenario(commit_after_abort))


def end_one_epoch_behind(one: Producer, version: int) -> Any:
    """After an end of the first protocol, whose epoch has stayed."""
    one.ready().ready().add()
    one.produce()
    return [one.end(3, committed=False).error_code, one.end(version, committed=False, epoch=-1).error_code]


case("abort one epoch behind", ApiKey.END_TXN, scenario(end_one_epoch_behind))


# -- Offsets in a transaction ------------------------------------------------------------------------------------------

for label, changes in OWNERS.items():
    case(
        label,
        ApiKey.ADD_OFFSETS_TO_TXN,
        scenario(lambda one, version, c=changes: one.ready().add_offsets(version, **c)),
    )  # type: ignore[misc]
case("no group", ApiKey.ADD_OFFSETS_TO_TXN, scenario(lambda one, version: one.ready().add_offsets(version, "")))


def committing_offsets(*, added: bool = True, committed: bool = True, **changes: Any) -> CaseFunction:
    def story(one: Producer, version: int) -> Any:
        one.ready()
        if added:
            one.add_offsets()
        answers = [one.commit_offsets(version, **changes), one.fetch_offsets(), one.fetch_offsets(stable=True)]
        answers.append(one.end(committed=committed).error_code)
        return [*answers, _settled_offsets(one)]

    return scenario(story)


def _settled_offsets(one: Producer) -> Any:
    """When the markers are there."""
    answers: list[Any] = []

    def ask() -> int:
        answers.append(one.fetch_offsets(stable=True))
        code: int = answers[-1].groups[0].topics[0].partitions[0].error_code
        return code

    until(ask, {88})
    return answers[-1]


case("committed", ApiKey.TXN_OFFSET_COMMIT, committing_offsets())
case("aborted", ApiKey.TXN_OFFSET_COMMIT, committing_offsets(committed=False))
case("group not added", ApiKey.TXN_OFFSET_COMMIT, committing_offsets(added=False), until=4)
case("group not added, from version 5", ApiKey.TXN_OFFSET_COMMIT, committing_offsets(added=False), since=5)
for label, changes in {
    "old epoch": {"epoch": -1},
    "other producer": {"producer": 1_000_000},
    "unknown topic": {"topic": "missing"},
    "unknown partition": {"partition": 9},
    "metadata too large": {"metadata": "x" * 4097},
    "no metadata": {"metadata": None},
    "no group": {"group": ""},
    "generation of nobody": {"generation": 3},
    "member of nobody": {"generation": 3, "member": "stranger"},
}.items():
    case(
        label,
        ApiKey.TXN_OFFSET_COMMIT,
        scenario(lambda one, version, c=changes: [one.ready().add_offsets(), one.commit_offsets(version, **c)]),  # type: ignore[misc]
        until=4,
    )


# -- Administration ----------------------------------------------------------------------------------------------------


def described(one: Producer, version: int) -> Any:
    del version
    before = one.ready().describe()
    one.add(partitions={"three": [0, 2], "other": [0]})
    during = one.describe()
    one.end()
    until(lambda: one.describe().transaction_states[0].transaction_state.startswith("Prepare"), {True})
    return [before, during, one.describe(), one.describe("nobody"), one.describe("")]


case("through its states", ApiKey.DESCRIBE_TRANSACTIONS, scenario(described))


def listing(**filters: Any) -> CaseFunction:
    def story(one: Producer, version: int) -> Any:
        one.ready().add()
        answer = one.peer.call(ApiKey.LIST_TRANSACTIONS, version, lt.ListTransactionsRequest(**filters))
        answer.transaction_states = [each for each in answer.transaction_states if each.transactional_id == one.id]
        one.end()
        return answer

    return scenario(story)


case("all", ApiKey.LIST_TRANSACTIONS, listing())
for states in (["Ongoing"], ["Empty"], ["Nonsense"], ["Ongoing", "Nonsense"], ["ongoing"]):
    case(f"states {states}", ApiKey.LIST_TRANSACTIONS, listing(state_filters=states))
case("other producers", ApiKey.LIST_TRANSACTIONS, listing(producer_id_filters=[99_999_999]))
case("long ones", ApiKey.LIST_TRANSACTIONS, listing(duration_filter=3_600_000), since=1)
case("pattern", ApiKey.LIST_TRANSACTIONS, listing(transactional_id_pattern="tx-.*"), since=2)
case("pattern of others", ApiKey.LIST_TRANSACTIONS, listing(transactional_id_pattern="other-.*"), since=2)
case("no pattern", ApiKey.LIST_TRANSACTIONS, listing(transactional_id_pattern=""), since=2)
case("bad pattern", ApiKey.LIST_TRANSACTIONS, listing(transactional_id_pattern="(["), since=2)


def producers(topics: dict[str, list[int]]) -> CaseFunction:
    def story(one: Producer, version: int) -> Any:
        rows = [dp.TopicRequest(name=name, partition_indexes=indexes) for name, indexes in topics.items()]
        answer = one.peer.call(ApiKey.DESCRIBE_PRODUCERS, version, dp.DescribeProducersRequest(topics=rows))
        return [
            (topic.name, row.partition_index, row.error_code, len(row.active_producers) > 0)
            for topic in answer.topics
            for row in topic.partitions
        ]

    return scenario(story)


case("with one", ApiKey.DESCRIBE_PRODUCERS, producers({"three": [0]}))
case("unknown", ApiKey.DESCRIBE_PRODUCERS, producers({"three": [9], "missing": [0]}))
case("none", ApiKey.DESCRIBE_PRODUCERS, producers({}))


def marking(topic: str, partition: int, *, producer: int = 0, epoch: int = 0) -> CaseFunction:
    def story(one: Producer, version: int) -> Any:
        one.ready().add()
        one.produce()
        row = wm.WritableTxnMarker(
            producer_id=one.producer_id + producer,
            producer_epoch=one.epoch + epoch,
            transaction_result=True,
            coordinator_epoch=0,
            topics=[wm.WritableTxnMarkerTopic(name=topic, partition_indexes=[partition])],
        )
        return one.peer.call(ApiKey.WRITE_TXN_MARKERS, version, wm.WriteTxnMarkersRequest(markers=[row]))

    return scenario(story)


case("good", ApiKey.WRITE_TXN_MARKERS, marking("three", 0))
case(
    "old epoch",
    ApiKey.WRITE_TXN_MARKERS,
    marking("three", 0, epoch=-1),
    deviates="Kafka fails with UNKNOWN_SERVER_ERROR where INVALID_PRODUCER_EPOCH says what is wrong",
)
case("unknown producer", ApiKey.WRITE_TXN_MARKERS, marking("three", 0, producer=1_000_000))
case("unknown partition", ApiKey.WRITE_TXN_MARKERS, marking("three", 9))
case("unknown topic", ApiKey.WRITE_TXN_MARKERS, marking("missing", 0))


@pytest.mark.parametrize("case", CASES.parameters())
def test_transactions_are_answered_as_kafka_does(peers: Peers, case: Case) -> None:
    case.check(peers)
