"""The topics a service keeps for itself, beside the command topic: markers of its queries, and the processing log."""

from __future__ import annotations

import penstock
from penstock.client.errors import TopicAlreadyExists
from penstock.sql import processing_log
from penstock.sql.kafka import KafkaAccess

_KEEP_FOR_EVER = {"cleanup.policy": "compact", "min.compaction.lag.ms": "0"}


def markers_topic(service_id: str) -> str:
    return f"_penstock-sql_{service_id}_markers"


def create_internal_topics(kafka: KafkaAccess) -> None:
    """Create those that are missing."""
    wanted = {
        markers_topic(kafka.service_id): _KEEP_FOR_EVER,
        processing_log.topic_name(kafka.service_id): {},
    }
    with penstock.Admin(kafka.admin_config("topics")) as admin:
        existing = admin.list_topics(include_internal=True)
        for name, configs in wanted.items():
            if name not in existing:
                _create(admin, penstock.NewTopic(name=name, num_partitions=1, configs=configs))


def _create(admin: penstock.Admin, topic: penstock.NewTopic) -> None:
    try:
        admin.create_topics([topic])
    except TopicAlreadyExists:
        pass  # another server of this service was quicker
