"""Which batches of a query are committed: one record per query in a compacted topic of the service.

The marker goes out in the transaction of the batch it tells of, so both are there or neither. It names the checkpoint
(a rebuilt query counts its batches from 0 again), the batch, and the offsets where the batch's inputs ended.
"""

from __future__ import annotations

from typing import Literal

import msgspec

import penstock
from penstock.base.types import TopicPartition
from penstock.sql.errors import EngineError
from penstock.sql.internal_topics import markers_topic
from penstock.sql.kafka import KafkaAccess

_POLL_MS = 200


class Marker(msgspec.Struct, frozen=True, kw_only=True):
    checkpoint_id: str
    batch_id: int
    offsets: tuple[str, ...]


def verdict(
    marker: Marker | None, *, checkpoint_id: str, batch_id: int, offsets: tuple[str, ...]
) -> Literal["new", "done"]:
    """Whether a batch is still to be written. Raises when the checkpoint and the marker contradict each other."""
    if marker is None or marker.checkpoint_id != checkpoint_id or batch_id > marker.batch_id:
        return "new"
    if batch_id == marker.batch_id and offsets != marker.offsets:
        raise EngineError(
            f"Batch {batch_id} was committed up to {list(marker.offsets)}, and its checkpoint {checkpoint_id} now says "
            f"{list(offsets)}: the checkpoint was changed from outside. Drop the query and create it again."
        )
    return "done"


def read_marker(kafka: KafkaAccess, query_id: str) -> Marker | None:
    """The last committed marker of a query."""
    settings = {"isolation.level": "read_committed", "auto.offset.reset": "earliest", "enable.auto.commit": False}
    partition = TopicPartition(markers_topic(kafka.service_id), 0)
    last: bytes | None = None
    with penstock.Consumer(kafka.config(f"marker-{query_id}", settings)) as consumer:
        consumer.assign([partition])
        end = consumer.end_offsets([partition])[partition]
        while consumer.position(partition) < end:
            for record in consumer.poll(_POLL_MS):
                if record.key == query_id.encode():
                    last = record.value
    return None if last is None else msgspec.json.decode(last, type=Marker)
