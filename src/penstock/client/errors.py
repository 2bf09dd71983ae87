"""Typed errors of the clients.

Each is a `penstock.base.errors.KafkaError`, so each has a code of Kafka's, and each says in a sentence what happened
and what to do. `error_for` turns a code of an answer into the most specific class. Two come from the layers that raise
them: `AuthenticationFailed` (credentials, certificates) and `SerializationError`.

`retriable`: the same call may succeed later (the clients retry such answers by themselves until their time is over).
`abortable`: the transaction must be aborted, then the producer can go on. `fatal`: this client object is of no further
use; make a new one.
"""

from __future__ import annotations

from typing import Any, ClassVar

from penstock.base.errors import ErrorCode, KafkaError
from penstock.client.error_texts import TEXTS
from penstock.network.errors import AuthenticationFailed
from penstock.serde.errors import SerializationError

__all__ = [
    "ArrowMissing",
    "AuthenticationFailed",
    "AuthorizationFailed",
    "BufferFull",
    "ClientClosed",
    "ClientError",
    "ClusterAuthorizationFailed",
    "CommitFailed",
    "ConcurrentUse",
    "CoordinatorNotAvailable",
    "FencedInstance",
    "ForkedClient",
    "GroupAuthorizationFailed",
    "InvalidState",
    "InvalidTopic",
    "KafkaError",
    "KafkaTimeout",
    "LogTruncated",
    "MaxPollIntervalExceeded",
    "NoBrokersReachable",
    "NoOffsetForPartition",
    "OffsetOutOfRange",
    "OutOfOrderSequence",
    "ProducerFenced",
    "RebalanceInProgress",
    "RecordTooLarge",
    "SerializationError",
    "TopicAlreadyExists",
    "TopicAuthorizationFailed",
    "TransactionAborted",
    "TransactionError",
    "TransactionalIdAuthorizationFailed",
    "UnknownTopicOrPartition",
    "UnsupportedByBroker",
    "WakeUp",
    "error_for",
    "is_retriable",
]


class ClientError(KafkaError):
    """The base of the errors that the clients raise by themselves."""

    default_code: ClassVar[ErrorCode] = ErrorCode.UNKNOWN_SERVER_ERROR
    fatal: bool = False
    abortable: bool = False

    def __init__(self, message: str = "", *, code: ErrorCode | None = None) -> None:
        chosen = self.default_code if code is None else code
        super().__init__(chosen, message or TEXTS.get(chosen, ""))

    @property
    def retriable(self) -> bool:
        """Whether the same call may succeed later."""
        return self.code.retriable

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions travel between processes; the plain way would hand the message to `code`.
        return _rebuild, (type(self), self.message, int(self.code), self.__dict__)


def _rebuild(kind: type[ClientError], message: str, code: int, state: dict[str, Any]) -> ClientError:
    error = kind.__new__(kind)
    ClientError.__init__(error, message, code=ErrorCode(code))
    error.__dict__.update(state)
    return error


# Time, memory, use.


class KafkaTimeout(ClientError, TimeoutError):  # noqa: N818 - named for what happened, like the rest of this module
    """The time given to a call is over. The message names the last cause."""

    default_code = ErrorCode.REQUEST_TIMED_OUT


class BufferFull(KafkaTimeout):
    """`buffer.memory` stayed full for `max.block.ms`: records come faster than they can be sent."""


class ClientClosed(ClientError):  # noqa: N818
    """The client was closed; make a new one."""

    fatal = True


class InvalidState(ClientError):  # noqa: N818
    """The call does not fit what the client is doing at present."""

    default_code = ErrorCode.INVALID_REQUEST


class ConcurrentUse(InvalidState):
    """A consumer belongs to one thread at a time."""


class ForkedClient(InvalidState):
    """The process forked after the client was made: the child has neither its thread nor its connections."""

    fatal = True


class WakeUp(ClientError):  # noqa: N818
    """`wakeup()` ended a call that was waiting."""


class ArrowMissing(ClientError):  # noqa: N818
    """The call needs `pyarrow`, which is not installed."""


class UnsupportedByBroker(ClientError):  # noqa: N818
    """The broker does not serve the API, or no version of it that can carry what was asked."""

    default_code = ErrorCode.UNSUPPORTED_VERSION


# The way to the cluster.


class NoBrokersReachable(ClientError):  # noqa: N818
    """No broker of `bootstrap.servers`, nor any that was known, could be reached."""

    default_code = ErrorCode.BROKER_NOT_AVAILABLE

    @property
    def retriable(self) -> bool:
        """Always."""
        return True


class AuthorizationFailed(ClientError):  # noqa: N818
    """The user is known and may not do this."""

    default_code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED


class ClusterAuthorizationFailed(AuthorizationFailed):
    """This user may not do that to the cluster."""


class TopicAuthorizationFailed(AuthorizationFailed):
    """This user may not read, write or describe the topic."""

    default_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED


class GroupAuthorizationFailed(AuthorizationFailed):
    """This user may not use the group."""

    default_code = ErrorCode.GROUP_AUTHORIZATION_FAILED


class TransactionalIdAuthorizationFailed(AuthorizationFailed):
    """This user may not use the transactional id."""

    default_code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    fatal = True


class CoordinatorNotAvailable(ClientError):  # noqa: N818
    """The group or transaction has no coordinator at present."""

    default_code = ErrorCode.COORDINATOR_NOT_AVAILABLE


# Topics and records.


