"""Names of partition directories inside a log directory.

`<topic>-<partition>` is a live one. `<topic>-<partition>.<32 hex>-delete` waits for its files to be unlinked, `-stray`
was set aside because the cluster does not know it here, `-future` is a copy that is being moved in from another log
directory. A topic name may itself hold dashes and dots, so names are read from the right.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple
from uuid import UUID

from penstock.base.types import TopicPartition

NAME_LENGTH_MAX = 255
"""A KRaft Kafka keeps its own quorum log under this name beside the partitions; it is not ours to open."""

_PARTITION_MAX = (1 << 31) - 1


class DirectoryKind(Enum):
    LIVE = ""
    DELETE = "-delete"
    STRAY = "-stray"
    FUTURE = "-future"


class PartitionDirectory(NamedTuple):
    topic_partition: TopicPartition
    kind: DirectoryKind


def directory_name(topic_partition: TopicPartition) -> str:
    return f"{topic_partition.topic}-{topic_partition.partition}"


def suffixed_name(topic_partition: TopicPartition, kind: DirectoryKind, unique_id: UUID) -> str:
    """The name to rename a live directory to; a long topic name is cut so that file systems take the whole."""
    suffix = f"-{topic_partition.partition}.{unique_id.hex}{kind.value}"
    if kind is DirectoryKind.FUTURE:
        return topic_partition.topic + suffix
    return topic_partition.topic[: NAME_LENGTH_MAX - len(suffix)] + suffix


def parse_directory_name(name: str) -> PartitionDirectory | None:
    """What a directory of this name is, or None when it is no partition directory at all."""
    kind = DirectoryKind.LIVE
    for candidate in (DirectoryKind.DELETE, DirectoryKind.STRAY, DirectoryKind.FUTURE):
        if name.endswith(candidate.value):
            kind = candidate
            name, dot, unique_id = name.removesuffix(candidate.value).rpartition(".")
            if not dot or not unique_id:
                return None
    topic, dash, digits = name.rpartition("-")
    if not dash or not topic or any(character.isspace() for character in topic):
        return None
    if not (digits.isascii() and digits.isdigit()) or int(digits) > _PARTITION_MAX:
        return None
    return PartitionDirectory(TopicPartition(topic, int(digits)), kind)
