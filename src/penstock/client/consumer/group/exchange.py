"""JoinGroup, SyncGroup and LeaveGroup: a machine's effects turned into requests, the answers into events.

One exchange is a task: it outlives the poll that started it, so that short polls do not cut a join short, and ends with
the assignment or with the machine back at `UNJOINED`. It never calls the user, except for an assignor of his.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence

from penstock.base.errors import ErrorCode, KafkaError
from penstock.client.consumer.assignors.base import Assignment, Assignor, MemberSubscription
from penstock.client.consumer.group.events import (
    Effect,
    ForgetCoordinator,
    Identity,
    JoinAnswered,
    Pause,
    RequestFailed,
    SendJoin,
    SendLeave,
    SendSync,
    SyncAnswered,
    Wake,
)
from penstock.client.consumer.group.leading import Shape, make_assignments, read_members, shape_of, topics_of
from penstock.client.consumer.group.machine import Machine
from penstock.client.consumer.group.settings import GroupSettings
from penstock.client.consumer.group.wire import (
    PROTOCOL_TYPE,
    decode_assignment,
    encode_assignment,
    encode_subscription,
)
from penstock.client.consumer.subscription import SubscriptionState
from penstock.client.core.client import ClientCore
from penstock.client.core.nodes import broker_id
from penstock.client.core.types import CoordinatorKind
from penstock.client.core.waiting import pause
from penstock.client.errors import ClientError, InvalidState, UnsupportedByBroker, is_retriable
from penstock.network.errors import UnsupportedVersion
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from penstock.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from penstock.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse

log = logging.getLogger(__name__)


class Exchange:
    def __init__(
        self,
        core: ClientCore,
        machine: Machine,
        settings: GroupSettings,
        assignors: Sequence[Assignor],
        subscription: SubscriptionState,
    ) -> None:
        self.assignment = Assignment()
        """Of the generation that was joined last."""
        self.joined_topics: frozenset[str] | None = None
        """What the coordinator was told that this member reads."""
        self.group_shape: Shape | None = None
        """In the leader: the partitions of all topics of the group when they were last assigned."""
        self.on_wake: Callable[[], None] = lambda: None
        self.on_joined: Callable[[], None] = lambda: None
        self._core = core
        self._machine = machine
        self._settings = settings
        self._assignors = {each.name: each for each in assignors}
        self._subscription = subscription
        self._members: list[JoinGroupResponseMember] = []

    def assignor(self, name: str | None) -> Assignor | None:
        return self._assignors.get(name) if name is not None else None

    async def perform(self, effects: Iterable[Effect]) -> None:
        """With what follows from them; for a join that is up to the assignment, or to a failure."""
        waiting = deque(effects)
        while waiting:
            waiting.extend(await self._perform(waiting.popleft()))

    async def _perform(self, effect: Effect) -> list[Effect]:
        match effect:
            case SendJoin():
                return await self._guarded(self._join, effect)
            case SendSync():
                return await self._guarded(self._sync, effect)
            case SendLeave():
                await self._leave(effect)
            case ForgetCoordinator():
                self._core.coordinator_lost(CoordinatorKind.GROUP, self._settings.group_id)
            case Pause():
                await pause(self._core.ports, self._settings.intervals.retry_s)
            case Wake():
                self.on_wake()
        return []

    async def _guarded(self, step: Callable[..., object], effect: Effect) -> list[Effect]:
        """What goes wrong in a step is an event too."""
        try:
            effects: list[Effect] = await step(effect)  # type: ignore[misc]
        except UnsupportedVersion as error:
            return self._machine.handle(RequestFailed(error=UnsupportedByBroker(str(error))))
        except KafkaError as error:
            log.info("group %s: the join failed and is tried again: %s", self._settings.group_id, error)
            return self._machine.handle(RequestFailed(error=None if is_retriable(error) else error))
        return effects

    # JoinGroup.

    async def _join(self, effect: SendJoin) -> list[Effect]:
        settings, identity = self._settings, effect.identity
        node = await self._core.coordinator(CoordinatorKind.GROUP, settings.group_id)
        self.joined_topics = self._subscription.topics
        request = JoinGroupRequest(
            group_id=settings.group_id,
            session_timeout_ms=settings.session_timeout_ms,
            rebalance_timeout_ms=settings.rebalance_timeout_ms,
            member_id=identity.member_id,
            group_instance_id=settings.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=self._offers(identity),
            reason=effect.reason[:255],
        )
        log.debug("group %s: joins as %r: %s", settings.group_id, identity.member_id, effect.reason)
        answer: JoinGroupResponse = await self._core.send(
            node, ApiKey.JOIN_GROUP, request, timeout_ms=settings.join_timeout_ms
        )
        self._members = answer.members
        effects = self._machine.handle(
            JoinAnswered(
                code=answer.error_code,
                member_id=answer.member_id,
                generation_id=answer.generation_id,
                protocol=answer.protocol_name,
                leader_id=answer.leader,
                is_assigned_already=answer.skip_assignment,
            )
        )
        if not answer.error_code:
            self.on_joined()
        return effects

    def _offers(self, identity: Identity) -> list[JoinGroupRequestProtocol]:
        """One subscription for each assignor: they differ in the user data."""
        topics = self._subscription.topics
        owned = self._subscription.partitions

        def offer(assignor: Assignor) -> JoinGroupRequestProtocol:
            user_data = getattr(assignor, "subscription_user_data", lambda _topics: None)(topics)
            told = MemberSubscription(
                topics=tuple(topics),
                owned=owned,
                user_data=user_data,
                generation_id=identity.generation_id,
                rack=self._settings.rack,
            )
            return JoinGroupRequestProtocol(name=assignor.name, metadata=encode_subscription(told))

        return [offer(each) for each in self._assignors.values()]

    # SyncGroup.

    async def _sync(self, effect: SendSync) -> list[Effect]:
        settings, identity = self._settings, effect.identity
        made = await self._lead(effect) if effect.is_leader else {}
        node = await self._core.coordinator(CoordinatorKind.GROUP, settings.group_id)
        request = SyncGroupRequest(
            group_id=settings.group_id,
            generation_id=identity.generation_id,
            member_id=identity.member_id,
            group_instance_id=settings.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=identity.protocol,
            assignments=[
                SyncGroupRequestAssignment(member_id=member, assignment=encode_assignment(own))
                for member, own in made.items()
            ],
        )
        answer: SyncGroupResponse = await self._core.send(
            node, ApiKey.SYNC_GROUP, request, timeout_ms=settings.join_timeout_ms
        )
        if not answer.error_code:
            self.assignment = decode_assignment(answer.assignment)
        return self._machine.handle(SyncAnswered(code=answer.error_code, protocol=answer.protocol_name))

    async def _lead(self, effect: SendSync) -> dict[str, Assignment]:
        """The leader's part. It watches over the topics of all members from now on."""
        subscriptions = read_members(self._members)
        self._members = []
        topics = topics_of(subscriptions)
        metadata = self._core.metadata
        metadata.want(topics)
        if any(topic not in metadata.snapshot.topics for topic in topics):
            await metadata.update(self._settings.request_timeout_ms)
        cluster = metadata.snapshot
        self.group_shape = shape_of(cluster, topics, with_racks=bool(self._settings.rack))
        if effect.is_assigned_already:
            return {}
        assignor = self.assignor(effect.identity.protocol)
        if assignor is None:
            raise InvalidState(f"The group chose the assignor {effect.identity.protocol!r}, which was not offered.")
        try:
            return make_assignments(assignor, cluster, subscriptions)
        except ClientError:
            raise
        except Exception as error:  # the user's own assignor: whatever it raises, the group hears of it once
            raise InvalidState(
                f"The assignor {assignor.name!r} failed; group {self._settings.group_id} has no assignment: {error!r}"
            ) from error

    # LeaveGroup.

    async def _leave(self, effect: SendLeave) -> None:
        """Best effort: without it the coordinator notices when the session is over."""
        settings = self._settings
        request = LeaveGroupRequest(
            group_id=settings.group_id,
            member_id=effect.member_id,
            members=[
                MemberIdentity(
                    member_id=effect.member_id, group_instance_id=settings.instance_id, reason=effect.reason[:255]
                )
            ],
        )
        node = self._core.known_coordinator(CoordinatorKind.GROUP, settings.group_id)
        if node is None:
            return
        if effect.was_joining:
            # The join holds the coordinator's connection until all members came.
            node = broker_id(node)
        try:
            answer = await self._core.send(node, ApiKey.LEAVE_GROUP, request, timeout_ms=settings.request_timeout_ms)
        except KafkaError as error:
            log.info("group %s: could not say good-bye: %s", settings.group_id, error)
            return
        if answer.error_code and answer.error_code != ErrorCode.UNKNOWN_MEMBER_ID:
            log.info("group %s: leaving was answered with error code %d", settings.group_id, answer.error_code)
