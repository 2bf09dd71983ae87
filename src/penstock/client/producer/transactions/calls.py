"""Asking a coordinator until it gives an answer that means something.

Such a question has no time-out of its own: whether it was carried out must become known before anything else may be
asked, so it is repeated until an answer comes, the client is closed or the task is cancelled. Only the caller's wait is
bounded. Repeating is safe: the coordinators recognise a question that they have answered before.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol

from penstock.base.errors import ErrorCode, KafkaError
from penstock.client.core.types import CoordinatorKind
from penstock.client.errors import ClientError, error_for, is_retriable
from penstock.client.producer.transactions.verdicts import Verdict, verdict_on
from penstock.network.versions import VERSION_MAX, VersionTable

_CONCURRENT_BACKOFF_MS: Final = 20
"""First pause while the markers of the last transaction are written, which takes a few milliseconds."""

_MOMENT_MS: Final = 1_000

_AGAIN: Final = frozenset({Verdict.RETRY, Verdict.REFIND})
_FINAL: Final = frozenset({Verdict.ABORTABLE, Verdict.NEW_EPOCH, Verdict.FATAL})


class Asking(Protocol):
    """What this module needs of `ClientCore`."""

    def send(self, node_id: int, api_key: int, message: Any, *, at_least: int, at_most: int) -> Any: ...

    async def coordinator(self, kind: CoordinatorKind, key: str) -> int: ...

    def coordinator_lost(self, kind: CoordinatorKind, key: str) -> None: ...

    def known_coordinator(self, kind: CoordinatorKind, key: str) -> int | None: ...

    async def versions(self, node_id: int, *, timeout_ms: float | None = None) -> VersionTable: ...


class CoordinatorCalls:
    def __init__(
        self, core: Asking, sleep_ms: Callable[[float], Any], *, backoff_ms: float, backoff_max_ms: float
    ) -> None:
        self._core = core
        self._sleep_ms = sleep_ms
        self._backoff_ms = backoff_ms
        self._backoff_max_ms = backoff_max_ms

    async def ask(
        self,
        kind: CoordinatorKind,
        key: str,
        api_key: int,
        message: Any,
        codes: Callable[[Any], Iterable[ErrorCode]],
        *,
        at_least: int = 0,
        at_most: int = VERSION_MAX,
    ) -> Any:
        """The first answer whose codes are not all of the kind that is retried; `ClientError` when none can come."""
        for attempt in itertools.count():
            concurrent = False
            try:
                node = await self._core.coordinator(kind, key)
                response = await self._core.send(node, api_key, message, at_least=at_least, at_most=at_most)
            except KafkaError as error:
                self._check_retriable(error)
                self._core.coordinator_lost(kind, key)
            else:
                found = set(codes(response))
                verdicts = {verdict_on(api_key, code) for code in found}
                if verdicts & _FINAL or not verdicts & _AGAIN:
                    return response
                if Verdict.REFIND in verdicts:
                    self._core.coordinator_lost(kind, key)
                concurrent = found <= {ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NONE}
            await self._sleep_ms(self._pause_ms(attempt, concurrent))
        raise AssertionError("unreachable")

    async def versions(self, kind: CoordinatorKind, key: str) -> VersionTable:
        """What the coordinator's broker says of itself."""
        for attempt in itertools.count():
            try:
                return await self._core.versions(await self._core.coordinator(kind, key))
            except KafkaError as error:
                self._check_retriable(error)
                self._core.coordinator_lost(kind, key)
            await self._sleep_ms(self._pause_ms(attempt, False))
        raise AssertionError("unreachable")

    async def versions_now(self, kind: CoordinatorKind, key: str) -> VersionTable | None:
        """The same from the present connection, or a new one if that takes a moment only; None when it does not."""
        node = self._core.known_coordinator(kind, key)
        if node is None:
            return None
        try:
            return await self._core.versions(node, timeout_ms=_MOMENT_MS)
        except KafkaError:
            return None

    def _pause_ms(self, attempt: int, concurrent: bool) -> float:
        first = min(_CONCURRENT_BACKOFF_MS, self._backoff_ms) if concurrent else self._backoff_ms
        return float(min(first * 2 ** min(attempt, 16), self._backoff_max_ms))

    def _check_retriable(self, error: KafkaError) -> None:
        if is_retriable(error):
            return
        if isinstance(error, ClientError):
            raise error
        raise error_for(error.code, error.message) from error
