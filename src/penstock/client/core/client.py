"""How a client asks brokers: one node, any node, the controller, a coordinator; with retries where they are safe.

`send` is the plain way: one request to one node, its failures in the future. The `ask_` calls choose the node and go on
to another one while the time lasts; use them for requests that may be carried out twice. Errors that no repetition can
cure are raised at once: wrong credentials, a broker that does not know the API, a refusal.

A client is made anywhere, and `start` binds it to the running loop; everything but `metadata.snapshot` belongs to that
loop from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from penstock.base.errors import ErrorCode, KafkaError
from penstock.client.config import ClientKind, common_keys
from penstock.client.config.addresses import parse_addresses
from penstock.client.core.calling import call_user
from penstock.client.core.connections import Connections
from penstock.client.core.coordinators import Coordinators
from penstock.client.core.metadata import Metadata
from penstock.client.core.nodes import Nodes, broker_id
from penstock.client.core.rounds import Rounds
from penstock.client.core.types import CoordinatorKind
from penstock.client.core.waiting import Retry
from penstock.client.errors import (
    ClientClosed,
    UnsupportedByBroker,
    error_for,
    is_retriable,
)
from penstock.network.errors import UnsupportedVersion
from penstock.network.in_flight import Decode
from penstock.network.versions import VERSION_MAX
from penstock.protocol.apis import APIS
from penstock.protocol.messages.metadata import MetadataRequest, MetadataResponse

Check = Callable[[Any], int]
"""The error code of a whole answer: a retriable one is asked again, another one raised."""
Codes = Callable[[Any], Iterable[int]]
"""All error codes of an answer, among which those are looked for that say "ask another node"."""

_COORDINATOR_MOVED = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})
_COORDINATOR_BUSY = frozenset({ErrorCode.COORDINATOR_LOAD_IN_PROGRESS})


class ClientCore(Connections):
    metadata: Metadata

    # Life.

    async def start(self) -> None:
        """Bind to the running loop. Again is no error."""
        self.bind()

    def bind(self) -> None:
        """The same for plain functions that are called on the loop."""
        if self._is_closed:
            raise ClientClosed(f"{self.client_id} was closed: make a new client")
        if self._pool is not None:
            return
        pool = self._connect(lambda node_id: nodes.address(node_id))
        self.metadata = Metadata(self.config, self.ports, self._ask_metadata)
        servers: tuple[str, ...] = self.config[common_keys.BOOTSTRAP_SERVERS]
        nodes = Nodes(parse_addresses(servers), lambda: self.metadata.snapshot, self.ports.rng)
        self._rounds = Rounds(
            self.config,
            nodes,
            pool,
            way_to=self._way_to,
            on_rebootstrap=lambda: self.metadata.request_update("no known broker can be reached"),
        )
        self.metadata.why_waiting = self._rounds.why_waiting
        own_connection = self.config.kind is ClientKind.CONSUMER
        self._coordinators = Coordinators(self.ask_any, nodes, own_connection=own_connection)
        self.metadata.start()
        self.metrics.gauge("metadata-age", lambda: self.metadata.age_ms / 1000)

    async def close(self) -> None:
        """Close every connection; calls that wait end with ClientClosed. Again is no error."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._pool is not None:
            await self.metadata.close()
            await self._disconnect()

    # Any node.

    async def ask_any(
        self,
        api_key: int,
        message: object,
        *,
        timeout_ms: float | None = None,
        at_least: int = 0,
        at_most: int = VERSION_MAX,
        check: Check | None = None,
        decode: Decode | None = None,
    ) -> Any:
        """Ask the least loaded node, then others, until one answers."""
        async for attempt in self.retry(timeout_ms=timeout_ms, what=_name(api_key)):
            try:
                answer = await self._rounds.ask(
                    api_key, message, attempt, at_least=at_least, at_most=at_most, decode=decode
                )
            except KafkaError as error:
                self._failed(attempt, error)
                continue
            if self._accepts(answer, check, attempt):
                return answer
        raise AssertionError("a retry ends by returning or raising")

    async def _ask_metadata(self, request: MetadataRequest) -> MetadataResponse:
        answer = await self._rounds.ask_metadata(request, self.metadata.age_ms)
        # When this answer has become the snapshot, connections to where a broker was are of no use.
        self.ports.tasks.call_soon(self._check_addresses)
        return answer

    def _check_addresses(self) -> None:
        if not self._is_closed:
            self.pool.check_addresses()

    # The controller.

    async def ask_controller(
        self,
        api_key: int,
        message: object,
        *,
        timeout_ms: float | None = None,
        at_least: int = 0,
        at_most: int = VERSION_MAX,
        check: Check | None = None,
        codes: Codes | None = None,
    ) -> Any:
        """Ask the controller; look again who that is when it says NOT_CONTROLLER (in `codes`, or by `check`)."""
        async for attempt in self.retry(timeout_ms=timeout_ms, what=_name(api_key)):
            try:
                node_id = await self._controller(attempt)
                answer = await self.send(
                    node_id, api_key, message, timeout_ms=self._limit(attempt), at_least=at_least, at_most=at_most
                )
            except KafkaError as error:
                self.metadata.request_update("the controller could not be asked")
                self._failed(attempt, error)
                continue
            found = [*(codes(answer) if codes else ()), *([check(answer)] if check else ())]
            if ErrorCode.NOT_CONTROLLER in found:
                attempt.failed(error_for(ErrorCode.NOT_CONTROLLER))
            elif self._accepts(answer, check, attempt):
                return answer
        raise AssertionError("a retry ends by returning or raising")

    async def _controller(self, attempt: Retry) -> int:
        snapshot = self.metadata.snapshot
        if attempt.attempts > 1 or snapshot.controller_id not in snapshot.nodes:
            snapshot = await self.metadata.update(attempt.remaining_ms)
        if snapshot.controller_id not in snapshot.nodes:
            raise error_for(ErrorCode.NOT_CONTROLLER, "the cluster has no controller at present")
        return snapshot.controller_id

    # Coordinators.

    async def coordinator(self, kind: CoordinatorKind, key: str, *, timeout_ms: float | None = None) -> int:
        """The node that coordinates a group or transactional id; remembered until `coordinator_lost`."""
        known = self._coordinators.known(kind, key)
        return known if known is not None else (await self.coordinators(kind, (key,), timeout_ms=timeout_ms))[key]

    async def coordinators(
        self, kind: CoordinatorKind, keys: Iterable[str], *, timeout_ms: float | None = None
    ) -> dict[str, int]:
        """The same for several keys, in one request where the broker can take them."""
        self.pool  # noqa: B018 - raises when the client is not usable
        return await self._coordinators.find(kind, keys, self.retry(timeout_ms=timeout_ms, what="FindCoordinator"))

    def coordinator_lost(self, kind: CoordinatorKind, key: str, node_id: int | None = None) -> None:
        """It said that it is not the one, or cannot be reached: look it up again next time."""
        self._coordinators.lost(kind, key, node_id)

    def known_coordinator(self, kind: CoordinatorKind, key: str) -> int | None:
        return self._coordinators.known(kind, key)

    async def ask_coordinator(
        self,
        kind: CoordinatorKind,
        key: str,
        api_key: int,
        message: object,
        *,
        timeout_ms: float | None = None,
        request_timeout_ms: float | None = None,
        at_least: int = 0,
        at_most: int = VERSION_MAX,
        codes: Codes,
    ) -> Any:
        """Ask the coordinator; find it again when it has moved, wait while it loads. Other codes are the caller's."""
        async for attempt in self.retry(timeout_ms=timeout_ms, what=_name(api_key)):
            node_id = await self.coordinator(kind, key, timeout_ms=attempt.remaining_ms)
            limit_ms = self._limit(attempt, request_timeout_ms)
            try:
                answer = await self.send(
                    node_id, api_key, message, timeout_ms=limit_ms, at_least=at_least, at_most=at_most
                )
            except KafkaError as error:
                self.coordinator_lost(kind, key, node_id)
                self._failed(attempt, error)
                continue
            found = {ErrorCode.of(code) for code in codes(answer)}
            if moved := found & _COORDINATOR_MOVED:
                self.coordinator_lost(kind, key, node_id)
                attempt.failed(error_for(min(moved)))
            elif busy := found & _COORDINATOR_BUSY:
                attempt.failed(error_for(min(busy)))
            else:
                return answer
        raise AssertionError("a retry ends by returning or raising")

    # Failures.

    def _failed(self, attempt: Retry, error: KafkaError) -> None:
        """Note a failure that another try may cure; raise one that it cannot."""
        if self._is_closed:
            raise ClientClosed(f"{self.client_id} was closed while the call waited") from error
        if isinstance(error, UnsupportedVersion):
            raise UnsupportedByBroker(str(error)) from error
        if not is_retriable(error):
            raise error
        attempt.failed(error)

    @staticmethod
    def _accepts(answer: Any, check: Check | None, attempt: Retry) -> bool:
        code = 0 if check is None else check(answer)
        if not code:
            return True
        error = error_for(code)
        if not error.retriable:
            raise error
        attempt.failed(error)
        return False

    def why_late(self) -> str:
        """What the last question to any node failed with or waits for; no text when all is well."""
        return self._rounds.why_late()

    # The user.

    async def call_user(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a user's function where he expects it: see `calling`."""
        return await call_user(function, *args)


def describe_client(core: ClientCore) -> str:
    """For the representation of a client: its id and where it began."""
    servers: tuple[str, ...] = core.config[common_keys.BOOTSTRAP_SERVERS]
    return f"{core.client_id} of {','.join(servers)}"


def _name(api_key: int) -> str:
    return APIS[api_key].name if api_key in APIS else f"API {api_key}"


__all__ = ["Check", "ClientCore", "Codes", "broker_id", "describe_client"]
