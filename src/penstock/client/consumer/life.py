"""How a consumer begins and ends, and what its calls have in common."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import warnings
import weakref
from asyncio import get_running_loop
from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING

from penstock.base.types import TopicPartition
from penstock.client.config import ClientConfig, ClientKind, consumer_keys
from penstock.client.config.resolving import Resolving
from penstock.client.consumer.arguments import Partitions, as_partitions
from penstock.client.consumer.checking import check_objects
from penstock.client.consumer.closing import in_turn
from penstock.client.consumer.deserializing import Deserializing
from penstock.client.consumer.in_hand import InHand
from penstock.client.consumer.interceptors import Interceptors
from penstock.client.consumer.parts import ConsumerParts
from penstock.client.consumer.polling import Poller
from penstock.client.consumer.positions import parse_reset_policy
from penstock.client.consumer.subscription import Mode, SubscriptionState
from penstock.client.consumer.window import IterationWindow
from penstock.client.core.bound_loop import check_loop
from penstock.client.core.client import ClientCore, describe_client
from penstock.client.errors import ClientClosed, InvalidState

if TYPE_CHECKING:
    from typing import Self, Unpack

    from penstock.client.config.options import ConsumerOptions

log = logging.getLogger(__name__)


class ConsumerLife:
    """Its parts are made on the running loop, by the first call that needs them."""

    def __init__(self, config: Mapping[str, object] | None = None, /, **options: Unpack[ConsumerOptions]) -> None:
        resolving = Resolving()
        self.config = check_objects(ClientConfig(ClientKind.CONSUMER, config, options), resolving)
        self._deserializing = Deserializing(
            self.config[consumer_keys.KEY_DESERIALIZER], self.config[consumer_keys.VALUE_DESERIALIZER], resolving
        )
        resolving.check()
        self._core = ClientCore(self.config)
        self._subscription = SubscriptionState(parse_reset_policy(self.config[consumer_keys.AUTO_OFFSET_RESET]))
        interceptors: tuple[object, ...] = self.config[consumer_keys.INTERCEPTOR_CLASSES]
        self._interceptors = Interceptors(interceptors, {"client.id": self._core.client_id, **(config or {})})
        self._window = IterationWindow()
        self._in_hand = InHand(self._window)
        self._subscription.unread = self._window.unread
        self._face: Callable[[], object] = weakref.ref(self)
        """What listeners get as the consumer: the blocking face puts a reference to itself here."""
        self._parts: ConsumerParts | None = None
        self._poller: Poller | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pid = os.getpid()
        self._has_face = False
        """A blocking face stands in front and says by itself what became of it."""
        self._max_poll_records = self.config[consumer_keys.MAX_POLL_RECORDS]
        self._convert = self._deserializing.convert
        self._is_polling = False
        self._is_closing = False
        self._is_closed = False
        self._was_woken_early = False

    # Life.

    @property
    def client_id(self) -> str:
        """The name under which brokers know this client."""
        return self._core.client_id

    async def start(self) -> None:
        """Bind to the running loop. Every coroutine here does it by itself; again is no error."""
        self._check_open()
        self._bind()

    def _bind(self) -> ConsumerParts:
        """Make the parts, on the running loop, unless they are there."""
        if self._parts is None:
            self._core.bind()
            self._loop = asyncio.get_running_loop()
            self._parts = ConsumerParts(self._core, self._subscription, self._interceptors, self._face)
            self._poller = Poller(self._parts)
            if self._was_woken_early:
                self._poller.wake_up()
            self._topics_changed()
        return self._parts

    async def close(self, timeout_ms: float = 30_000, *, leave_group: bool = True) -> None:
        """Commit (with `enable.auto.commit`), leave the group, close connections. Again is no error.

        `leave_group=False` keeps the member's place until its session times out, for a quick restart. A `with` block
        that ends by an exception closes the consumer, too, but does not commit the records that it has in hand: all of
        the last poll, or the current one of a loop. They are read again.
        """
        if self._is_closing:
            return
        self._check_loop()
        # Until the group was told, listeners may still commit.
        self._is_closing = True
        try:
            await self._close_parts(timeout_ms, leave_group)
        finally:
            self._is_closed = True
            await self._core.close()
            self._interceptors.close()
            self._deserializing.close()

    async def _close_parts(self, timeout_ms: float, leave_group: bool) -> None:
        parts = self._parts
        if parts is None or self._poller is None:
            return
        await self._poller.close()
        deadline = self._core.ports.clock.monotonic() + timeout_ms / 1000
        commits, membership = parts.commits, parts.membership
        steps: list[Callable[[], Awaitable[object]]] = []
        if commits is not None:
            steps.append(lambda: commits.close(deadline))
        if membership is not None:
            steps.append(lambda: membership.close(deadline, leave_group=leave_group))
        try:
            await in_turn(*steps)
        finally:
            await parts.fetcher.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {describe_client(self._core)}, {'closed' if self._core.is_closed else 'open'}>"

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is not None:
            self._hold_back()
        await self.close()

    def _hold_back(self) -> None:
        """An exception ends the user's work: commit from now on only what he is done with."""
        self._subscription.unread = self._in_hand.unhandled

    def __del__(self) -> None:
        # Made but never started, it holds nothing; in a forked child it is its parent's business.
        if sys.is_finalizing() or getattr(self, "_loop", None) is None or self._is_closed or self._pid != os.getpid():
            return
        if self._has_face:
            return
        warnings.warn(f"{self!r} was not closed: use `async with`, or await close()", ResourceWarning, stacklevel=2)
        self._tell_dropped()
        loop, core = self._loop, self._core
        if loop is not None and not loop.is_closed():
            # Its heartbeats must not keep partitions for a consumer that nobody has any more.
            loop.call_soon_threadsafe(lambda: loop.create_task(core.close()))

    def _tell_dropped(self) -> None:
        """Nobody has the consumer any longer, and it was not closed: its group must wait for it."""
        if self._subscription.uses_group and not self._is_closed:
            log.error(
                "%s was dropped without close(): group %s keeps its partitions until its session is over, and what it "
                "read since the last commit is read again",
                describe_client(self._core),
                self.config[consumer_keys.GROUP_ID],
            )

    # For the calls.

    def _check_open(self) -> None:
        if self._is_closed:
            raise ClientClosed(f"{self._core.client_id} was closed: make a new consumer")
        self._check_loop()

    def _check_loop(self) -> None:
        if self._loop is None:
            return
        what = f"the consumer {self._core.client_id}"
        try:
            check_loop(self._loop, what)
        except RuntimeError:
            raise InvalidState(
                f"{what} was called outside of its event loop: call it in the loop's own thread"
            ) from None

    async def _started(self) -> ConsumerParts:
        if self._parts is None or self._is_closed or get_running_loop() is not self._loop:
            await self.start()
        assert self._parts is not None
        return self._parts

    async def _ready(self) -> Poller:
        if self._poller is None or self._is_closed or get_running_loop() is not self._loop:
            await self.start()
        assert self._poller is not None
        return self._poller

    def _timeout(self, timeout_ms: float | None) -> float:
        return self.config[consumer_keys.DEFAULT_API_TIMEOUT_MS] if timeout_ms is None else timeout_ms

    def _changed(self) -> None:
        if self._parts is not None:
            self._parts.positions_changed()

    def _topics_changed(self) -> None:
        """Have metadata of what is read now."""
        if self._parts is None:
            return
        metadata = self._parts.core.metadata
        metadata.want_all(self._subscription.mode is Mode.PATTERN)
        if self._subscription.mode is not Mode.PATTERN:
            metadata.want_only(self._subscription.topics)
        self._parts.warn_of_missing()
        self._changed()

    def _forget(self, topics: Iterable[str]) -> None:
        """Topics that were only asked about need not be kept fresh, least of all those that do not exist."""
        if not self._subscription.uses_group:
            self._core.metadata.forget(each for each in topics if each not in self._subscription.topics)

    def _moved(self, partitions: list[TopicPartition]) -> None:
        """Positions changed: what an iterator has of these partitions is not for the user any more."""
        self._window.drop(partitions)
        self._changed()

    def _rewind(self, partitions: Iterable[TopicPartition] | None = None) -> None:
        """What an iterator has and did not give is fetched again, when it is wanted again."""
        chosen = None if partitions is None else set(partitions)
        unread = {each: at for each, at in self._window.unread().items() if chosen is None or each in chosen}
        for partition, offset in unread.items():
            if partition in self._subscription:
                self._subscription.seek(partition, offset)
        self._window.drop(list(unread))

    def _assigned(self, partitions: Partitions) -> list[TopicPartition]:
        """The partitions, each of which must be assigned, before anything is done to one."""
        self._check_loop()
        chosen = as_partitions(partitions)
        for partition in chosen:
            self._subscription.state(partition)
        return chosen
