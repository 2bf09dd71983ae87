"""The parts that transactions are made of, put together for a broker.

`TransactionParts.coordinator` keeps the transactional ids whose partition is led here (its `make_shard` is for the
runtime, which is then handed over with `attach`); `verification` stands before appends to partitions led here. Both ask
other brokers over the wire, also this one, each over connections of its own: a question that waits for markers must not
stand in the way of the markers.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from penstock.base.config import broker_keys as keys
from penstock.base.config.broker import BrokerConfig
from penstock.base.errors import ErrorCode
from penstock.base.internal_topics import TRANSACTION_STATE
from penstock.base.ports import Clock, Tasks
from penstock.base.types import TopicPartition
from penstock.coordinator.placement import partition_for
from penstock.coordinator.transaction.coordinator import TransactionCoordinator
from penstock.coordinator.transaction.settings import TransactionSettings
from penstock.metadata.image import NO_LEADER, ClusterImage
from penstock.network.pool import ChannelPool
from penstock.replication.transaction_questions import CoordinatorQuestions, QuestionSettings
from penstock.replication.transaction_verification import TransactionVerification

TRANSACTION_VERSION_FEATURE = "transaction.version"
TRANSACTION_VERSION_MAX = 2
"""Where a new cluster starts; KIP-890's second protocol."""


class TransactionParts:
    """`config` and `image` are asked anew whenever they matter."""

    def __init__(
        self,
        *,
        config: Callable[[], BrokerConfig],
        image: Callable[[], ClusterImage],
        next_producer_id: Callable[[], Awaitable[int]],
        marker_connections: ChannelPool,
        question_connections: ChannelPool,
        clock: Clock,
        tasks: Tasks,
    ) -> None:
        self._config = config
        self._image = image
        self._settings: tuple[BrokerConfig, int, TransactionSettings] | None = None
        self.coordinator = TransactionCoordinator(
            settings=self._transaction_settings,
            next_producer_id=next_producer_id,
            peers=marker_connections,
            leader_of=lambda place: leader_of(image(), place),
            tasks=tasks,
        )
        self.verification = TransactionVerification(
            CoordinatorQuestions(
                peers=question_connections,
                coordinator_of=self._coordinator_of,
                tasks=tasks,
                clock=clock,
                settings=self._question_settings,
            ),
            tasks=tasks,
            is_enabled=lambda: config()[keys.TRANSACTION_PARTITION_VERIFICATION_ENABLE],
        )

    def _coordinator_of(self, transactional_id: str) -> int | None:
        topic = self._image().topics.get(TRANSACTION_STATE)
        if topic is None:
            return None
        place = TopicPartition(TRANSACTION_STATE, partition_for(transactional_id, len(topic.partitions)))
        leader = leader_of(self._image(), place)
        return None if leader == NO_LEADER else leader

    def _transaction_settings(self) -> TransactionSettings:
        """Asked for with every record, so it is made anew only when something has changed."""
        config, version = self._config(), self._image().features.get(TRANSACTION_VERSION_FEATURE, 0)
        known = self._settings
        if known is not None and known[0] is config and known[1] == version:
            return known[2]
        settings = transaction_settings(config, version)
        self._settings = (config, version, settings)
        return settings

    def _question_settings(self) -> QuestionSettings:
        config = self._config()
        return QuestionSettings(
            request_timeout_ms=config[keys.REQUEST_TIMEOUT_MS],
            retry_backoff_ms=config[keys.ADD_PARTITIONS_TO_TXN_RETRY_BACKOFF_MS],
            retry_max_ms=config[keys.ADD_PARTITIONS_TO_TXN_RETRY_BACKOFF_MAX_MS],
        )


def fencing_code(code: ErrorCode, knows_fencing: bool) -> ErrorCode:
    """Old clients do not know PRODUCER_FENCED."""
    if code is ErrorCode.PRODUCER_FENCED and not knows_fencing:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code


def leader_of(image: ClusterImage, place: TopicPartition) -> int | None:
    """The node that leads a partition, NO_LEADER when none that is alive does, None when there is no such partition."""
    topic = image.topics.get(place.topic)
    if topic is None or not 0 <= place.partition < len(topic.partitions):
        return None
    leader = topic.partitions[place.partition].leader
    return leader if leader in image.brokers else NO_LEADER


def transaction_settings(config: BrokerConfig, transaction_version: int) -> TransactionSettings:
    return TransactionSettings(
        transaction_version=transaction_version,
        timeout_max_ms=config[keys.TRANSACTION_MAX_TIMEOUT_MS],
        id_expiration_ms=config[keys.TRANSACTIONAL_ID_EXPIRATION_MS],
        abort_interval_ms=config[keys.TRANSACTION_ABORT_TIMED_OUT_TRANSACTION_CLEANUP_INTERVAL_MS],
        expiration_interval_ms=config[keys.TRANSACTION_REMOVE_EXPIRED_TRANSACTION_CLEANUP_INTERVAL_MS],
        write_timeout_ms=config[keys.REQUEST_TIMEOUT_MS],
        marker_timeout_ms=config[keys.REQUEST_TIMEOUT_MS],
        completion_wait_ms=config[keys.ADD_PARTITIONS_TO_TXN_RETRY_BACKOFF_MAX_MS],
    )
