"""Faults on the way between a session and the dispatcher.

The seam is the function that a session calls with each frame: `Broker` lets whoever composes it wrap that function once
(`wrap_dispatch`). Had the dispatcher a hook to ask instead, every broker in production would look at it with every
request; wrapped, only a broker in a test pays, and that one a look-up while no fault is set.

Everything here runs on the broker's loop. A held answer keeps its place, so later answers of the connection wait
behind it, as they do behind a request that takes long in Kafka.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Final
from weakref import WeakKeyDictionary

from penstock.base.errors import ErrorCode
from penstock.protocol.apis import APIS, ApiKey
from penstock.protocol.errors import DecodeError
from penstock.protocol.requests import RequestHeader, decode_request, read_request_header
from penstock.server.answers import Answer, Ready, release
from penstock.server.broker import Dispatch
from penstock.server.session import CloseConnection, Session
from penstock.testing.refusals import refusal, with_topic_errors

OWN_CLIENT_ID: Final = "penstock-testing"
"""The fixtures' own requests, which no fault touches."""

log = logging.getLogger(__name__)

Effect = Callable[["Interceptor", Session, memoryview, RequestHeader], Answer]


@dataclass(slots=True, kw_only=True, eq=False)
class Fault:
    """One fault that was asked for. `hits` says how many requests it has met so far, `remaining` how many it will."""

    description: str
    api: ApiKey | None
    client_id: str | None
    skip: int
    remaining: int | None
    effect: Effect = field(repr=False)
    hits: int = 0

    def matches(self, header: RequestHeader) -> bool:
        return (self.api is None or self.api == header.api_key) and self.client_id in (None, header.client_id)


class Interceptor:
    """All requests of a broker pass here; `faults` are tried in the order in which they were set."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self._inner: Dispatch | None = None
        self._client_ids: WeakKeyDictionary[Session, str | None] = WeakKeyDictionary()
        self._held: dict[asyncio.Future[None], Session] = {}
        self._late: dict[asyncio.Task[Ready | None], asyncio.Event] = {}

    def wrap(self, dispatch: Dispatch) -> Dispatch:
        self._inner = dispatch
        return self.dispatch

    def dispatch(self, session: Session, frame: memoryview) -> Answer:
        if not self.faults and session in self._client_ids:
            return self.inner(session, frame)
        try:
            header = read_request_header(frame)
        except DecodeError:
            return self.inner(session, frame)
        self._client_ids[session] = header.client_id
        fault = self._next_fault(header)
        if fault is None:
            return self.inner(session, frame)
        log.info(
            "fault: %s",
            fault.description,
            extra={"api": APIS[header.api_key].name, "client_id": header.client_id, "version": header.api_version},
        )
        return fault.effect(self, session, frame, header)

    def inner(self, session: Session, frame: memoryview) -> Answer:
        assert self._inner is not None
        return self._inner(session, frame)

    def _next_fault(self, header: RequestHeader) -> Fault | None:
        if header.client_id == OWN_CLIENT_ID or header.api_key not in APIS:
            return None
        for fault in self.faults:
            if not fault.matches(header):
                continue
            if fault.skip:
                fault.skip -= 1
                continue
            fault.hits += 1
            if fault.remaining is not None:
                fault.remaining -= 1
                if not fault.remaining:
                    self.faults.remove(fault)
            return fault
        return None

    def client_id(self, session: Session) -> str | None:
        return self._client_ids.get(session)

    def hold(self, session: Session) -> Awaitable[None]:
        """An answer that never comes, until the faults are undone."""
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._held[place] = session
        return place

    def spawn(self, work: Callable[[asyncio.Event], Coroutine[Any, Any, Ready | None]]) -> Awaitable[Ready | None]:
        """A task that ends its waiting when the event is set."""
        undone = asyncio.Event()
        task = asyncio.get_running_loop().create_task(work(undone), name="fault")
        self._late[task] = undone
        task.add_done_callback(lambda done: self._late.pop(done, None))
        return task

    def cancel(self, fault: Fault) -> None:
        if fault in self.faults:
            self.faults.remove(fault)

    def clear(self) -> None:
        """Set no more faults, let late answers go now, and close the connections that wait for what never comes."""
        self.faults.clear()
        for undone in list(self._late.values()):
            undone.set()
        held, self._held = self._held, {}
        for place, session in held.items():
            session.close("the fault that held its answers is undone", level=logging.INFO)
            if not place.done():
                place.set_result(None)


# -- Effects -----------------------------------------------------------------------------------------------------------


def refuse(code: ErrorCode) -> Effect:
    def effect(interceptor: Interceptor, session: Session, frame: memoryview, header: RequestHeader) -> Answer:
        key = ApiKey(header.api_key)
        if key is ApiKey.METADATA:
            answer = interceptor.inner(session, frame)
            return interceptor.spawn(lambda _: _with_topic_errors(answer, header.api_version, code))
        try:
            request = decode_request(key, header.api_version, frame, header.body_position)
        except DecodeError:
            # The dispatcher says it better.
            return interceptor.inner(session, frame)
        if key is ApiKey.PRODUCE and request.acks == 0:
            raise CloseConnection(f"a produce request with acks=0 failed ({code.name}, by a fault)")
        return refusal(key, header.api_version, header.correlation_id, request, code)

    return effect


async def _with_topic_errors(answer: Answer, version: int, code: ErrorCode) -> Ready | None:
    ready = await _ready(answer)
    return with_topic_errors(version, ready, code) if isinstance(ready, bytes) else ready


def delay(seconds: float) -> Effect:
    """The broker does what was asked at once, and says so late."""

    def effect(interceptor: Interceptor, session: Session, frame: memoryview, header: RequestHeader) -> Answer:
        answer = interceptor.inner(session, frame)

        async def wait(undone: asyncio.Event) -> Ready | None:
            try:
                await asyncio.wait_for(undone.wait(), seconds)
            except TimeoutError:
                pass
            return await _ready(answer)

        return interceptor.spawn(wait)

    return effect


def drop(*, handled: bool) -> Effect:
    def effect(interceptor: Interceptor, session: Session, frame: memoryview, header: RequestHeader) -> Answer:
        if handled:
            _discard(interceptor.inner(session, frame))
        return interceptor.hold(session)

    return effect


def cut(*, handled: bool) -> Effect:
    def effect(interceptor: Interceptor, session: Session, frame: memoryview, header: RequestHeader) -> Answer:
        if handled:
            _discard(interceptor.inner(session, frame))
        raise CloseConnection("cut by a fault")

    return effect


async def _ready(answer: Answer) -> Ready | None:
    if answer is None or isinstance(answer, bytes | list):
        return answer
    return await answer


def _discard(answer: Answer) -> None:
    """Nobody will get this answer; what it holds is given back."""
    if answer is None or isinstance(answer, bytes):
        return
    if isinstance(answer, list):
        release(answer)
        return

    def release_later(done: asyncio.Future[Ready | None]) -> None:
        if not done.cancelled() and done.exception() is None and (ready := done.result()) is not None:
            release(ready)

    asyncio.ensure_future(answer).add_done_callback(release_later)
