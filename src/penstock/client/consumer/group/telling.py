"""Telling the user's listener that partitions come and go, and changing the subscription around it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Final

from penstock.base.types import TopicPartition
from penstock.client.consumer.group.heartbeats import Heartbeats
from penstock.client.consumer.subscription import SubscriptionState
from penstock.client.core.client import ClientCore

log = logging.getLogger(__name__)

_CALLS: Final = {"on_assigned": "assigned", "on_revoked": "revoked", "on_lost": "lost"}


class Teller:
    def __init__(
        self, core: ClientCore, subscription: SubscriptionState, heartbeats: Heartbeats, consumer: Callable[[], object]
    ) -> None:
        self._core = core
        self._subscription = subscription
        self._heartbeats = heartbeats
        self._consumer = consumer
        self._error: Exception | None = None

    def raise_error(self) -> None:
        """The first that a listener raised in this rebalance."""
        error, self._error = self._error, None
        if error is not None:
            raise error

    async def assigned(self, partitions: Sequence[TopicPartition]) -> None:
        """They are there already, so that the listener can seek."""
        await self._call("on_assigned", partitions)

    async def revoked(self, partitions: Sequence[TopicPartition]) -> None:
        """They are still there for the listener, who may commit; nothing more is read from them."""
        self._subscription.mark_pending_revocation(partitions)
        try:
            await self._call("on_revoked", partitions)
        finally:
            self._subscription.revoked(partitions)

    async def lost(self, partitions: Sequence[TopicPartition]) -> None:
        self._subscription.mark_pending_revocation(partitions)
        try:
            await self._call("on_lost", partitions)
        finally:
            self._subscription.lost(partitions)

    async def _call(self, method: str, partitions: Sequence[TopicPartition]) -> None:
        function = getattr(self._subscription.listener, method, None)
        if function is None:
            return
        # A listener that takes too long is a poll that takes too long.
        was_polling, self._heartbeats.is_polling = self._heartbeats.is_polling, False
        self._heartbeats.polled()
        try:
            await self._core.call_user(function, self._consumer(), list(partitions))
        except Exception as error:  # the user's own listener: the group goes on, and the poll raises it at its end
            log.exception("the rebalance listener failed when %d partition(s) were %s", len(partitions), _CALLS[method])
            error.add_note(f"raised by the rebalance listener's {method}; the group went on without it: poll again")
            self._error = self._error or error
        finally:
            self._heartbeats.is_polling = was_polling
            self._heartbeats.polled()
