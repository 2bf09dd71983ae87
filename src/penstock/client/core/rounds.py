"""One round of questions: the same one to node after node, the least loaded first, until one answers.

When none of the known brokers can be reached, the round goes on with the servers of `bootstrap.servers` (KIP-899): the
cluster may have moved while nobody looked. The same happens when metadata could not be refreshed for too long, or when
a broker demands it (KIP-1102).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from penstock.base.errors import ErrorCode
from penstock.client.config import ClientConfig, common_keys
from penstock.client.core.nodes import Nodes
from penstock.client.core.waiting import Retry
from penstock.client.errors import NoBrokersReachable
from penstock.network.errors import NetworkError
from penstock.network.pool import ChannelPool
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.metadata import MetadataRequest, MetadataResponse

METADATA_VERSION_MIN: Final = 1
"""Version 0 names no controller and cannot be asked for all topics; who speaks no other is too old in many ways."""


class Rounds:
    """`way_to`: the connection for a node and an API; `on_rebootstrap` hears when the known brokers are given up."""

    def __init__(
        self,
        config: ClientConfig,
        nodes: Nodes,
        pool: ChannelPool,
        *,
        way_to: Callable[[int, int], int],
        on_rebootstrap: Callable[[], None],
    ) -> None:
        self._nodes = nodes
        self._pool = pool
        self._way_to = way_to
        self._on_rebootstrap = on_rebootstrap
        self._servers: tuple[str, ...] = config[common_keys.BOOTSTRAP_SERVERS]
        self._request_timeout_ms = config[common_keys.REQUEST_TIMEOUT_MS]
        self._may_rebootstrap = config[common_keys.METADATA_RECOVERY_STRATEGY].lower() == "rebootstrap"
        # Metadata is refreshed at this age by itself; only what comes on top is a failure to refresh.
        self._stale_after_ms = (
            config[common_keys.METADATA_MAX_AGE_MS] + config[common_keys.METADATA_RECOVERY_REBOOTSTRAP_TRIGGER_MS]
        )
        self._last_cause: NetworkError | None = None
        """Why the last question was not answered; None when it was."""
        self._asking: int | None = None
        """The node that a question waits for."""

    async def ask(self, api_key: int, message: object, attempt: Retry | None = None, **options: Any) -> Any:
        """The first answer. NoBrokersReachable names the last failure; what no other node can cure is raised."""
        asked: set[int] = set()
        cause: NetworkError | None = None
        while True:
            nodes = self._nodes.by_load(self._pool, without=asked)
            if not nodes:
                self._rebootstrap_or_raise(cause)
                continue
            asked.add(nodes[0])
            self._asking = self._way_to(nodes[0], api_key)
            try:
                answer = await self._pool.send(
                    self._asking, api_key, message, timeout_ms=self._limit_ms(attempt), **options
                )
            except NetworkError as error:
                self._last_cause = cause = error
                if not error.retriable:
                    raise
            else:
                self._last_cause = None
                return answer
            finally:
                self._asking = None
            if attempt is not None and attempt.remaining_ms <= 0:
                raise cause

    async def ask_metadata(self, request: MetadataRequest, age_ms: float) -> MetadataResponse:
        """`age_ms`: how long ago metadata came last."""
        if self._may_rebootstrap and age_ms > self._stale_after_ms:
            self._nodes.rebootstrap()
        answer: MetadataResponse = await self.ask(ApiKey.METADATA, request, at_least=METADATA_VERSION_MIN)
        if answer.error_code == ErrorCode.REBOOTSTRAP_REQUIRED and self._may_rebootstrap:
            self._nodes.rebootstrap()
            answer = await self.ask(ApiKey.METADATA, request, at_least=METADATA_VERSION_MIN)
        if not answer.error_code and answer.brokers:
            self._nodes.learned()
        return answer

    def why_waiting(self) -> str:
        """What holds up the question that is under way; no text when there is none."""
        return "" if self._asking is None else self._pool.channel(self._asking).why_waiting()

    def why_late(self) -> str:
        """For the error of a caller whose time is over: what went wrong last, or what is waited for; or no text."""
        return str(self._last_cause) if self._last_cause is not None else self.why_waiting()

    def _rebootstrap_or_raise(self, cause: NetworkError | None) -> None:
        if self._nodes.is_bootstrapping or not self._may_rebootstrap:
            # Every node may be in its pause after an earlier failure: that failure is the cause then.
            cause = cause or self._last_cause
            if cause is not None and not cause.retriable:
                raise cause.for_request(was_sent=False)
            raise self._unreachable(cause) from cause
        self._nodes.rebootstrap()
        self._on_rebootstrap()

    def _unreachable(self, cause: NetworkError | None) -> NoBrokersReachable:
        why = f": {cause}" if cause is not None else ""
        return NoBrokersReachable(
            f"no broker can be reached, starting from bootstrap.servers={','.join(self._servers)}{why}"
        )

    def _limit_ms(self, attempt: Retry | None) -> float:
        if attempt is None:
            return self._request_timeout_ms
        return max(1.0, min(self._request_timeout_ms, attempt.remaining_ms))
