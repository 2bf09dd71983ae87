"""The topics that a member reads, seen through the metadata: a pattern's matches, and whether anything changed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from penstock.client.consumer.group.settings import GroupSettings
from penstock.client.consumer.subscription import Mode, SubscriptionState
from penstock.client.core.client import ClientCore
from penstock.client.core.types import ClusterSnapshot


class TopicWatch:
    def __init__(
        self,
        core: ClientCore,
        subscription: SubscriptionState,
        settings: GroupSettings,
        wait: Callable[[float], Awaitable[bool]],
        wake: Callable[[], None],
    ) -> None:
        """`wait` until something was heard, False at the deadline; `wake` says that there is something."""
        self.on_change: Callable[[], None] = lambda: None
        self._metadata = core.metadata
        self._subscription = subscription
        self._settings = settings
        self._wait = wait
        self._wake = wake
        self._seen: tuple[int, frozenset[str]] | None = None
        """Version of the metadata and topics that were compared last."""
        self._knows_all = False
        self._learning: asyncio.Task[ClusterSnapshot] | None = None

    def subscription_changed(self) -> None:
        self._seen = None
        self._knows_all = False
        self._metadata.want_all(self._subscription.mode is Mode.PATTERN)
        self._metadata.want(self._subscription.topics)

    async def look(self, deadline: float) -> bool:
        """Call `on_change` if metadata or topics are others than before; False when they are not known yet."""
        subscription, metadata = self._subscription, self._metadata
        if subscription.mode is Mode.PATTERN and not await self._learn_all(deadline):
            return False
        if (metadata.snapshot.version, subscription.topics) == self._seen:
            return True
        if subscription.mode is Mode.PATTERN:
            without = self._settings.leaves_out_internal
            topics = metadata.snapshot.topics.values()
            subscription.match_pattern(each.name for each in topics if not (without and each.is_internal))
        metadata.want(subscription.topics)
        self._seen = metadata.snapshot.version, subscription.topics
        self.on_change()
        return True

    async def _learn_all(self, deadline: float) -> bool:
        """All topics of the cluster, once; afterwards they are kept fresh."""
        while not self._knows_all:
            if self._learning is None:
                self._metadata.want_all(True)
                self._learning = asyncio.ensure_future(self._metadata.update())
                self._learning.add_done_callback(lambda _: self._wake())
            if not self._learning.done():
                if not await self._wait(deadline):
                    return False
                continue
            learning, self._learning = self._learning, None
            learning.result()
            self._knows_all = True
        return True

    def close(self) -> None:
        if self._learning is not None:
            self._learning.cancel()
            self._learning = None
