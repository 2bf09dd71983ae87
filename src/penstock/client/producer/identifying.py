"""Where a producer without transactions gets its id: from any broker, when the first batch waits for one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from penstock.base.errors import KafkaError
from penstock.client.core.client import ClientCore
from penstock.client.errors import is_retriable
from penstock.client.producer.accumulator import Accumulator
from penstock.client.producer.idempotence import Idempotence
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

log = logging.getLogger(__name__)

_INT_MAX: Final = 2**31 - 1


class Identifying:
    """`on_refused` is told of an error that another attempt will not mend."""

    def __init__(
        self,
        core: ClientCore,
        accumulator: Accumulator,
        identity: Idempotence,
        on_refused: Callable[[KafkaError], None],
    ) -> None:
        self._core = core
        self._accumulator = accumulator
        self._identity = identity
        self._on_refused = on_refused
        self._task: asyncio.Task[None] | None = None

    def is_done(self) -> bool:
        """Whether batches can be numbered; asks for a producer id if not."""
        if self._identity.has_identity:
            return True
        if self._task is None and self._accumulator.incomplete:
            self._task = self._core.ports.tasks.spawn(self._identify(), name="InitProducerId")
        return False

    async def _identify(self) -> None:
        request = InitProducerIdRequest(transaction_timeout_ms=_INT_MAX)
        try:
            answer: InitProducerIdResponse = await self._core.ask_any(
                ApiKey.INIT_PRODUCER_ID, request, check=lambda response: int(response.error_code)
            )
            self._identity.assign(answer.producer_id, answer.producer_epoch)
        except KafkaError as error:
            if self._core.is_closed:
                return
            log.warning("no producer id: %s", error)
            if not is_retriable(error) and not isinstance(error, TimeoutError):
                self._on_refused(error)
        finally:
            self._task = None
            self._accumulator.wake()
