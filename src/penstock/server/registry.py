"""Every API this broker serves. ApiVersions is answered from this list, and the dispatcher knows nothing else."""

from __future__ import annotations

from penstock.server.api import Api
from penstock.server.handlers import (
    api_versions,
    create_topics,
    delete_topics,
    describe_cluster,
    describe_configs,
    describe_topic_partitions,
    fetch,
    init_producer_id,
    list_offsets,
    metadata,
    offset_for_leader_epoch,
    produce,
)

ALL_APIS: tuple[Api, ...] = (
    produce.API,
    fetch.API,
    list_offsets.API,
    metadata.API,
    api_versions.API,
    create_topics.API,
    delete_topics.API,
    init_producer_id.API,
    offset_for_leader_epoch.API,
    describe_configs.API,
    describe_cluster.API,
    describe_topic_partitions.API,
)
