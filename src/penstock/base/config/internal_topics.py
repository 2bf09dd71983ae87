"""How the broker's own topics are made: partitions, replicas, settings, from the broker's configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.base.config import broker_keys as keys
from penstock.base.config.broker import BrokerConfig
from penstock.base.config.effective import effective_min_isr
from penstock.base.internal_topics import CONSUMER_OFFSETS, TRANSACTION_STATE


@dataclass(frozen=True, slots=True, kw_only=True)
class InternalTopic:
    name: str
    partitions: int
    replication_factor: int
    """Never more than there are brokers."""
    configs: Mapping[str, str]


def offsets_topic(config: BrokerConfig, broker_count: int) -> InternalTopic:
    return InternalTopic(
        name=CONSUMER_OFFSETS,
        partitions=config[keys.OFFSETS_TOPIC_NUM_PARTITIONS],
        replication_factor=_clipped(config[keys.OFFSETS_TOPIC_REPLICATION_FACTOR], broker_count),
        configs={
            "cleanup.policy": "compact",
            "compression.type": "producer",
            **_segment_size(config[keys.OFFSETS_TOPIC_SEGMENT_BYTES]),
        },
    )


def transaction_state_topic(config: BrokerConfig, broker_count: int) -> InternalTopic:
    replicas = _clipped(config[keys.TRANSACTION_STATE_LOG_REPLICATION_FACTOR], broker_count)
    return InternalTopic(
        name=TRANSACTION_STATE,
        partitions=config[keys.TRANSACTION_STATE_LOG_NUM_PARTITIONS],
        replication_factor=replicas,
        configs={
            "cleanup.policy": "compact",
            # Its records are small and are read back by the coordinator; and losing one would break a transaction.
            "compression.type": "uncompressed",
            "unclean.leader.election.enable": "false",
            "min.insync.replicas": str(effective_min_isr(config[keys.TRANSACTION_STATE_LOG_MIN_ISR], replicas)),
            **_segment_size(config[keys.TRANSACTION_STATE_LOG_SEGMENT_BYTES]),
        },
    )


def _clipped(replication_factor: int, broker_count: int) -> int:
    return min(replication_factor, max(broker_count, 1))


def _segment_size(size: int) -> dict[str, str]:
    """These keys have no lower bound, and segment.bytes has one."""
    return {"segment.bytes" if size >= 1 << 20 else "internal.segment.bytes": str(size)}
