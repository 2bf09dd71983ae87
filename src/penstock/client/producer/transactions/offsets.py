"""What a user gives to `send_offsets`, checked at the call: TypeError or ValueError that names the argument."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.base.types import TopicPartition
from penstock.client.core.types import ConsumerGroupMetadata, OffsetAndMetadata

Offsets = Mapping[TopicPartition, OffsetAndMetadata | int]


def plain_offsets(offsets: object) -> dict[TopicPartition, OffsetAndMetadata]:
    """Offsets by partition, all of one form."""
    if not isinstance(offsets, Mapping):
        raise TypeError(
            f"offsets must be a mapping of TopicPartition to offset, not {type(offsets).__name__}: such as"
            " {TopicPartition('orders', 0): 42}, or what offsets_after(records) gives"
        )
    return {_partition(tp): _offset(tp, each) for tp, each in offsets.items()}


def _partition(tp: object) -> TopicPartition:
    match tp:
        case (str() as topic, int() as partition):
            return TopicPartition(topic, partition)
    raise TypeError(f"offsets must have TopicPartitions as keys, not {tp!r}")


def _offset(tp: object, each: object) -> OffsetAndMetadata:
    found = OffsetAndMetadata(each) if isinstance(each, int) else each
    if not isinstance(found, OffsetAndMetadata):
        raise TypeError(f"the offset of {tp} must be a number or an OffsetAndMetadata, not {each!r}")
    if found.offset < 0:
        raise ValueError(f"the offset of {tp} must be a number from 0 on, not {found.offset}")
    return found


def group_of(group: object) -> ConsumerGroupMetadata:
    """Whose offsets they are."""
    if isinstance(group, str):
        return ConsumerGroupMetadata(group)
    if isinstance(group, ConsumerGroupMetadata):
        return group
    raise TypeError(f"group_metadata must be the consumer's group_metadata(), or the group's id as text, not {group!r}")
