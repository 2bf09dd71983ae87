"""What is known of each query: one record per query in a compacted topic of the service.

The record says with what the query's state was made (its home: which checkpoint, and what fits it), who runs it, and
which batch was committed last. It goes out in the transaction of that batch, so both are there or neither; one is also
written at every start, before there is a batch. All servers of a service read it: who takes a query over finds its
checkpoint, or finds that it cannot be reached from there; who failed finds that another has taken over, and leaves.
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
_NO_BATCH = -1


class Home(msgspec.Struct, frozen=True, kw_only=True):
    """What a query's state was made with: a checkpoint fits these and no others."""

    checkpoint_id: str
    plan_version: int
    shuffle_partitions: str
    state_provider: str


class Marker(msgspec.Struct, frozen=True, kw_only=True):
    """The last batch that was committed, and the offsets where its inputs ended. `owner` names a run of a server."""

    home: Home
    owner: str
    batch_id: int = _NO_BATCH
    offsets: tuple[str, ...] = ()


def verdict(marker: Marker, *, batch_id: int, offsets: tuple[str, ...]) -> Literal["new", "done"]:
    """Whether a batch is still to be written. Raises when the checkpoint and the marker contradict each other."""
    if batch_id > marker.batch_id:
        return "new"
    if batch_id == marker.batch_id and offsets != marker.offsets:
        raise EngineError(
            f"Batch {batch_id} was committed up to {list(marker.offsets)}, and its checkpoint "
            f"{marker.home.checkpoint_id} now says {list(offsets)}: the checkpoint was changed from outside. "
            "Drop the query and create it again."
        )
    return "done"


def send_marker(producer: penstock.Producer, service_id: str, query_id: str, marker: Marker) -> None:
    """As a part of the producer's transaction."""
    producer.send(markers_topic(service_id), msgspec.json.encode(marker), query_id.encode(), partition=0)


def read_marker(kafka: KafkaAccess, query_id: str) -> Marker | None:
    """The last committed marker of a query; None when it never ran, or was forgotten."""
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


def forget_marker(kafka: KafkaAccess, query_id: str) -> None:
    """The query is dropped: another of this name begins anew."""
    with penstock.Producer(kafka.config(f"marker-{query_id}")) as producer:
        producer.send(markers_topic(kafka.service_id), None, query_id.encode(), partition=0).result()