class UnknownTopicOrPartition(ClientError):  # noqa: N818
    """The topic or the partition does not exist, or this user may not see it."""

    default_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class InvalidTopic(ClientError):  # noqa: N818
    """The name is none that a topic can have, or the topic is internal."""

    default_code = ErrorCode.INVALID_TOPIC_EXCEPTION


class TopicAlreadyExists(ClientError):  # noqa: N818
    """A topic of this name is there already."""

    default_code = ErrorCode.TOPIC_ALREADY_EXISTS


class RecordTooLarge(ClientError):  # noqa: N818
    """One record is larger than `max.request.size`, or than the topic takes (`max.message.bytes`)."""

    default_code = ErrorCode.MESSAGE_TOO_LARGE


# Producing.


class TransactionError(ClientError):
    """The transaction cannot be committed; abort it, then the producer can go on."""

    default_code = ErrorCode.TRANSACTION_ABORTABLE
    abortable = True


class TransactionAborted(TransactionError):  # noqa: N818
    """The record was not sent because its transaction was aborted."""


class OutOfOrderSequence(ClientError):  # noqa: N818
    """The broker misses earlier records of this producer: some that were acknowledged may have been lost."""

    default_code = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    abortable = True


class ProducerFenced(ClientError):  # noqa: N818
    """Another producer with the same transactional id has taken over; this one may write no more."""

    default_code = ErrorCode.PRODUCER_FENCED
    fatal = True


# Consuming.


class OffsetError(ClientError):
    """Positions of some partitions are of no use. `partitions` maps them to the offsets at fault, where there are."""

    def __init__(self, message: str = "", *, code: ErrorCode | None = None, partitions: Any = None) -> None:
        super().__init__(message, code=code)
        self.partitions: dict[Any, Any] = dict(partitions or {})


class NoOffsetForPartition(OffsetError):  # noqa: N818
    """There is no committed offset and `auto.offset.reset` is none: seek, or choose a reset policy."""


class OffsetOutOfRange(OffsetError):  # noqa: N818
    """The position is outside the log and `auto.offset.reset` is none."""

    default_code = ErrorCode.OFFSET_OUT_OF_RANGE


class LogTruncated(OffsetOutOfRange):
    """The log was truncated below the position (KIP-320) and `auto.offset.reset` is none."""

    def __init__(
        self, message: str = "", *, code: ErrorCode | None = None, partitions: Any = None, divergent: Any = None
    ) -> None:
        super().__init__(message, code=code, partitions=partitions)
        self.divergent: dict[Any, Any] = dict(divergent or {})
        """Partition to the first offset that is known to differ."""


class CommitFailed(ClientError):  # noqa: N818
    """The group has moved on: the partitions belong to another member by now, and the offsets were not committed."""

    default_code = ErrorCode.ILLEGAL_GENERATION


class RebalanceInProgress(ClientError):  # noqa: N818
    """The group rebalances; poll, then commit again."""

    default_code = ErrorCode.REBALANCE_IN_PROGRESS

    @property
    def retriable(self) -> bool:
        """Always."""
        return True


class FencedInstance(ClientError):  # noqa: N818
    """Another member uses the same `group.instance.id`."""

    default_code = ErrorCode.FENCED_INSTANCE_ID
    fatal = True


class MaxPollIntervalExceeded(CommitFailed):
    """`poll` was not called for `max.poll.interval.ms`, so the member left its group."""


_BY_CODE: dict[ErrorCode, type[ClientError]] = {
    ErrorCode.REQUEST_TIMED_OUT: KafkaTimeout,
    ErrorCode.OFFSET_OUT_OF_RANGE: OffsetOutOfRange,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: UnknownTopicOrPartition,
    ErrorCode.UNKNOWN_TOPIC_ID: UnknownTopicOrPartition,
    ErrorCode.INVALID_TOPIC_EXCEPTION: InvalidTopic,
    ErrorCode.TOPIC_ALREADY_EXISTS: TopicAlreadyExists,
    ErrorCode.MESSAGE_TOO_LARGE: RecordTooLarge,
    ErrorCode.RECORD_LIST_TOO_LARGE: RecordTooLarge,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: CoordinatorNotAvailable,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: TopicAuthorizationFailed,
    ErrorCode.GROUP_AUTHORIZATION_FAILED: GroupAuthorizationFailed,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: ClusterAuthorizationFailed,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: TransactionalIdAuthorizationFailed,
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED: AuthorizationFailed,
    ErrorCode.UNSUPPORTED_VERSION: UnsupportedByBroker,
    ErrorCode.ILLEGAL_GENERATION: CommitFailed,
    ErrorCode.UNKNOWN_MEMBER_ID: CommitFailed,
    ErrorCode.REBALANCE_IN_PROGRESS: RebalanceInProgress,
    ErrorCode.FENCED_INSTANCE_ID: FencedInstance,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: OutOfOrderSequence,
    ErrorCode.PRODUCER_FENCED: ProducerFenced,
    ErrorCode.INVALID_PRODUCER_EPOCH: ProducerFenced,
    ErrorCode.TRANSACTION_ABORTABLE: TransactionError,
}


def error_for(code: int, message: str | None = "") -> ClientError:
    """The most specific error for an answer's code. `message` names the object; by default the code's meaning."""
    known = ErrorCode.of(code)
    if not message and known != code:
        message = f"the broker answered with error code {code}, which this client does not know"
    return _BY_CODE.get(known, ClientError)(message or "", code=known)


def is_retriable(error: BaseException) -> bool:
    """Whether the same request may succeed later, for errors of the network and of answers alike."""
    if isinstance(error, KafkaError):
        return bool(getattr(error, "retriable", error.code.retriable))
    return False
