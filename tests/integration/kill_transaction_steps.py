"""Begin, produce, commit of offsets and the end of a transaction, each as a step that the broker may die under.

Clients of the older protocol name each partition before they write to it; in the newer one (KIP-890) the first write
adds the partition, and every end of a transaction bumps the epoch. `newer` steps are such clients.

The end is three things: the decision is kept (prepare), every partition gets its marker, the coordinator notes that all
have it (complete). Once the decision is kept, a broker that comes back does the rest without being asked.
"""

from __future__ import annotations

from typing import Any

from penstock.base.errors import ErrorCode
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from penstock.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from penstock.protocol.messages.describe_transactions import DescribeTransactionsRequest
from penstock.protocol.messages.end_txn import EndTxnRequest
from penstock.protocol.messages.init_producer_id import InitProducerIdRequest
from penstock.protocol.messages.produce import ProduceRequest
from penstock.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from penstock.records.batch import iter_batches
from penstock.records.builder import read_records
from tests.integration.driving import batch, create_topic, delete_topic, fetch, produce_request
from tests.integration.kill_group_steps import NEW, NOTHING, PARTITIONS, TOPIC
from tests.integration.kill_steps import Request, Step, ask_well, committed_offsets, wait_for
from tests.support.raw_client import RawClient

WRITTEN_PARTITIONS = 3
VALUES = [b"one", b"two", b"three"]


def read_partition(client: RawClient, topic: str, partition: int, *, committed: bool) -> tuple[list[bytes], int, int]:
    """(values, last stable offset, high watermark), as a consumer of that isolation level sees them."""
    data = fetch(client, topic, 0, partition=partition, isolation_level=int(committed))
    assert data.error_code == 0, data
    aborted = sorted((each.first_offset, each.producer_id) for each in data.aborted_transactions or ())
    skipped: set[int] = set()
    values: list[bytes] = []
    records = data.records or b""
    for position, header in iter_batches(records):
        while aborted and aborted[0][0] <= header.base_offset:
            skipped.add(aborted.pop(0)[1])
        if header.is_control:
            skipped.discard(header.producer_id)
        elif header.producer_id not in skipped:
            values += [record.value or b"" for record in read_records(records, position, header)]
    return values, data.last_stable_offset, data.high_watermark


class TransactionStep(Step):
    newer = False
    has_topic = False
    producer_id = -1
    producer_epoch = -1

    @property
    def identity(self) -> dict[str, Any]:
        return {
            "transactional_id": self.id,
            "producer_id": self.producer_id,
            "producer_epoch": self.producer_epoch,
        }

    def init_request(self) -> InitProducerIdRequest:
        return InitProducerIdRequest(transactional_id=self.id, transaction_timeout_ms=600_000)

    def init(self, client: RawClient) -> None:
        answer = ask_well(client, ApiKey.INIT_PRODUCER_ID, 4, self.init_request())
        self.producer_id, self.producer_epoch = answer.producer_id, answer.producer_epoch

    def add_partitions_request(self) -> AddPartitionsToTxnRequest:
        topic = AddPartitionsToTxnTopic(name=self.id, partitions=list(range(WRITTEN_PARTITIONS)))
        return AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.producer_epoch,
            v3_and_below_topics=[topic],
        )

    def make_topic(self, client: RawClient) -> None:
        create_topic(client, self.id, WRITTEN_PARTITIONS)
        self.has_topic = True

    def judge(self, client: RawClient) -> bool:
        done = super().judge(client)
        if self.has_topic:
            # The fewer logs there are, the sooner the broker is back.
            delete_topic(client, self.id)
        return done

    def begin(self, client: RawClient) -> None:
        self.make_topic(client)
        self.init(client)
        if not self.newer:
            ask_well(client, ApiKey.ADD_PARTITIONS_TO_TXN, 3, self.add_partitions_request())

    @property
    def produce_version(self) -> int:
        return 12 if self.newer else 11

    @property
    def end_version(self) -> int:
        return 5 if self.newer else 3

    def produce_request(self, partition: int) -> ProduceRequest:
        records = batch(
            *VALUES,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            base_sequence=0,
            transactional=True,
        )
        return produce_request(self.id, {partition: records}, transactional_id=self.id)

    def produce(self, client: RawClient, partition: int) -> None:
        ask_well(client, ApiKey.PRODUCE, self.produce_version, self.produce_request(partition))

    def add_offsets_request(self) -> AddOffsetsToTxnRequest:
        return AddOffsetsToTxnRequest(**self.identity, group_id=self.id)

    def offsets_request(self) -> TxnOffsetCommitRequest:
        partitions = [
            TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=offset, committed_metadata=metadata)
            for index, (offset, metadata, _) in enumerate(NEW)
        ]
        topic = TxnOffsetCommitRequestTopic(name=TOPIC, partitions=partitions)
        return TxnOffsetCommitRequest(**self.identity, group_id=self.id, topics=[topic])

    def end_request(self, commit: bool) -> EndTxnRequest:
        return EndTxnRequest(**self.identity, committed=commit)

    def end(self, client: RawClient, commit: bool) -> None:
        ask_well(client, ApiKey.END_TXN, self.end_version, self.end_request(commit))

    def describe(self, client: RawClient) -> Any:
        request = DescribeTransactionsRequest(transactional_ids=[self.id])
        (found,) = ask_well(client, ApiKey.DESCRIBE_TRANSACTIONS, 0, request).transaction_states
        assert found.producer_id == self.producer_id
        return found

    def partitions_of(self, state: Any) -> dict[str, list[int]]:
        return {each.topic: sorted(each.partitions) for each in state.topics}

    def offsets(self, client: RawClient, *, require_stable: bool = False) -> list[tuple[int, str | None, int]]:
        return committed_offsets(client, self.id, TOPIC, PARTITIONS, require_stable=require_stable)

    def wait_until_complete(self, client: RawClient) -> str:
        wait_for(lambda: self.describe(client).transaction_state.startswith("Complete"), f"{self} to complete")
        state: str = self.describe(client).transaction_state
        return state


