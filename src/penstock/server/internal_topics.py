"""The coordinators' topics: how they are made, once, when they are first needed.

Kafka answers the first FindCoordinator with COORDINATOR_NOT_AVAILABLE while it creates the topic; here the answer waits
for the few milliseconds that takes, so that the first member of the first group finds its coordinator at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Final

from penstock.base.config.broker import BrokerConfig
from penstock.base.config.internal_topics import InternalTopic, offsets_topic, transaction_state_topic
from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.internal_topics import CONSUMER_OFFSETS, TRANSACTION_STATE
from penstock.base.ports import Tasks
from penstock.controller.controller import Controller
from penstock.controller.topics import NewTopic
from penstock.metadata.image import ClusterImage, TopicState

_DECLARED: Final[Mapping[str, Callable[[BrokerConfig, int], InternalTopic]]] = {
    CONSUMER_OFFSETS: offsets_topic,
    TRANSACTION_STATE: transaction_state_topic,
}

log = logging.getLogger(__name__)


class InternalTopics:
    def __init__(self, controller: Controller, *, config: Callable[[], BrokerConfig], tasks: Tasks) -> None:
        self._controller = controller
        self._config = config
        self._tasks = tasks
        self._creating: dict[str, asyncio.Task[None]] = {}

    @property
    def image(self) -> ClusterImage:
        return self._controller.image

    def declared(self, name: str) -> InternalTopic | None:
        """How a topic of that name is made; None when it is not a coordinator's."""
        declare = _DECLARED.get(name)
        return None if declare is None else declare(self._config(), len(self.image.brokers))

    def partition_count(self, name: str) -> int:
        """Of the topic that is there, or else of the one that will be made."""
        state = self.image.topics.get(name)
        if state is not None:
            return len(state.partitions)
        declared = self.declared(name)
        assert declared is not None, name
        return declared.partitions

    def new_topic(self, name: str) -> NewTopic:
        """What to create for a name that somebody uses: a coordinator's topic as it must be, others by default."""
        declared = self.declared(name)
        if declared is None:
            return NewTopic(name=name)
        return NewTopic(
            name=name,
            num_partitions=declared.partitions,
            replication_factor=declared.replication_factor,
            configs=list(declared.configs.items()),
        )

    async def ensure(self, name: str) -> TopicState:
        """The topic, made if it is missing; COORDINATOR_NOT_AVAILABLE when that does not work."""
        if name not in self.image.topics:
            await self._create_once(name)
        state = self.image.topics.get(name)
        if state is None:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"The topic {name} is not there.")
        return state

    async def _create_once(self, name: str) -> None:
        running = self._creating.get(name)
        if running is None:
            running = self._tasks.spawn(self._create(name), name=f"create {name}")
            self._creating[name] = running
            running.add_done_callback(lambda _: self._creating.pop(name, None))
        # Shielded: one client that goes away must not stop it for the others.
        await asyncio.shield(running)

    async def _create(self, name: str) -> None:
        try:
            (result,) = await self._controller.create_topics([self.new_topic(name)])
        except KafkaError as error:
            log.warning("the topic %s cannot be created: %s", name, error.message)
            return
        if result.error not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            log.warning("the topic %s cannot be created: %s", name, result.message)
