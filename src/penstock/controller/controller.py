"""The controller's event queue: one request at a time is planned on the newest image and committed.

A request that finds the image moved on by somebody else (a controller that does not know yet that it was replaced) is
planned again, a few times. The answer to a request is given when its commit is, so its effects can be relied upon.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar
from uuid import UUID

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ports import Tasks
from penstock.controller.adoption import Adoption, FoundPartition, plan_adopt_topics
from penstock.controller.brokers import RegisterBroker, plan_register_broker, plan_unregister_broker
from penstock.controller.configs import ConfigChange, ConfigChangeResult, ConfigRules, plan_alter_configs
from penstock.controller.elections import ElectionResult, ElectionType, plan_elect_leaders
from penstock.controller.features import FeatureUpdate, plan_update_features
from penstock.controller.new_partitions import MorePartitions, MorePartitionsResult, plan_create_partitions
from penstock.controller.partitions import AlterPartition, plan_alter_partition
from penstock.controller.producer_ids import plan_allocate_producer_ids
from penstock.controller.reassignment import Reassignment, ReassignmentResult, plan_reassign_partitions
from penstock.controller.topics import (
    DeletedTopicResult,
    NewTopic,
    NewTopicResult,
    TopicReference,
    TopicRules,
    plan_create_topics,
    plan_delete_topics,
)
from penstock.metadata.deltas import ClusterIdSet, ControllerChanged, DeletedTopicsForgotten, Delta, FeatureChanged
from penstock.metadata.image import BrokerRegistration, ClusterImage, PartitionState
from penstock.metadata.serial import SerialQueue
from penstock.metadata.store import MetadataStore, VersionConflictError

PENDING_MAX = 10_000
PLAN_ATTEMPTS = 5

R = TypeVar("R")
Plan = Callable[[ClusterImage], tuple[list[Delta], R]]

log = logging.getLogger(__name__)


class Controller:
    """`rules` is asked anew for every request, since the defaults it carries can change while the broker runs.

    `may_forget_deleted` says whether every directory of a deleted topic is known to be gone: not while a disk that
    could hold one is offline.
    """

    def __init__(
        self,
        node_id: int,
        store: MetadataStore,
        *,
        tasks: Tasks,
        rules: Callable[[], TopicRules],
        may_forget_deleted: Callable[[], bool] = lambda: True,
    ) -> None:
        self._may_forget_deleted = may_forget_deleted
        self._node_id = node_id
        self._store = store
        self._rules = rules
        self._queue = SerialQueue(tasks, name="controller", pending_max=PENDING_MAX)
        self._deleted: set[UUID] = set()

    @property
    def image(self) -> ClusterImage:
        return self._store.image

    async def start(self, cluster_id: str, features: Mapping[str, int] | None = None) -> ClusterImage:
        """Take the controller's place; an empty store becomes the cluster `cluster_id`.

        Features that the cluster has no level of (it is new, or older than the feature) get the given one.
        """

        def plan(image: ClusterImage) -> tuple[list[Delta], None]:
            deltas: list[Delta] = []
            if image.cluster_id is None:
                deltas.append(ClusterIdSet(cluster_id=cluster_id))
            deltas += [
                FeatureChanged(name=name, level=level)
                for name, level in (features or {}).items()
                if name not in image.features
            ]
            if image.controller_id != self._node_id:
                deltas.append(ControllerChanged(controller_id=self._node_id))
            return deltas, None

        await self._run(plan)
        return self._store.image

    async def register_broker(self, request: RegisterBroker) -> BrokerRegistration:
        await self._run(lambda image: (plan_register_broker(image, request), None))
        return self._store.image.brokers[request.broker_id]

    async def unregister_broker(self, broker_id: int) -> None:
        await self._run(lambda image: (plan_unregister_broker(image, broker_id), None))

    async def create_topics(self, request: Sequence[NewTopic], *, validate_only: bool = False) -> list[NewTopicResult]:
        rules = self._rules()
        if validate_only:
            return plan_create_topics(self._store.image, request, rules)[1]
        results = await self._run(lambda image: plan_create_topics(image, request, rules))
        for result in results:
            if result.error is ErrorCode.NONE:
                log.info("created topic %s with %d partition(s)", result.name, result.num_partitions)
        return results

    async def delete_topics(self, request: Sequence[TopicReference]) -> list[DeletedTopicResult]:
        results = await self._run(lambda image: plan_delete_topics(image, request))
        done = [result for result in results if result.error is ErrorCode.NONE]
        # Every broker has followed by now, so the next change may forget that these topics ever were.
        self._deleted.update(result.topic_id for result in done)
        for result in done:
            log.info("deleted topic %s", result.name)
        return results

    async def create_partitions(
        self, request: Sequence[MorePartitions], *, validate_only: bool = False
    ) -> list[MorePartitionsResult]:
        random_below = self._rules().random_below
        if validate_only:
            return plan_create_partitions(self._store.image, request, random_below)[1]
        results = await self._run(lambda image: plan_create_partitions(image, request, random_below))
        for result in results:
            if result.error is ErrorCode.NONE:
                log.info("added partitions to topic %s", result.name)
        return results

    async def alter_configs(
        self, request: Sequence[ConfigChange], rules: ConfigRules, *, validate_only: bool = False
    ) -> list[ConfigChangeResult]:
        if validate_only:
            return plan_alter_configs(self._store.image, request, rules)[1]
        return await self._run(lambda image: plan_alter_configs(image, request, rules))

    async def update_features(
        self, request: Sequence[FeatureUpdate], supported: Mapping[str, range], *, validate_only: bool = False
    ) -> None:
        if validate_only:
            plan_update_features(self._store.image, request, supported)
            return
        await self._run(lambda image: (plan_update_features(image, request, supported), None))

    async def elect_leaders(
        self, kind: ElectionType, wanted: Mapping[str, Sequence[int]] | None
    ) -> list[ElectionResult]:
        return await self._run(lambda image: plan_elect_leaders(image, kind, wanted))

    async def reassign_partitions(
        self, request: Sequence[Reassignment], *, may_change_factor: bool
    ) -> list[ReassignmentResult]:
        return await self._run(
            lambda image: plan_reassign_partitions(image, request, may_change_factor=may_change_factor)
        )

    async def allocate_producer_ids(self, broker_id: int, broker_epoch: int) -> range:
        return await self._run(lambda image: plan_allocate_producer_ids(image, broker_id, broker_epoch))

    async def alter_partition(self, request: AlterPartition) -> PartitionState:
        return await self._run(lambda image: plan_alter_partition(image, request))

    async def adopt_topics(
        self, found: Iterable[FoundPartition], *, broker_id: int, configs_for: Callable[[str], Mapping[str, str]]
    ) -> Adoption:
        """For the start of a broker, before it follows the metadata."""
        rules = self._rules()
        everything = list(found)
        adoption = await self._run(
            lambda image: plan_adopt_topics(
                image,
                everything,
                broker_id=broker_id,
                new_topic_id=rules.new_topic_id,
                configs_for=configs_for,
                may_forget_deleted=self._may_forget_deleted(),
            )
        )
        for place in adoption.adopted:
            log.info("adopted the partition directory %s", place)
        return adoption

    async def close(self) -> None:
        await self._queue.close()

    async def _run(self, plan: Plan[R]) -> R:
        return await self._queue.run(lambda: self._plan_and_commit(plan))

    async def _plan_and_commit(self, plan: Plan[R]) -> R:
        for _ in range(PLAN_ATTEMPTS):
            image = self._store.image
            deltas, result = plan(image)
            if not deltas:
                return result
            forgotten = self._deleted & image.deleted_topics.keys() if self._may_forget_deleted() else set()
            if forgotten:
                deltas.append(DeletedTopicsForgotten(topic_ids=tuple(forgotten)))
            try:
                await self._store.commit(deltas, expected_version=image.version)
            except VersionConflictError as conflict:
                log.warning("planning a metadata change again: %s", conflict)
                continue
            self._deleted -= forgotten
            return result
        raise KafkaError(ErrorCode.NOT_CONTROLLER, "The metadata was changed by another controller all the time.")
