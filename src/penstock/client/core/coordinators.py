"""Which broker coordinates a group or a transactional id: looked up once, remembered until it proves wrong.

Look-ups for several keys at the same moment go in one request where the broker can take them (FindCoordinator 4).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from penstock.base.errors import ErrorCode
from penstock.client.core.nodes import Nodes, coordinator_node_id
from penstock.client.core.types import CoordinatorKind
from penstock.client.core.waiting import Retry
from penstock.client.errors import UnsupportedByBroker, error_for
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

_BATCHED_FROM = 4


class AskAny(Protocol):
    async def __call__(self, api_key: int, message: Any, *, timeout_ms: float, at_least: int = ...) -> Any: ...


class Coordinators:
    def __init__(self, ask_any: AskAny, nodes: Nodes, *, own_connection: bool) -> None:
        """`own_connection`: reach coordinators of groups over connections that nothing else uses."""
        self._ask_any = ask_any
        self._nodes = nodes
        self._own_connection = own_connection
        self._known: dict[tuple[CoordinatorKind, str], int] = {}

    def known(self, kind: CoordinatorKind, key: str) -> int | None:
        return self._known.get((kind, key))

    def lost(self, kind: CoordinatorKind, key: str, node_id: int | None = None) -> None:
        """Look it up again next time. With `node_id`: only if that is still the one remembered."""
        if node_id is None or self._known.get((kind, key)) == node_id:
            self._known.pop((kind, key), None)

    async def find(self, kind: CoordinatorKind, keys: Iterable[str], retry: Retry) -> dict[str, int]:
        """Node ids (of the pool) by key; an error that asking again would not cure is raised."""
        wanted = list(dict.fromkeys(keys))
        async for attempt in retry:
            missing = [key for key in wanted if (kind, key) not in self._known]
            if not missing:
                break
            for answer in await self._look_up(kind, missing, attempt.remaining_ms):
                self._take(kind, answer, attempt)
            if all((kind, key) in self._known for key in wanted):
                break
        return {key: self._known[kind, key] for key in wanted}

    def _take(self, kind: CoordinatorKind, answer: Coordinator, attempt: Retry) -> None:
        code = ErrorCode.of(answer.error_code)
        if code is ErrorCode.NONE:
            self._nodes.told(answer.node_id, answer.host, answer.port)
            is_own = self._own_connection and kind is CoordinatorKind.GROUP
            self._known[kind, answer.key] = coordinator_node_id(answer.node_id) if is_own else answer.node_id
            return
        what = "group" if kind is CoordinatorKind.GROUP else "transactional id"
        error = error_for(answer.error_code, f"{what} {answer.key}: {answer.error_message or error_for(code)}")
        if not code.retriable:
            raise error
        attempt.failed(error)

    async def _look_up(self, kind: CoordinatorKind, keys: list[str], timeout_ms: float) -> list[Coordinator]:
        try:
            request = FindCoordinatorRequest(key_type=kind, coordinator_keys=keys)
            answer: FindCoordinatorResponse = await self._ask_any(
                ApiKey.FIND_COORDINATOR, request, timeout_ms=timeout_ms, at_least=_BATCHED_FROM
            )
        except UnsupportedByBroker:
            return [await self._look_up_one(kind, key, timeout_ms) for key in keys]
        return answer.coordinators

    async def _look_up_one(self, kind: CoordinatorKind, key: str, timeout_ms: float) -> Coordinator:
        request = FindCoordinatorRequest(key=key, key_type=kind)
        answer: FindCoordinatorResponse = await self._ask_any(
            ApiKey.FIND_COORDINATOR, request, timeout_ms=timeout_ms, at_least=0
        )
        return Coordinator(
            key=key,
            node_id=answer.node_id,
            host=answer.host,
            port=answer.port,
            error_code=answer.error_code,
            error_message=answer.error_message,
        )
