"""Heartbeats in the background, independent of what the user does; and the watch over how often he polls."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from penstock.base.errors import ErrorCode, KafkaError
from penstock.client.consumer.group.events import (
    Effect,
    Identity,
    PollExpired,
    Refused,
    SessionExpired,
)
from penstock.client.consumer.group.machine import Machine
from penstock.client.consumer.group.settings import GroupSettings
from penstock.client.consumer.group.timing import HeartbeatTimer
from penstock.client.consumer.signal import Signal
from penstock.client.core.client import ClientCore
from penstock.client.core.types import CoordinatorKind
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.heartbeat import HeartbeatRequest

log = logging.getLogger(__name__)


class Heartbeats:
    def __init__(
        self,
        core: ClientCore,
        machine: Machine,
        settings: GroupSettings,
        perform: Callable[[list[Effect]], None],
    ) -> None:
        self.is_polling = False
        """The user waits in a poll: then it cannot be overdue."""
        self._core = core
        self._machine = machine
        self._settings = settings
        self._perform = perform
        self._timer = HeartbeatTimer(settings.intervals, self._now())
        self._signal = Signal(core.ports)
        self._task: asyncio.Task[None] | None = None
        self._under_way: asyncio.Future[Any] | None = None

    def _now(self) -> float:
        return self._core.ports.clock.monotonic()

    def polled(self) -> None:
        self._timer.polled(self._now())

    def joined(self) -> None:
        """The member is in a new generation: the coordinator expects heartbeats from now on."""
        self._timer.session_started(self._now())
        if self._task is None or self._task.done():
            self._task = self._core.ports.tasks.spawn(self._run(), name="heartbeats")
        self._signal.set()

    async def close(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _run(self) -> None:
        while self._machine.needs_heartbeats:
            self._beat()
            await self._signal.wait(max(0.0, self._timer.next_at() - self._now()) + 0.001)

    def _beat(self) -> None:
        now, timer = self._now(), self._timer
        if self.is_polling:
            timer.polled(now)
        if timer.is_poll_overdue(now):
            log.warning(
                "group %s: the member leaves because poll() was not called for max.poll.interval.ms (%d): raise it, "
                "or lower max.poll.records so that a batch takes less time",
                self._settings.group_id,
                self._settings.rebalance_timeout_ms,
            )
            self._perform(self._machine.handle(PollExpired()))
            return
        if timer.is_session_over(now):
            log.info("group %s: the coordinator was silent for session.timeout.ms", self._settings.group_id)
            timer.session_lost(now)
            self._perform(self._machine.handle(SessionExpired()))
        if timer.is_due(now):
            timer.sent(now)
            if self._under_way is None:
                self._under_way = self._core.ports.tasks.spawn(self._send(), name="heartbeat")
                self._under_way.add_done_callback(self._sent)

    def _sent(self, _: object) -> None:
        self._under_way = None

    async def _send(self) -> None:
        settings, identity = self._settings, self._machine.identity
        request = HeartbeatRequest(
            group_id=settings.group_id,
            generation_id=identity.generation_id,
            member_id=identity.member_id,
            group_instance_id=settings.instance_id,
        )
        node = None
        try:
            node = await self._core.coordinator(
                CoordinatorKind.GROUP, settings.group_id, timeout_ms=settings.session_timeout_ms
            )
            answer = await self._core.send(
                node,
                ApiKey.HEARTBEAT,
                request,
                timeout_ms=min(settings.session_timeout_ms, settings.request_timeout_ms),
            )
        except KafkaError as error:
            log.debug("group %s: a heartbeat got no answer: %s", settings.group_id, error)
            if node is not None:
                self._core.coordinator_lost(CoordinatorKind.GROUP, settings.group_id, node)
            self._timer.failed(self._now())
            self._signal.set()
            return
        self._answered(answer.error_code, identity)

    def _answered(self, number: int, identity: Identity) -> None:
        code = ErrorCode.of(number)
        # Any answer for this member shows that the coordinator knows it still, a rebalance included.
        if code in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS):
            self._timer.heard(self._now())
        if code is not ErrorCode.NONE:
            log.debug("group %s: a heartbeat was answered with %s", self._settings.group_id, code.name)
            self._perform(self._machine.handle(Refused(code=code, identity=identity)))
        self._signal.set()
