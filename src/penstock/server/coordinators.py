"""The group and transaction coordinators of a broker, put together and kept where the metadata wants them.

Each has a runtime over its internal topic. A partition of that topic that is led here is loaded, one that is not (any
more) is unloaded; a partition tells of its own end first, so nothing is written between. When topics are deleted, the
offsets that groups committed in them go too.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from penstock.base.config import broker_keys as keys
from penstock.base.config.broker import BrokerConfig
from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.internal_topics import CONSUMER_OFFSETS, INTERNAL_TOPICS, TRANSACTION_STATE
from penstock.base.metrics import Metrics
from penstock.base.ports import World
from penstock.base.types import new_uuid
from penstock.controller.controller import Controller
from penstock.coordinator.group.coordinator import GroupCoordinator
from penstock.coordinator.group.settings import GroupSettings
from penstock.coordinator.group.shard import GroupShard
from penstock.coordinator.runtime.runtime import CoordinatorRuntime
from penstock.coordinator.transaction.shard import TransactionShard
from penstock.metadata.deltas import Delta, TopicDeleted
from penstock.metadata.image import ClusterImage, TopicState
from penstock.network.address import Address
from penstock.network.pool import ChannelPool
from penstock.network.settings import NetworkPorts, NetworkSettings
from penstock.records.compression import Codec
from penstock.replication.manager import ReplicaManager
from penstock.server.coordinator_gauges import add_group_gauges, add_transaction_gauges
from penstock.server.coordinator_log import ReplicatedLog
from penstock.server.internal_topics import InternalTopics
from penstock.server.transactions import TransactionParts
from penstock.storage.log import Log

MINUTE_MS: Final = 60_000
TOPIC_TIMEOUT_S: Final = 10.0
"""For a topic to be made and taken up; a client asks again after that."""

log = logging.getLogger(__name__)


class Coordinators:
    """`groups` and `transactions` are what handlers use; `topics` makes what they live on."""

    def __init__(
        self,
        node_id: int,
        *,
        config: Callable[[], BrokerConfig],
        controller: Controller,
        replicas: ReplicaManager,
        flush: Callable[[Log], Awaitable[None]],
        next_producer_id: Callable[[], Awaitable[int]],
        world: World,
        rng: random.Random,
    ) -> None:
        self._node_id = node_id
        self._config = config
        self._controller = controller
        self._replicas = replicas
        self._flush = flush
        self._world = world
        self._rng = rng
        self.topics = InternalTopics(controller, config=config, tasks=world.tasks)
        # A question that waits for markers must not stand in the way of the markers.
        self._pools = [self._new_pool("markers"), self._new_pool("verification")]
        self.groups = self._new_groups()
        self.transactions = TransactionParts(
            config=config,
            image=lambda: controller.image,
            next_producer_id=next_producer_id,
            marker_connections=self._pools[0],
            question_connections=self._pools[1],
            clock=world.clock,
            tasks=world.tasks,
        )
        self._followed: dict[str, TopicState | None] = {}
        self._waiting: list[asyncio.Future[None]] = []
        self._runtimes: dict[str, CoordinatorRuntime[Any]] = {
            CONSUMER_OFFSETS: self._attach_groups(),
            TRANSACTION_STATE: self._attach_transactions(),
        }

    # -- Being found -----------------------------------------------------------------------------------------------

    def ready_topic(self, topic: str) -> TopicState | None:
        """A coordinator's topic, once this broker serves what it leads of it.

        Metadata is seen a little before everybody has followed it: who is told of a coordinator then, finds none.
        """
        state = self._controller.image.topics.get(topic)
        return state if state is not None and state is self._followed.get(topic) else None

    async def wait_for_topic(self, topic: str) -> TopicState:
        """The same, made if it is missing. COORDINATOR_NOT_AVAILABLE when that takes too long."""
        deadline = self._world.clock.monotonic() + TOPIC_TIMEOUT_S
        await self.topics.ensure(topic)
        while (state := self.ready_topic(topic)) is None:
            patience_s = deadline - self._world.clock.monotonic()
            if patience_s <= 0:
                raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"The topic {topic} is not served yet.")
            followed: asyncio.Future[None] = self._world.tasks.future()
            self._waiting.append(followed)
            timer = self._world.tasks.call_later(patience_s, lambda done=followed: _finish(done))  # type: ignore[misc]
            await followed
            timer.cancel()
        return state

    def add_gauges(self, metrics: Metrics) -> None:
        add_group_gauges(metrics, self._world.clock, self._runtimes[CONSUMER_OFFSETS])
        add_transaction_gauges(
            metrics, self._world.clock, self._runtimes[TRANSACTION_STATE], self.transactions.coordinator
        )

    # -- Building --------------------------------------------------------------------------------------------------

    def _new_groups(self) -> GroupCoordinator:
        return GroupCoordinator(
            settings=group_settings(self._config()),
            image=lambda: self._controller.image,
            new_uuid=lambda: str(new_uuid(self._rng)),
            tasks=self._world.tasks,
        )

    def _attach_groups(self) -> CoordinatorRuntime[GroupShard]:
        config = self._config()
        runtime = CoordinatorRuntime(
            CONSUMER_OFFSETS,
            self._log(CONSUMER_OFFSETS, config[keys.OFFSETS_LOAD_BUFFER_SIZE]),
            clock=self._world.clock,
            tasks=self._world.tasks,
            make_shard=self.groups.make_shard,
            partition_count=lambda: self.topics.partition_count(CONSUMER_OFFSETS),
            write_timeout_ms=config[keys.OFFSETS_COMMIT_TIMEOUT_MS],
            codec=Codec(config[keys.OFFSETS_TOPIC_COMPRESSION_CODEC]),
        )
        self.groups.attach(runtime)
        return runtime

    def _attach_transactions(self) -> CoordinatorRuntime[TransactionShard]:
        config = self._config()
        runtime = CoordinatorRuntime(
            TRANSACTION_STATE,
            self._log(TRANSACTION_STATE, config[keys.TRANSACTION_STATE_LOG_LOAD_BUFFER_SIZE]),
            clock=self._world.clock,
            tasks=self._world.tasks,
            make_shard=self.transactions.coordinator.make_shard,
            partition_count=lambda: self.topics.partition_count(TRANSACTION_STATE),
            write_timeout_ms=config[keys.REQUEST_TIMEOUT_MS],
        )
        self.transactions.coordinator.attach(runtime)
        return runtime

    def _log(self, topic: str, load_buffer_bytes: int) -> ReplicatedLog:
        return ReplicatedLog(
            topic,
            self._replicas,
            tasks=self._world.tasks,
            flush=self._flush,
            load_buffer_bytes=load_buffer_bytes,
        )

    def _new_pool(self, purpose: str) -> ChannelPool:
        ports = NetworkPorts(
            network=self._world.network, clock=self._world.clock, tasks=self._world.tasks, rng=self._rng
        )
        settings = NetworkSettings(
            client_id=f"broker-{self._node_id}-{purpose}",
            request_timeout_ms=self._config()[keys.REQUEST_TIMEOUT_MS],
        )
        return ChannelPool(endpoints=self._address_of, ports=ports, settings=settings)

    def _address_of(self, node_id: int) -> Address | None:
        """Where brokers reach a broker: on the listener that is meant for them, else on its first."""
        registration = self._controller.image.brokers.get(node_id)
        if registration is None:
            return None
        wanted = self._config()[keys.INTER_BROKER_LISTENER_NAME]
        protocol = self._config()[keys.SECURITY_INTER_BROKER_PROTOCOL]
        for endpoint in registration.endpoints:
            if endpoint.listener == wanted or (wanted is None and endpoint.security_protocol == protocol):
                return Address(endpoint.host, endpoint.port)
        return None

    # -- Life ------------------------------------------------------------------------------------------------------

    def start(self, image: ClusterImage) -> None:
        """The replica manager has taken up its partitions."""
        for topic in self._runtimes:
            self._follow(topic, image)

    def on_metadata(self, old: ClusterImage, new: ClusterImage, deltas: Sequence[Delta]) -> None:
        """After the replica manager has followed."""
        for topic in self._runtimes:
            if old.topics.get(topic) is not new.topics.get(topic):
                self._follow(topic, new)
        if old.brokers is not new.brokers:
            for pool in self._pools:
                pool.check_addresses()
        if deleted := _deleted_topics(old, deltas):
            self._world.tasks.spawn(self.groups.on_topics_deleted(deleted), name="forget deleted topics")

    def _follow(self, topic: str, image: ClusterImage) -> None:
        runtime = self._runtimes[topic]
        state = self._followed[topic] = image.topics.get(topic)
        partitions = () if state is None else state.partitions
        for index in runtime.hosted_partitions():
            if index >= len(partitions):
                runtime.unload(index)
        for index, partition in enumerate(partitions):
            if partition.leader == self._node_id:
                runtime.load(index, partition.leader_epoch)
            else:
                runtime.unload(index, partition.leader_epoch)
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            _finish(each)

    async def stop(self) -> None:
        """Before the logs are closed: whoever waits is told to look for another coordinator."""
        await self.transactions.coordinator.stop()
        for runtime in self._runtimes.values():
            runtime.close()
        for pool in self._pools:
            await pool.close()


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _deleted_topics(old: ClusterImage, deltas: Sequence[Delta]) -> list[str]:
    """Also those whose name is taken by another topic since."""
    return [
        name
        for delta in deltas
        if isinstance(delta, TopicDeleted)
        and (name := old.topic_names.get(delta.topic_id)) is not None
        and name not in INTERNAL_TOPICS
    ]


def group_settings(config: BrokerConfig) -> GroupSettings:
    return GroupSettings(
        commit_timeout_ms=config[keys.OFFSETS_COMMIT_TIMEOUT_MS],
        min_session_timeout_ms=config[keys.GROUP_MIN_SESSION_TIMEOUT_MS],
        max_session_timeout_ms=config[keys.GROUP_MAX_SESSION_TIMEOUT_MS],
        initial_rebalance_delay_ms=config[keys.GROUP_INITIAL_REBALANCE_DELAY_MS],
        max_size=config[keys.GROUP_MAX_SIZE],
        offset_metadata_max_size=config[keys.OFFSET_METADATA_MAX_BYTES],
        offsets_retention_ms=config[keys.OFFSETS_RETENTION_MINUTES] * MINUTE_MS,
        retention_check_interval_ms=config[keys.OFFSETS_RETENTION_CHECK_INTERVAL_MS],
    )