class InitAgain(TransactionStep):
    """Each initialisation bumps the epoch by one, and the id stays."""

    name = "init-again"

    def prepare(self, client: RawClient) -> Request:
        self.init(client)
        return ApiKey.INIT_PRODUCER_ID, 4, self.init_request()

    def is_done(self, client: RawClient) -> bool:
        if self.answer is not None:
            assert (self.answer.producer_id, self.answer.producer_epoch) == (self.producer_id, self.producer_epoch + 1)
        epoch = self.describe(client).producer_epoch
        assert epoch in (self.producer_epoch, self.producer_epoch + 1)
        return bool(epoch == self.producer_epoch + 1)

    def go_on(self, client: RawClient, done: bool) -> None:
        known = self.producer_id, self.producer_epoch + done
        self.init(client)
        assert (self.producer_id, self.producer_epoch) == (known[0], known[1] + 1)


class Begin(TransactionStep):
    name = "begin"

    def prepare(self, client: RawClient) -> Request:
        self.make_topic(client)
        self.init(client)
        return ApiKey.ADD_PARTITIONS_TO_TXN, 3, self.add_partitions_request()

    def is_done(self, client: RawClient) -> bool:
        state = self.describe(client)
        if state.transaction_state == "Empty":
            assert state.topics == []
            return False
        assert state.transaction_state == "Ongoing"
        assert self.partitions_of(state) == {self.id: list(range(WRITTEN_PARTITIONS))}
        return True

    def go_on(self, client: RawClient, done: bool) -> None:
        ask_well(client, ApiKey.ADD_PARTITIONS_TO_TXN, 3, self.add_partitions_request())
        self.produce(client, 0)
        self.end(client, commit=True)
        assert self.wait_until_complete(client) == "CompleteCommit"
        assert read_partition(client, self.id, 0, committed=True)[0] == VALUES


class Produce(TransactionStep):
    """A batch of a transaction is there, or it is not; sent again, it is there once."""

    name = "produce"

    def prepare(self, client: RawClient) -> Request:
        self.begin(client)
        return ApiKey.PRODUCE, self.produce_version, self.produce_request(0)

    def is_done(self, client: RawClient) -> bool:
        values, _, _ = read_partition(client, self.id, 0, committed=False)
        assert values in ([], VALUES)
        assert read_partition(client, self.id, 0, committed=True)[0] == []
        if values or not self.newer:
            assert self.describe(client).transaction_state == "Ongoing"
        return values == VALUES

    def go_on(self, client: RawClient, done: bool) -> None:
        self.produce(client, 0)
        assert read_partition(client, self.id, 0, committed=False)[0] == VALUES
        self.end(client, commit=True)
        assert self.wait_until_complete(client) == "CompleteCommit"
        assert read_partition(client, self.id, 0, committed=True)[0] == VALUES


