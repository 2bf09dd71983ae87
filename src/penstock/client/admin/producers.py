"""The producers that partitions know, and the marker that ends a transaction which its coordinator has lost.

The leaders of the partitions are asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from penstock.base.errors import ErrorCode
from penstock.base.types import TopicPartition
from penstock.client.admin import checks
from penstock.client.admin.asking import Asker, by_topic
from penstock.client.admin.errors import InvalidInput, Outcome
from penstock.client.admin.leaders import ask_leaders
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from penstock.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

_INT64_MAX: Final = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerState:
    """A producer that wrote to a partition not long ago, as the partition knows it."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int | None
    """None if no transaction of it has ended here."""
    transaction_start_offset: int | None
    """The first offset of its open transaction; None if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortTransaction:
    """An open transaction of a partition, to be aborted whatever its coordinator says."""

    partition: TopicPartition
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int = 0


async def describe_producers(
    asker: Asker,
    partitions: Iterable[TopicPartition],
    *,
    broker: int | None = None,
    timeout_ms: float | None = None,
) -> dict[TopicPartition, tuple[ProducerState, ...]]:
    """The producers that partitions know, as their leaders tell, or one broker."""
    wanted = checks.partitions(partitions)
    if broker is None:
        outcome = await ask_leaders(
            asker, ApiKey.DESCRIBE_PRODUCERS, wanted, _producers_request, _producers, timeout_ms=timeout_ms
        )
        return outcome.result()
    answer = await asker.broker(
        checks.number(broker, "the broker"),
        ApiKey.DESCRIBE_PRODUCERS,
        _producers_request(wanted),
        timeout_ms=timeout_ms,
    )
    of_broker: Outcome[TopicPartition, tuple[ProducerState, ...]] = Outcome()
    for tp, code, message, found in _producers(answer):
        of_broker.add(tp, found, code, f"partition {tp} on broker {broker}", message)
    return of_broker.result()


def _producers_request(partitions: list[TopicPartition]) -> DescribeProducersRequest:
    return DescribeProducersRequest(
        topics=[TopicRequest(name=name, partition_indexes=each) for name, each in by_topic(partitions).items()]
    )


def _producers(answer: Any) -> Iterator[tuple[TopicPartition, int, str | None, tuple[ProducerState, ...]]]:
    for topic in answer.topics:
        for each in topic.partitions:
            tp = TopicPartition(topic.name, each.partition_index)
            yield tp, each.error_code, each.error_message, tuple(_producer(it) for it in each.active_producers)


def _producer(state: Any) -> ProducerState:
    start = state.current_txn_start_offset
    return ProducerState(
        producer_id=state.producer_id,
        producer_epoch=state.producer_epoch,
        last_sequence=state.last_sequence,
        last_timestamp=state.last_timestamp,
        coordinator_epoch=state.coordinator_epoch if state.coordinator_epoch >= 0 else None,
        transaction_start_offset=start if start >= 0 else None,
    )


async def abort_transaction(asker: Asker, spec: AbortTransaction, *, timeout_ms: float | None = None) -> None:
    """Abort an open transaction of one partition by a marker in its log, past the coordinator.

    For hanging transactions only. `abort_of` makes the specification from `describe_producers`.
    """
    checks.instance(spec, AbortTransaction, "a transaction to abort")
    tp = checks.partition(spec.partition)
    marker = WritableTxnMarker(
        producer_id=checks.number(spec.producer_id, "the producer id", at_most=_INT64_MAX),
        producer_epoch=checks.number(spec.producer_epoch, "the producer epoch", at_most=32767),
        coordinator_epoch=checks.number(spec.coordinator_epoch, "the coordinator epoch", at_least=-1),
        transaction_result=False,
        topics=[WritableTxnMarkerTopic(name=tp.topic, partition_indexes=[tp.partition])],
    )
    outcome = await ask_leaders(
        asker,
        ApiKey.WRITE_TXN_MARKERS,
        [tp],
        lambda _: WriteTxnMarkersRequest(markers=[marker]),
        _marked,
        timeout_ms=timeout_ms,
    )
    outcome.result()


def _marked(answer: Any) -> Iterator[tuple[TopicPartition, int, str | None, None]]:
    for marker in answer.markers:
        for topic in marker.topics:
            for each in topic.partitions:
                tp = TopicPartition(topic.name, each.partition_index)
                yield tp, each.error_code, _hint(each.error_code, tp), None


def _hint(code: int, tp: TopicPartition) -> str | None:
    if code == ErrorCode.INVALID_PRODUCER_EPOCH:
        return "the producer has a newer epoch: describe the producers of the partition again"
    if code == ErrorCode.TRANSACTION_COORDINATOR_FENCED:
        return "a newer coordinator has written to the partition: describe its producers again"
    return None


def abort_of(tp: TopicPartition, producers: Iterable[ProducerState], start_offset: int) -> AbortTransaction:
    """What aborts the transaction that began at an offset, by what the partition knows of its producers."""
    for each in producers:
        if each.transaction_start_offset == start_offset:
            return AbortTransaction(
                partition=tp,
                producer_id=each.producer_id,
                producer_epoch=each.producer_epoch,
                coordinator_epoch=each.coordinator_epoch or 0,
            )
    raise InvalidInput(f"no transaction of {tp} is open that began at offset {start_offset}")
