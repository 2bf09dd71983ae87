"""The composition root of a broker: builds every part, starts them from the disk upwards, stops them in reverse.

The order of a start: lock the log directories, load the metadata, open the logs, take the controller's place, adopt
partition directories that the metadata does not know, bind the listeners, register, take up the partitions and the
coordinators on them, and only then read from clients. A client that connects a moment too early waits in the socket's
backlog.
"""

from __future__ import annotations

import logging
import os.path
import random
from collections.abc import Callable, Mapping, Sequence

from penstock.base import metric_names
from penstock.base.config import broker_keys as keys
from penstock.base.config.broker import BrokerConfig
from penstock.base.config.declaration import Key
from penstock.base.config.dynamic import with_usable_dynamic
from penstock.base.config.effective import connections_per_ip_overrides
from penstock.base.config.internal_topics import offsets_topic, transaction_state_topic
from penstock.base.config.topic import TopicConfig, validate_topic_overrides
from penstock.base.internal_topics import CONSUMER_OFFSETS, TRANSACTION_STATE
from penstock.base.metrics import Metrics
from penstock.base.ports import World
from penstock.base.types import TopicPartition, new_uuid
from penstock.controller.adoption import FoundPartition
from penstock.controller.brokers import RegisterBroker
from penstock.controller.controller import Controller
from penstock.controller.topics import TopicRules
from penstock.coordinator.group.coordinator import GroupCoordinator
from penstock.metadata.deltas import BrokerConfigChanged, Delta
from penstock.metadata.image import CLUSTER_DEFAULT_CONFIG, BrokerRegistration, ClusterImage, Endpoint, TopicState
from penstock.metadata.local.store import FILE_NAME, LocalMetadataStore
from penstock.metadata.store import MetadataCorruptError
from penstock.replication.manager import ReplicaManager
from penstock.replication.settings import TopicSettings
from penstock.security.authorizer import AllowAll
from penstock.security.quotas import Unlimited
from penstock.server.api import Context
from penstock.server.connection_quotas import ConnectionQuotas
from penstock.server.coordinators import Coordinators
from penstock.server.dispatch import Dispatcher
from penstock.server.fetch_sessions import FetchSessions
from penstock.server.gauges import (
    BrokerState,
    add_cluster_gauges,
    add_fetch_session_gauges,
    add_process_gauges,
)
from penstock.server.listener import Listener
from penstock.server.memory import MemoryBudget
from penstock.server.output import Answer
from penstock.server.producer_ids import ProducerIds
from penstock.server.registry import ALL_APIS
from penstock.server.session import Session, SessionLimits
from penstock.server.topic_settings import log_config, topic_settings
from penstock.server.transactions import TRANSACTION_VERSION_FEATURE, TRANSACTION_VERSION_MAX
from penstock.storage.config import LogConfig
from penstock.storage.directories.log_directory import LogDirectoryError
from penstock.storage.manager.manager import LogManager, LogManagerSettings

log = logging.getLogger(__name__)

Dispatch = Callable[[Session, memoryview], Answer]


class BrokerError(Exception):
    """The broker cannot start, or cannot go on; the message says why and what to do."""


