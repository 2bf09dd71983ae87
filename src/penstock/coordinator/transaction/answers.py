"""What operations and queries answer. Errors that follow from the state are answers too: they wait for the commit of
what they were decided on, so that nobody is told of a fencing that never came about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from penstock.base.errors import ErrorCode
from penstock.base.types import TopicPartition
from penstock.coordinator.transaction.metadata import NO_PRODUCER, Producer


class Answer(NamedTuple):
    """How a request ended; `producer` is who may write from now on, where the request asks for that."""

    code: ErrorCode
    producer: Producer = NO_PRODUCER


class DescribedTransaction(NamedTuple):
    transactional_id: str
    code: ErrorCode
    state: str = ""
    timeout_ms: int = 0
    start_ms: int = 0
    producer: Producer = Producer(0, 0)
    topics: Mapping[str, Sequence[int]] = {}


class ListedTransaction(NamedTuple):
    transactional_id: str
    producer_id: int
    state: str


Verified = Mapping[TopicPartition, ErrorCode]
"""For each partition whether it is in the transaction."""
