"""Kafka's small enumerations, with the numbers or words of the wire."""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import Final, TypeVar

E = TypeVar("E", bound=IntEnum)


class ResourceType(IntEnum):
    """What an ACL is about."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """How the name of an ACL's resource is compared. ANY and MATCH are for filters only."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclOperation(IntEnum):
    """What an ACL allows or forbids, by Kafka's numbers."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class AclPermission(IntEnum):
    """Whether an ACL allows or denies, by Kafka's numbers."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


class ConfigResourceType(IntEnum):
    """What a configuration belongs to: a topic, a broker, a broker's loggers, a group and so on."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigSource(IntEnum):
    """Where a value comes from; the strongest first."""

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    DYNAMIC_CLIENT_METRICS_CONFIG = 7
    DYNAMIC_GROUP_CONFIG = 8


class ConfigType(IntEnum):
    """The type of a setting's value."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class AlterConfigKind(IntEnum):
    """What one step of an incremental change does; APPEND and SUBTRACT are for lists."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ElectionType(IntEnum):
    """Which leader to elect: the preferred replica, or an unclean one when no replica in sync is left."""

    PREFERRED = 0
    """The first of the assigned replicas, if it is in sync."""
    UNCLEAN = 1
    """Any live replica if none is in sync: records may be lost."""


class FeatureUpgrade(IntEnum):
    """Which way a feature may go: up, down without loss, or down even if the broker loses metadata."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class ScramMechanism(IntEnum):
    """How a SCRAM password is hashed."""

    UNKNOWN = 0
    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2


class IsolationLevel(IntEnum):
    """Whether offsets count records of open transactions."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


class GroupState(Enum):
    """The words are the wire's; one that is not known here is UNKNOWN."""

    UNKNOWN = "Unknown"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"
    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    NOT_READY = "NotReady"


class GroupType(Enum):
    """Which protocol a group speaks; one that is not known here is UNKNOWN."""

    UNKNOWN = "Unknown"
    CONSUMER = "Consumer"
    CLASSIC = "Classic"
    SHARE = "Share"
    STREAMS = "Streams"


class TransactionState(Enum):
    """How far a transaction is; the words are the wire's, and one that is not known here is UNKNOWN."""

    UNKNOWN = "Unknown"
    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"
    DEAD = "Dead"


W = TypeVar("W", GroupState, GroupType, TransactionState)

NOT_ASKED: Final = -(2**31)
"""The wire's word for authorized operations that were not asked for."""


def numbered(kind: type[E], value: int) -> E:
    """The member of a number of the wire; UNKNOWN (0) for a newer broker's."""
    try:
        return kind(value)
    except ValueError:
        return kind(0)


def worded(kind: type[W], word: str) -> W:
    """The member of a word of the wire, whatever its case."""
    for each in kind:
        if each.value.lower() == word.lower():
            return each
    return kind.UNKNOWN


def operations(bits: int) -> frozenset[AclOperation] | None:
    """The operations that a user may do, of the wire's bit set; None if they were not asked for."""
    if bits == NOT_ASKED:
        return None
    known = (each for each in AclOperation if bits & (1 << each))
    return frozenset(each for each in known if each not in (AclOperation.UNKNOWN, AclOperation.ANY))