class Broker:
    """One broker. `config` may be replaced by a dynamic change; everything reads it anew when it matters."""

    def __init__(
        self,
        config: BrokerConfig,
        world: World,
        rng: random.Random,
        *,
        wrap_dispatch: Callable[[Dispatch], Dispatch] | None = None,
    ) -> None:
        """`wrap_dispatch` puts something between the sessions and the dispatcher, such as `penstock.testing`'s faults.

        It is asked once, when the listeners are bound, so a broker without one pays nothing per request.
        """
        self.config = config
        self._wrap_dispatch = wrap_dispatch
        self._static_config = config
        self.node_id = config.node_id
        self.metrics = Metrics()
        self._world = world
        self._rng = rng
        self.state = BrokerState.NOT_RUNNING
        self._registration: BrokerRegistration | None = None
        self._context: Context | None = None
        self._listeners: list[Listener] = []
        self._connection_quotas = ConnectionQuotas()
        self._store = LocalMetadataStore(
            os.path.join(config.log_dirs[0], FILE_NAME),
            files=world.files,
            tasks=world.tasks,
            rewrite_bytes_min=config[keys.PENSTOCK_METADATA_SNAPSHOT_BYTES],
        )
        self._logs = LogManager(
            config.log_dirs,
            files=world.files,
            clock=world.clock,
            tasks=world.tasks,
            node_id=config.node_id,
            rng=rng,
            metrics=self.metrics,
            settings=_log_manager_settings(config),
            log_config_for=self._log_config_for,
        )
        self._controller = Controller(
            self.node_id,
            self._store,
            tasks=world.tasks,
            rules=self._topic_rules,
            # A directory that is offline may still hold a deleted topic when it comes back.
            may_forget_deleted=lambda: not self._logs.offline_directories,
        )
        self._replicas = ReplicaManager(
            self.node_id,
            self._logs,
            clock=world.clock,
            tasks=world.tasks,
            metrics=self.metrics,
            settings_for=self._topic_settings_for,
            lag_time_max_ms=config[keys.REPLICA_LAG_TIME_MAX_MS],
        )
        self._producer_ids = ProducerIds(self._allocate_producer_ids)
        self._coordinators = Coordinators(
            self.node_id,
            config=lambda: self.config,
            controller=self._controller,
            replicas=self._replicas,
            flush=self._logs.flush,
            next_producer_id=self._producer_ids.next_id,
            world=world,
            rng=rng,
        )
        self._logs.add_offline_listener(self._log_directory_failed)
        self.failed = world.tasks.future()
        """Resolves with the reason when the broker cannot go on; whoever runs it then stops it."""
        self._fetch_sessions = FetchSessions(
            clock=world.clock, rng=rng, slots_max=config[keys.MAX_INCREMENTAL_FETCH_SESSION_CACHE_SLOTS]
        )
        self._add_gauges()

    def _add_gauges(self) -> None:
        self.metrics.gauge(metric_names.BROKER_STATE, lambda: self.state)
        add_cluster_gauges(self.metrics, self.node_id, lambda: self._store.image)
        add_fetch_session_gauges(self.metrics, self._fetch_sessions)
        add_process_gauges(self.metrics, self._world.clock)
        self._coordinators.add_gauges(self.metrics)

    @property
    def log_directories(self) -> Sequence[str]:
        return self.config.log_dirs

    @property
    def endpoints(self) -> Sequence[Endpoint]:
        """Where clients are told to find this broker."""
        assert self._registration is not None
        return self._registration.endpoints

    @property
    def sessions(self) -> Sequence[Session]:
        """The connections of the moment."""
        return [session for listener in self._listeners for session in listener.sessions]

    @property
    def groups(self) -> GroupCoordinator:
        return self._coordinators.groups

    # -- Start and stop --------------------------------------------------------------------------------------------

    async def start(self) -> None:
        self.state = BrokerState.RECOVERY
        try:
            await self._start_storage()
        except (LogDirectoryError, MetadataCorruptError) as error:
            raise BrokerError(str(error)) from error
        except OSError as error:
            raise BrokerError(f"the data in {', '.join(self.config.log_dirs)} cannot be used: {error}") from error
        self.state = BrokerState.STARTING
        await self._bind_listeners()
        await self._register()
        await self._replicas.start(self._store.image)
        self._coordinators.start(self._store.image)
        self._store.subscribe(self._on_metadata)
        self._logs.start_background()
        for listener in self._listeners:
            await listener.serve()
        self.state = BrokerState.RUNNING

    async def _start_storage(self) -> None:
        await self._logs.take_directories()
        self._reconfigure(await self._store.load())
        found = await self._logs.start()
        await self._controller.start(self._logs.cluster_id, {TRANSACTION_VERSION_FEATURE: TRANSACTION_VERSION_MAX})
        adoption = await self._controller.adopt_topics(
            [
                FoundPartition(
                    topic=each.topic_partition.topic,
                    partition=each.topic_partition.partition,
                    topic_id=each.topic_id,
                    latest_epoch=-1 if each.log.latest_epoch is None else each.log.latest_epoch,
                )
                for each in found
            ],
            broker_id=self.node_id,
            configs_for=self._configs_of_adopted,
        )
        for place in adoption.deleted:
            await self._logs.delete(place)
        for place in adoption.stray:
            await self._logs.mark_stray(place)

    async def _bind_listeners(self) -> None:
        self._context = self._make_context()
        dispatcher = Dispatcher(self._context, ALL_APIS, authorizer=AllowAll(), quotas=Unlimited())
        dispatch: Dispatch = dispatcher.dispatch
        if self._wrap_dispatch is not None:
            dispatch = self._wrap_dispatch(dispatch)
        config = self.config
        budget = MemoryBudget(config[keys.QUEUED_MAX_REQUEST_BYTES])
        for declared in config.listeners:
            listener = Listener(
                declared.name,
                declared.host,
                declared.port,
                dispatch=dispatch,
                network=self._world.network,
                tasks=self._world.tasks,
                clock=self._world.clock,
                metrics=self.metrics,
                limits=_session_limits(config),
                quotas=self._connection_quotas,
                budget=budget,
            )
            try:
                await listener.bind()
            except OSError as error:
                raise BrokerError(
                    f"cannot listen on {declared}: {error.strerror or error}; stop what uses that address, or choose "
                    "another one with --listeners"
                ) from error
            self._listeners.append(listener)

    def _make_context(self) -> Context:
        return Context(
            node_id=self.node_id,
            config=self.config,
            store=self._store,
            replicas=self._replicas,
            logs=self._logs,
            controller=self._controller,
            coordinators=self._coordinators,
            producer_ids=self._producer_ids,
            fetch_sessions=self._fetch_sessions,
            authorizer=AllowAll(),
            clock=self._world.clock,
            tasks=self._world.tasks,
            metrics=self.metrics,
            apis={int(api.key): api for api in ALL_APIS},
        )

    async def _register(self) -> None:
        endpoints = tuple(
            Endpoint(
                listener=advertised.name,
                host=advertised.host,
                port=advertised.port or bound.port,
                security_protocol=advertised.security_protocol,
            )
            for advertised, bound in zip(self.config.advertised_listeners, self._listeners, strict=True)
        )
        self._registration = await self._controller.register_broker(
            RegisterBroker(
                broker_id=self.node_id,
                endpoints=endpoints,
                rack=self.config[keys.BROKER_RACK],
                incarnation=new_uuid(self._rng),
                clean=self._logs.was_clean,
            )
        )

    async def stop(self) -> None:
        """Answer who waits, close the listeners, then everything below them; a start that failed is undone too."""
        self.state = BrokerState.SHUTTING_DOWN
        await self._coordinators.stop()
        self._replicas.stop()
        for listener in self._listeners:
            await listener.close()
        await self._controller.close()
        await self._store.close()
        await self._logs.stop(broker_epoch=self._registration.epoch if self._registration is not None else -1)

    # -- What the parts ask ----------------------------------------------------------------------------------------

    def _log_directory_failed(self, path: str, partitions: Sequence[TopicPartition]) -> None:
        self._replicas.log_directory_failed(path, partitions)
        if not self._logs.live_directories and not self.failed.done():
            self.failed.set_result(f"every log directory has failed, {path} was the last")

    async def _on_metadata(self, old: ClusterImage, new: ClusterImage, deltas: Sequence[Delta]) -> None:
        # Before the partitions follow: what their topics do not set comes from here.
        if any(isinstance(delta, BrokerConfigChanged) for delta in deltas):
            self._reconfigure(new)
        await self._replicas.on_metadata(old, new, deltas)
        self._coordinators.on_metadata(old, new, deltas)

    def _reconfigure(self, image: ClusterImage) -> None:
        """Take over the dynamic settings of `image`; those that do not go with the file are left out, and told."""
        own, default = (image.broker_configs.get(name, {}) for name in (str(self.node_id), CLUSTER_DEFAULT_CONFIG))
        self.config, problems = with_usable_dynamic(self._static_config, broker=own, default=default)
        for problem in problems:
            log.error("a dynamic setting is not used: %s", problem)
        if self._context is not None:
            self._context.config = self.config
        quotas = self._connection_quotas
        quotas.connections_max = self.config[keys.MAX_CONNECTIONS]
        quotas.per_ip_max = self.config[keys.MAX_CONNECTIONS_PER_IP]
        quotas.per_ip_overrides = connections_per_ip_overrides(self.config)
        self._logs.update_settings(_log_manager_settings(self.config))

    async def _allocate_producer_ids(self) -> range:
        assert self._registration is not None
        return await self._controller.allocate_producer_ids(self.node_id, self._registration.epoch)

    def _topic_rules(self) -> TopicRules:
        return TopicRules(
            default_num_partitions=self.config[keys.NUM_PARTITIONS],
            default_replication_factor=self.config[keys.DEFAULT_REPLICATION_FACTOR],
            validate_configs=lambda overrides: validate_topic_overrides(overrides, self.config),
            new_topic_id=lambda: new_uuid(self._rng),
            random_below=self._rng.randrange,
        )

    def _configs_of_adopted(self, topic: str) -> Mapping[str, str]:
        """An adopted directory brings no settings; internal topics get theirs, for they must never be trimmed."""
        internal = {CONSUMER_OFFSETS: offsets_topic, TRANSACTION_STATE: transaction_state_topic}.get(topic)
        return {} if internal is None else internal(self.config, 1).configs

    def _topic_settings_for(self, topic: TopicState) -> TopicSettings:
        return topic_settings(TopicConfig(self.config, topic.configs))

    def _log_config_for(self, topic: str) -> LogConfig:
        state = self._store.image.topics.get(topic)
        return log_config(TopicConfig(self.config, state.configs if state is not None else {}))


