"""What an error code of each transactional API means for the transaction, as tables.

The same code may mean different things: INVALID_PRODUCER_EPOCH of the coordinator says that another producer has taken
over; of a partition's leader it may also say that the coordinator gave up the transaction after its time-out, so there
the transaction is aborted first and the coordinator's word decides (KIP-588).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final

from penstock.base.errors import ErrorCode, KafkaError
from penstock.client.errors import ClientError, ProducerFenced, error_for
from penstock.protocol.apis import ApiKey


class Verdict(Enum):
    DONE = auto()
    RETRY = auto()
    """The same coordinator, a moment later."""
    REFIND = auto()
    """Another broker is the coordinator by now."""
    ABORTABLE = auto()
    """This transaction is lost; the next may succeed."""
    NEW_EPOCH = auto()
    """As abortable, and the producer needs a new epoch before it can go on."""
    FATAL = auto()


_E = ErrorCode

_COMMON: Final[Mapping[ErrorCode, Verdict]] = {
    _E.NONE: Verdict.DONE,
    _E.NOT_COORDINATOR: Verdict.REFIND,
    _E.COORDINATOR_NOT_AVAILABLE: Verdict.REFIND,
    _E.PRODUCER_FENCED: Verdict.FATAL,
    _E.INVALID_PRODUCER_EPOCH: Verdict.FATAL,
    _E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: Verdict.FATAL,
    _E.INVALID_TXN_STATE: Verdict.FATAL,
    _E.UNKNOWN_PRODUCER_ID: Verdict.NEW_EPOCH,
    _E.INVALID_PRODUCER_ID_MAPPING: Verdict.NEW_EPOCH,
    _E.TRANSACTION_ABORTABLE: Verdict.ABORTABLE,
}

_SPECIAL: Final[Mapping[int, Mapping[ErrorCode, Verdict]]] = {
    ApiKey.INIT_PRODUCER_ID: {
        # There is no transaction that could be aborted.
        _E.UNKNOWN_PRODUCER_ID: Verdict.FATAL,
        _E.INVALID_PRODUCER_ID_MAPPING: Verdict.FATAL,
    },
    ApiKey.ADD_PARTITIONS_TO_TXN: {
        _E.TOPIC_AUTHORIZATION_FAILED: Verdict.ABORTABLE,
        _E.OPERATION_NOT_ATTEMPTED: Verdict.ABORTABLE,
    },
    ApiKey.ADD_OFFSETS_TO_TXN: {_E.GROUP_AUTHORIZATION_FAILED: Verdict.ABORTABLE},
    ApiKey.TXN_OFFSET_COMMIT: {
        _E.REQUEST_TIMED_OUT: Verdict.REFIND,
        _E.GROUP_AUTHORIZATION_FAILED: Verdict.ABORTABLE,
        _E.TOPIC_AUTHORIZATION_FAILED: Verdict.ABORTABLE,
        _E.FENCED_INSTANCE_ID: Verdict.ABORTABLE,
        _E.UNKNOWN_MEMBER_ID: Verdict.ABORTABLE,
        _E.ILLEGAL_GENERATION: Verdict.ABORTABLE,
        _E.STALE_MEMBER_EPOCH: Verdict.ABORTABLE,
    },
}

_OTHERWISE: Final[Mapping[int, Verdict]] = {ApiKey.ADD_PARTITIONS_TO_TXN: Verdict.ABORTABLE}

_FATAL_IN_PRODUCE: Final = frozenset(
    {
        _E.PRODUCER_FENCED,
        _E.CLUSTER_AUTHORIZATION_FAILED,
        _E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        _E.UNSUPPORTED_VERSION,
        _E.UNSUPPORTED_FOR_MESSAGE_FORMAT,
    }
)

FENCED: Final = frozenset({_E.PRODUCER_FENCED, _E.INVALID_PRODUCER_EPOCH})


_HINTS: Final = {
    _E.INVALID_TXN_STATE: "; the coordinator has ended it already, perhaps because it outlived transaction.timeout.ms: "
    "close this producer and make a new one",
    _E.INVALID_TRANSACTION_TIMEOUT: "; transaction.timeout.ms is above the broker's transaction.max.timeout.ms",
}


def verdict_on(api_key: int, code: ErrorCode) -> Verdict:
    """What an answer of a coordinator means."""
    special = _SPECIAL.get(api_key, {}).get(code) or _COMMON.get(code)
    if special is not None:
        return special
    return Verdict.RETRY if code.retriable else _OTHERWISE.get(api_key, Verdict.FATAL)


def verdict_on_batch(code: ErrorCode) -> Verdict:
    """What a batch that could not be written means for its transaction; it was retried already where that helps."""
    return Verdict.FATAL if code in _FATAL_IN_PRODUCE else Verdict.NEW_EPOCH


def error_of(api_key: int, code: ErrorCode, transactional_id: str, what: str) -> ClientError:
    """The error for the user of a verdict that ends something; `what` names the thing it is about."""
    if code in FENCED:
        return fenced(transactional_id)
    error = error_for(code, f"transaction of {transactional_id!r}: {what}: {code.name}{_HINTS.get(code, '')}")
    verdict = verdict_on(api_key, code)
    error.fatal = verdict is Verdict.FATAL
    error.abortable = not error.fatal
    return error


def raise_worse(error: BaseException, found: KafkaError) -> None:
    """`found` while a transaction was aborted because of `error`: raises the one of the two that says more.

    A refusal that a transaction could recover from may come from a takeover, which only the coordinator can tell.
    """
    if found.fatal and isinstance(error, KafkaError) and not error.fatal:
        raise found from error


def fenced(transactional_id: str) -> ProducerFenced:
    return ProducerFenced(
        f"transactional id {transactional_id!r} is used by a newer producer, or its transaction outlived "
        "transaction.timeout.ms: this producer may write no more; close it, and make a new one if none has taken over"
    )
