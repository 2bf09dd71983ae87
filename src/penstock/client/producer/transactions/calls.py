"""Asking a coordinator until it gives an answer that means something.

Such a question has no time-out of its own: whether it was carried out must become known before anything else may be
asked, so it is repeated until an answer comes, the client is closed or the task is cancelled. Only the caller's wait is
bounded. Repeating is safe: the coordinators recognise a question that they have answered before.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from penstock.base.errors import ErrorCode, KafkaError
from penstock.client.core.types import CoordinatorKind
from penstock.client.errors import ClientError, error_for, is_retriable
from penstock.client.producer.transactions.verdicts import Verdict, verdict_on
from penstock.network.versions import VERSION_MAX, VersionTable
from penstock.protocol.apis import ApiKey

_CONCURRENT_BACKOFF_MS: Final = 20
"""First pause while the markers of the last transaction are written, which takes a few milliseconds."""

_MOMENT_MS: Final = 1_000
_TOLD_MAX: Final = 3

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
        self._causes: dict[int, str] = {}
        """Of questions that are being repeated: what the last try failed with."""

    async def ask(
        self,
        kind: CoordinatorKind,
        key: str,
        api_key: int,
        message: Any,
        codes: Callable[[Any], Mapping[Any, ErrorCode]],
        *,
        at_least: int = 0,
        at_most: int = VERSION_MAX,
        check_wanted: Callable[[], None] = lambda: None,
    ) -> Any:
        """The first answer whose codes are not all of the kind that is retried; `ClientError` when none can come.

        `codes` says what each part of an answer is about. `check_wanted` raises when nobody needs the answer any more;
        it is called between tries only, so that no request is left under way.
        """
        try:
            return await self._ask(kind, key, api_key, message, codes, at_least, at_most, check_wanted)
        finally:
            self._causes.pop(api_key, None)

    def why_late(self) -> str:
        """What the last tries of the questions that are being repeated failed with; no text when there are none."""
        return "; ".join(self._causes.values())

    async def _ask(
        self,
        kind: CoordinatorKind,
        key: str,
        api_key: int,
        message: Any,
        codes: Callable[[Any], Mapping[Any, ErrorCode]],
        at_least: int,
        at_most: int,
        check_wanted: Callable[[], None],
    ) -> Any:
        for attempt in itertools.count():
            concurrent = False
            try:
                node = await self._core.coordinator(kind, key)
                response = await self._core.send(node, api_key, message, at_least=at_least, at_most=at_most)
            except KafkaError as error:
                self._check_retriable(error)
                self._causes[api_key] = f"{ApiKey(api_key).name}: {error}"
                self._core.coordinator_lost(kind, key)
            else:
                answers = codes(response)
                found = set(answers.values())
                verdicts = {verdict_on(api_key, code) for code in found}
                if verdicts & _FINAL or not verdicts & _AGAIN:
                    return response
                if Verdict.REFIND in verdicts:
                    self._core.coordinator_lost(kind, key)
                concurrent = found <= {ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NONE}
                self._causes[api_key] = f"{ApiKey(api_key).name}: {_told(answers)}"
            check_wanted()
            await self._sleep_ms(self._pause_ms(attempt, concurrent))
            check_wanted()
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


def _told(answers: Mapping[Any, ErrorCode]) -> str:
    """The errors in an answer, each with what it is about; the first few will do."""
    failed = [f"{about} {code.name}" for about, code in answers.items() if code is not ErrorCode.NONE]
    return ", ".join(failed[:_TOLD_MAX]) + (" ..." if len(failed) > _TOLD_MAX else "")