def _session_limits(config: BrokerConfig) -> SessionLimits:
    return SessionLimits(
        request_bytes_max=config[keys.SOCKET_REQUEST_MAX_BYTES],
        in_flight_max=config[keys.PENSTOCK_MAX_INFLIGHT_REQUESTS_PER_CONNECTION],
        unsent_bytes_max=config[keys.PENSTOCK_MAX_UNSENT_BYTES_PER_CONNECTION],
        idle_ms_max=config[keys.CONNECTIONS_MAX_IDLE_MS],
        backlog=config[keys.SOCKET_LISTEN_BACKLOG_SIZE],
        send_buffer_bytes=_when_set(config, keys.SOCKET_SEND_BUFFER_BYTES),
        receive_buffer_bytes=_when_set(config, keys.SOCKET_RECEIVE_BUFFER_BYTES),
    )


def _when_set(config: BrokerConfig, key: Key[int]) -> int:
    """A socket buffer of the asked size; Kafka's default is far below what the system chooses by itself."""
    return config[key] if config.is_set(key) else -1


def _log_manager_settings(config: BrokerConfig) -> LogManagerSettings:
    return LogManagerSettings(
        recovery_threads_per_data_dir=config[keys.NUM_RECOVERY_THREADS_PER_DATA_DIR],
        retention_check_interval_ms=config[keys.LOG_RETENTION_CHECK_INTERVAL_MS],
        flush_scheduler_interval_ms=config[keys.LOG_FLUSH_SCHEDULER_INTERVAL_MS],
        recovery_point_checkpoint_interval_ms=config[keys.LOG_FLUSH_OFFSET_CHECKPOINT_INTERVAL_MS],
        start_offset_checkpoint_interval_ms=config[keys.LOG_FLUSH_START_OFFSET_CHECKPOINT_INTERVAL_MS],
        high_watermark_checkpoint_interval_ms=config[keys.REPLICA_HIGH_WATERMARK_CHECKPOINT_INTERVAL_MS],
        producer_id_expiration_ms=config[keys.PRODUCER_ID_EXPIRATION_MS],
        producer_id_expiration_check_interval_ms=config[keys.PRODUCER_ID_EXPIRATION_CHECK_INTERVAL_MS],
        initial_task_delay_ms=config[keys.LOG_INITIAL_TASK_DELAY_MS],
    )
