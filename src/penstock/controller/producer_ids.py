"""Producer ids, handed to brokers in blocks so that one change of metadata serves many producers."""

from __future__ import annotations

from penstock.base.errors import ErrorCode, KafkaError
from penstock.controller.partitions import check_broker_epoch
from penstock.metadata.deltas import Delta, ProducerIdsAllocated
from penstock.metadata.image import ClusterImage

BLOCK_SIZE = 1000
_PRODUCER_ID_MAX = 2**63 - 1


def plan_allocate_producer_ids(image: ClusterImage, broker_id: int, broker_epoch: int) -> tuple[list[Delta], range]:
    check_broker_epoch(image, broker_id, broker_epoch)
    first = image.next_producer_id
    if first > _PRODUCER_ID_MAX - BLOCK_SIZE:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "All producer ids have been used.")
    return [ProducerIdsAllocated(next_producer_id=first + BLOCK_SIZE)], range(first, first + BLOCK_SIZE)
