"""What a consumer is made of once it runs on a loop."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.base.errors import KafkaError
from penstock.base.types import TopicPartition
from penstock.client.config import ClientConfig, consumer_keys
from penstock.client.consumer.fetching.fetcher import Fetcher
from penstock.client.consumer.fetching.metrics import FetchMetrics
from penstock.client.consumer.fetching.resolving import PositionResolver
from penstock.client.consumer.fetching.settings import FetchSettings
from penstock.client.consumer.interceptors import Interceptors
from penstock.client.consumer.signal import Signal
from penstock.client.consumer.subscription import SubscriptionState
from penstock.client.core.client import ClientCore
from penstock.client.core.types import ClusterSnapshot
from penstock.client.errors import InvalidState, error_for

if TYPE_CHECKING:
    from penstock.client.consumer.commits import Commits
    from penstock.client.consumer.group.membership import GroupMembership

log = logging.getLogger(__name__)


class ConsumerParts:
    """Made by `start`, on the loop."""

    def __init__(
        self,
        core: ClientCore,
        subscription: SubscriptionState,
        interceptors: Interceptors,
        consumer: Callable[[], object],
    ) -> None:
        settings = FetchSettings.of(core.config)
        self.core = core
        self.subscription = subscription
        self.settings = settings
        self.signal = Signal(core.ports)
        self.metrics = FetchMetrics(
            core.metrics, core.ports.clock, subscription, read_committed=bool(settings.isolation_level)
        )
        self.fetcher = Fetcher(core, subscription, settings, self.signal, self.metrics)
        self.errors: deque[KafkaError] = self.fetcher.errors
        self.resolver = PositionResolver(core, subscription, settings, self.errors, self.positions_changed)
        self._warned: set[TopicPartition] = set()
        self.commits: Commits | None = None
        self.membership: GroupMembership | None = None
        if keeps_offsets(core.config):
            self._make_commits(interceptors, consumer)
        core.metadata.on_change(self._metadata_changed)

    def _make_commits(self, interceptors: Interceptors, consumer: Callable[[], object]) -> None:
        # Imported here: whoever reads alone need not load what groups need.
        from penstock.client.consumer.commits import Commits
        from penstock.client.consumer.group.membership import GroupMembership

        self.commits = Commits(self.core, self.subscription, interceptors)
        if self.core.config[consumer_keys.GROUP_ID] is not None:
            self.membership = GroupMembership(self.core, self.subscription, self.commits, consumer=consumer)
            self.membership.on_rebalance = self.signal.set

    def need_commits(self) -> Commits:
        if self.commits is None:
            raise InvalidState("Offsets are committed for a group: set group.id.")
        return self.commits

    def need_membership(self) -> GroupMembership:
        if self.membership is None:
            raise InvalidState("To subscribe is to join a group: set group.id, or assign partitions.")
        return self.membership

    def _metadata_changed(self, snapshot: ClusterSnapshot) -> None:
        for partition, state in self.subscription.items():
            info = snapshot.partition(partition)
            if info is not None:
                state.leader_is(info.leader, info.leader_epoch)
        for topic in self.subscription.topics:
            info_of_topic = snapshot.topics.get(topic)
            if info_of_topic is not None and info_of_topic.error and not info_of_topic.error.retriable:
                self._tell(error_for(info_of_topic.error, f"topic {topic}: {error_for(info_of_topic.error).message}"))
        self.warn_of_missing()
        self.positions_changed()

    def warn_of_missing(self) -> None:
        """Once of each partition that its topic does not have: it would be waited for without a word."""
        known = self.core.metadata.snapshot.topics
        for partition in self.subscription.partitions:
            topic = known.get(partition.topic)
            if topic is None or topic.error or not topic.partitions or partition in self._warned:
                continue
            if partition.partition >= len(topic.partitions):
                self._warned.add(partition)
                log.warning(
                    "%s Nothing is read of it until it exists: assign another one, or add partitions.",
                    no_such_partition(partition, len(topic.partitions)),
                )

    def positions_changed(self) -> None:
        """Something may be fetched that could not before: at once, also for a poll that waits."""
        self.fetcher.changed()
        self.fetcher.send()
        self.signal.set()

    def _tell(self, error: KafkaError) -> None:
        if not any(str(each) == str(error) for each in self.errors):
            self.errors.append(error)


def no_such_partition(partition: TopicPartition, count: int) -> str:
    have = "partition 0 only" if count == 1 else f"partitions 0 to {count - 1}"
    return f"There is no partition {partition}: topic {partition.topic} has {have}."


def keeps_offsets(config: ClientConfig) -> bool:
    return config[consumer_keys.GROUP_ID] is not None or config[consumer_keys.OFFSET_STORE] is not None