class NewerProduce(Produce):
    name = "newer-produce"
    newer = True


class AddOffsets(TransactionStep):
    name = "add-offsets"

    def prepare(self, client: RawClient) -> Request:
        self.init(client)
        return ApiKey.ADD_OFFSETS_TO_TXN, 3, self.add_offsets_request()

    def is_done(self, client: RawClient) -> bool:
        state = self.describe(client)
        assert state.transaction_state in ("Empty", "Ongoing")
        done: bool = state.transaction_state == "Ongoing"
        assert list(self.partitions_of(state)) == (["__consumer_offsets"] if done else [])
        return done


class CommitOffsets(TransactionStep):
    """Offsets in a transaction: pending in all partitions or in none, and visible with its end."""

    name = "txn-offsets"

    def prepare(self, client: RawClient) -> Request:
        self.init(client)
        ask_well(client, ApiKey.ADD_OFFSETS_TO_TXN, 3, self.add_offsets_request())
        return ApiKey.TXN_OFFSET_COMMIT, 3, self.offsets_request()

    def is_done(self, client: RawClient) -> bool:
        assert self.offsets(client) == NOTHING
        errors = {error for _, _, error in self.offsets(client, require_stable=True)}
        assert errors in ({0}, {ErrorCode.UNSTABLE_OFFSET_COMMIT}), f"{self}: {errors}"
        return errors != {0}

    def go_on(self, client: RawClient, done: bool) -> None:
        self.end(client, commit=True)
        assert self.wait_until_complete(client) == "CompleteCommit"
        assert self.offsets(client, require_stable=True) == (NEW if done else NOTHING)


class End(TransactionStep):
    """Records in three partitions and offsets of a group: all of it or nothing, for everybody who reads."""

    commit: bool

    def prepare(self, client: RawClient) -> Request:
        self.begin(client)
        for partition in range(WRITTEN_PARTITIONS):
            self.produce(client, partition)
        if not self.newer:
            ask_well(client, ApiKey.ADD_OFFSETS_TO_TXN, 3, self.add_offsets_request())
        ask_well(client, ApiKey.TXN_OFFSET_COMMIT, 5 if self.newer else 3, self.offsets_request())
        return ApiKey.END_TXN, self.end_version, self.end_request(self.commit)

    def is_done(self, client: RawClient) -> bool:
        if self.describe(client).transaction_state != "Ongoing":
            return True
        for partition in range(WRITTEN_PARTITIONS):
            values, stable, _ = read_partition(client, self.id, partition, committed=True)
            assert (values, stable) == ([], 0)
        assert self.offsets(client) == NOTHING
        return False

    def go_on(self, client: RawClient, done: bool) -> None:
        if not done:
            self.end(client, self.commit)
        # Nobody asks a second time where the decision was kept.
        assert self.wait_until_complete(client) == ("CompleteCommit" if self.commit else "CompleteAbort")
        for partition in range(WRITTEN_PARTITIONS):
            self.check_partition(client, partition)
        assert self.offsets(client, require_stable=True) == (NEW if self.commit else NOTHING)
        # The same request again is no mistake: its answer may have been lost.
        self.end(client, self.commit)
        self.init(client)

    def check_partition(self, client: RawClient, partition: int) -> None:
        def is_settled() -> bool:
            # A broker that has just started may still be finding its high watermark.
            _, stable, end = read_partition(client, self.id, partition, committed=True)
            # The records and one marker; a marker that was written twice does no harm.
            return stable == end > len(VALUES)

        wait_for(is_settled, f"{self}: no transaction is open in partition {partition}")
        values, _, _ = read_partition(client, self.id, partition, committed=True)
        assert values == (VALUES if self.commit else [])


class EndCommit(End):
    name = "end-commit"
    commit = True


class EndAbort(End):
    name = "end-abort"
    commit = False


class NewerEndCommit(EndCommit):
    name = "newer-end-commit"
    newer = True


class NewerEndAbort(EndAbort):
    name = "newer-end-abort"
    newer = True


TRANSACTION_STEPS: tuple[type[Step], ...] = (
    InitAgain,
    Begin,
    Produce,
    NewerProduce,
    AddOffsets,
    CommitOffsets,
    EndCommit,
    EndAbort,
    NewerEndCommit,
    NewerEndAbort,
)
