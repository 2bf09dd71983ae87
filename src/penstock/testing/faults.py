"""Faults as a test asks for them. Every method may be called from any thread, and returns when the fault is set."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Final, Protocol, TypeVar

from penstock.base.errors import ErrorCode, KafkaError
from penstock.server.broker import Broker
from penstock.testing.naming import api_of, check_count, check_seconds, check_times, code_of
from penstock.testing.rules import OWN_CLIENT_ID, Effect, Fault, Interceptor, cut, delay, drop, refuse
from penstock.testing.world import Disk

T = TypeVar("T")
log = logging.getLogger(__name__)

_NO_GROUP: Final = {
    ErrorCode.NOT_COORDINATOR: "it does not exist, for no consumer has joined any group yet",
    ErrorCode.GROUP_ID_NOT_FOUND: "it does not exist or has no members",
}


class Host(Protocol):
    """The broker's thread, as the faults see it."""

    @property
    def broker(self) -> Broker: ...

    def run(self, work: Callable[[], T]) -> T:
        """Call on the broker's loop, and give the result."""

    def run_async(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T: ...


class Faults:
    """What can go wrong with one broker. Faults meet requests in the order in which they were set.

    `api` is a name (`"Produce"`) or key (0) of Kafka's protocol; `times` how many requests meet the fault, None for all
    until it is undone; `after` how many requests pass before; `client_id` limits it to one client.
    """

    def __init__(self, host: Callable[[], Host], interceptor: Interceptor, disk: Disk) -> None:
        """`host` gives the thread of the moment, or raises when the broker does not run."""
        self._host = host
        self._interceptor = interceptor
        self._disk = disk

    # -- Answers ---------------------------------------------------------------------------------------------------

    def fail(
        self, api: str | int, code: str | int, *, times: int | None = 1, after: int = 0, client_id: str | None = None
    ) -> Fault:
        """The next requests are not done, and answered with an error code, by name or number."""
        known, error = api_of(api), code_of(code)
        return self._set(f"answered {error.name}", refuse(error), known, times, after, client_id)

    def delay(
        self,
        api: str | int,
        seconds: float,
        *,
        times: int | None = 1,
        after: int = 0,
        client_id: str | None = None,
    ) -> Fault:
        """The next requests are done at once, and answered `seconds` later."""
        known, wait = api_of(api), delay(check_seconds(seconds))
        return self._set(f"answered {seconds} s late", wait, known, times, after, client_id)

    def drop(
        self,
        api: str | int,
        *,
        handled: bool = False,
        times: int | None = 1,
        after: int = 0,
        client_id: str | None = None,
    ) -> Fault:
        """The next requests are never answered; with `handled` the broker still does what they ask for."""
        known, effect = api_of(api), drop(handled=handled)
        return self._set("never answered", effect, known, times, after, client_id)

    # -- Connections -----------------------------------------------------------------------------------------------

    def disconnect(self, *, client_id: str | None = None) -> int:
        """Close all connections now, or those of one client; gives how many there were."""
        return self._host().run(lambda: self._disconnect(client_id))

    def _disconnect(self, client_id: str | None) -> int:
        count = 0
        for session in self._host().broker.sessions:
            name = self._interceptor.client_id(session)
            if not session.closed and name != OWN_CLIENT_ID and client_id in (None, name):
                session.close("cut by a fault", level=logging.INFO)
                count += 1
        return count

    def disconnect_after(
        self,
        requests: int = 0,
        *,
        api: str | int | None = None,
        handled: bool = False,
        times: int | None = 1,
        client_id: str | None = None,
    ) -> Fault:
        """`requests` more requests pass; the next one has its connection closed instead of an answer.

        With `handled` the broker has done what it asked for: the answer is lost, not the request.
        """
        known = None if api is None else api_of(api)
        count = check_count("requests", requests)
        return self._set("its connection is cut", cut(handled=handled), known, times, count, client_id)

    # -- Groups ----------------------------------------------------------------------------------------------------

    def rebalance(self, group: str) -> None:
        """The members of a group have to join again, as if one had come or gone; they learn it with a heartbeat."""
        try:
            self._host().run_async(lambda: self._host().broker.groups.force_rebalance(group, "asked for by a fault"))
        except KafkaError as error:
            reason = _NO_GROUP.get(error.code, error.message.rstrip("."))
            raise ValueError(f"the group {group!r} cannot rebalance: {reason}; let a consumer join it first") from None

    # -- The disk --------------------------------------------------------------------------------------------------

    def fill_disk(self) -> None:
        """Appends fail with ENOSPC until `heal_disk`. Reading goes on."""
        self._host()
        self._disk.is_full = True

    def heal_disk(self) -> None:
        self._disk.is_full = False

    @contextmanager
    def full_disk(self) -> Iterator[None]:
        """The disk is full inside the `with` block."""
        self.fill_disk()
        try:
            yield
        finally:
            self.heal_disk()

    # -- All of them -----------------------------------------------------------------------------------------------

    @property
    def pending(self) -> list[Fault]:
        """Faults that will meet more requests."""
        return self._host().run(lambda: list(self._interceptor.faults))

    def cancel(self, fault: Fault) -> None:
        """This fault meets no more requests; what it holds back is still held back."""
        self._host().run(lambda: self._interceptor.cancel(fault))

    def wait_for(self, fault: Fault, *, hits: int = 1, timeout: float = 10.0) -> None:
        """Block until `hits` requests have met the fault; TimeoutError when they do not come."""
        deadline = time.monotonic() + timeout
        while fault.hits < hits:
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"{fault.hits} of {hits} requests met the fault ({fault.description}) within {timeout} s; "
                    "see whether the client sends such requests, and under that client id"
                )
            time.sleep(0.005)

    def clear(self) -> None:
        """Undo everything: late answers go now, connections whose answers never come are closed, the disk has room."""
        self.heal_disk()
        self._host().run(self._interceptor.clear)

    def _set(self, what: str, effect: Effect, api: Any, times: int | None, after: int, client_id: str | None) -> Fault:
        fault = Fault(
            description=what,
            api=api,
            client_id=client_id,
            skip=check_count("after", after),
            remaining=check_times(times),
            effect=effect,
        )
        self._host().run(lambda: self._interceptor.faults.append(fault))
        return fault
