"""Produce requests as the generated codec and the broker's own reader see them; what answers mean."""

from __future__ import annotations

from uuid import UUID

import pytest

from penstock.base.errors import ErrorCode
from penstock.base.types import TopicPartition
from penstock.client.errors import ClientError, RecordTooLarge
from penstock.client.producer.batch import ProducerBatch
from penstock.client.producer.outcomes import Action, decide, describe, failure
from penstock.client.producer.requests import TopicBatches, answers_by_partition, encode_produce
from penstock.client.producer.sealing import seal_batch, split_batch
from penstock.client.producer.settings import ProducerSettings
from penstock.protocol.hot.produce import decode_produce
from penstock.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from penstock.records.batch import read_header
from penstock.records.builder import read_records
from penstock.records.compression import Codec


def sealed(partition: int = 0, records: int = 2, codec: Codec = Codec.NONE, topic: str = "t") -> ProducerBatch:
    batch = ProducerBatch(TopicPartition(topic, partition), size_max=1 << 20, now=0.0, deadline=1.0)
    assert batch.writer is not None
    for index in range(records):
        batch.writer.append(5 + index, b"k", b"v%d" % index, (("h", None),))
    batch.close()
    batch.producer_id, batch.producer_epoch, batch.base_sequence = 9, 1, 4
    seal_batch(batch, ProducerSettings(codec=codec), transactional=False)
    return batch


@pytest.mark.parametrize("version", range(3, 14))
@pytest.mark.parametrize("transactional_id", [None, "tx"])
def test_every_version_is_read_by_a_broker(version: int, transactional_id: str | None) -> None:
    topics = [
        TopicBatches("t", UUID(int=1), [sealed(0), sealed(3, 200)]),
        TopicBatches("other", UUID(int=2), [sealed(1, topic="other")]),
    ]
    body = encode_produce(version, transactional_id, -1, 1234, topics)
    request = decode_produce(version, memoryview(b"".join(body.parts)), 0)
    assert (request.transactional_id, request.acks, request.timeout_ms) == (transactional_id, -1, 1234)
    by_id = version >= 13
    expected = [
        (None if by_id else topic.name, topic.topic_id if by_id else None,
         [(batch.tp.partition, bytes(batch.sealed or b"")) for batch in topic.batches])
        for topic in topics
    ]  # fmt: skip
    assert [(n, i, [(p, bytes(r or b"")) for p, r in parts]) for n, i, parts in request.topics] == expected


def test_batches_are_not_copied() -> None:
    batch = sealed()
    parts = encode_produce(13, None, 1, 1, [TopicBatches("t", UUID(int=1), [batch])]).parts
    assert any(part is batch.sealed for part in parts)


def test_answers_are_found_by_name_or_id() -> None:
    answer = PartitionProduceResponse(index=2)
    by_id = ProduceResponse(responses=[TopicProduceResponse(topic_id=UUID(int=5), partition_responses=[answer])])
    by_name = ProduceResponse(responses=[TopicProduceResponse(name="t", partition_responses=[answer])])
    assert answers_by_partition(by_id, {UUID(int=5): "t"}) == {TopicPartition("t", 2): answer}
    assert answers_by_partition(by_name, {}) == {TopicPartition("t", 2): answer}


@pytest.mark.parametrize("codec", list(Codec))
def test_a_split_keeps_every_record(codec: Codec) -> None:
    batch = sealed(records=50, codec=codec)
    pieces = split_batch(batch, 200)
    assert len(pieces) > 2
    assert [start for start, _ in batch.pieces] == [sum(p.count for p in pieces[:i]) for i in range(len(pieces))]
    records = []
    for piece in pieces:
        seal_batch(piece, ProducerSettings(codec=codec), transactional=False)
        assert piece.sealed is not None
        records += read_records(piece.sealed, 0, read_header(piece.sealed))
    assert [record.value for record in records] == [b"v%d" % index for index in range(50)]
    assert [record.timestamp for record in records] == [5 + index for index in range(50)]


def test_sealing_again_changes_only_the_identity() -> None:
    batch = sealed()
    before = batch.sealed
    seal_batch(batch, ProducerSettings(), transactional=False)
    assert batch.sealed is before
    batch.producer_epoch, batch.base_sequence = 2, 0
    seal_batch(batch, ProducerSettings(), transactional=False)
    assert batch.sealed is not None
    assert batch.sealed is not before, "the old bytes may still be on their way out"
    header = read_header(batch.sealed)
    assert (header.producer_id, header.producer_epoch, header.base_sequence, header.count) == (9, 2, 0, 2)


@pytest.mark.parametrize(
    ("code", "records", "may_retry", "action"),
    [
        (ErrorCode.NONE, 2, True, Action.COMPLETE),
        (ErrorCode.DUPLICATE_SEQUENCE_NUMBER, 2, True, Action.COMPLETE),
        (ErrorCode.MESSAGE_TOO_LARGE, 2, True, Action.SPLIT),
        (ErrorCode.MESSAGE_TOO_LARGE, 1, True, Action.FAIL),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, 2, True, Action.RETRY),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, 2, False, Action.FAIL),
        (ErrorCode.INVALID_RECORD, 2, True, Action.FAIL),
        (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 2, True, Action.FAIL),
    ],
)
def test_what_an_answer_means(code: ErrorCode, records: int, may_retry: bool, action: Action) -> None:
    assert decide(sealed(records=records), code, identity=None, may_retry=may_retry) is action


def test_records_at_fault_are_named() -> None:
    answer = PartitionProduceResponse(
        error_message="some are bad",
        record_errors=[BatchIndexAndErrorMessage(batch_index=1, batch_index_error_message="no key")],
    )
    outcome = failure(sealed(), answer, ErrorCode.INVALID_RECORD)
    assert outcome.record_errors is not None
    assert "no key" in str(outcome.record_errors[1])
    assert "other records" in str(outcome.error)


def test_errors_name_the_partition_and_the_remedy() -> None:
    assert isinstance(describe(sealed(), ErrorCode.MESSAGE_TOO_LARGE), RecordTooLarge)
    error = describe(sealed(), ErrorCode.INVALID_TIMESTAMP, "too old")
    assert isinstance(error, ClientError)
    assert "t-0" in str(error)
    assert "too old" in str(error)
