"""The one authorize step: what an API needs is declared beside its handler, and asked here before it runs."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple, Protocol


class Operation(IntEnum):
    """Kafka's ACL operations, by their wire codes."""

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


class ResourceType(IntEnum):
    """Kafka's ACL resource types, by their wire codes."""

    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5


class Requirement(NamedTuple):
    """An operation on some kind of resource that an API's handler performs."""

    operation: Operation
    resource_type: ResourceType


_SUPPORTED_OPERATIONS = {
    ResourceType.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        Operation.READ,
        Operation.DELETE,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        Operation.CREATE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
    ),
    ResourceType.TRANSACTIONAL_ID: (Operation.WRITE, Operation.DESCRIBE),
}

OPERATIONS_NOT_ASKED = -(2**31)
"""What the wire says when a client did not ask for its authorized operations."""


class Authorizer(Protocol):
    def authorize(self, principal: str, requirements: Sequence[Requirement]) -> bool:
        """Whether the principal may use an API with these requirements at all."""

    def authorized_operations(self, principal: str, resource_type: ResourceType, name: str) -> int:
        """The operations allowed on one resource, as the bit field clients are shown."""


class AllowAll:
    """The authorizer of a broker without access control, as Kafka's is without `authorizer.class.name`."""

    def authorize(self, principal: str, requirements: Sequence[Requirement]) -> bool:
        return True

    def authorized_operations(self, principal: str, resource_type: ResourceType, name: str) -> int:
        return sum(1 << operation for operation in _SUPPORTED_OPERATIONS[resource_type])
