"""What happens to a record whose handler fails."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal

from penstock.client.consumer.parallel.scheduling import Work
from penstock.client.errors import ClientError
from penstock.records.record import ConsumerRecord

log = logging.getLogger(__name__)

OnFailure = Literal["stop", "skip"] | Callable[[ConsumerRecord, Exception], Any]


class HandlerFailed(ClientError):  # noqa: N818 - named for what happened
    """The handler failed for `record` as often as it may; the cause is the handler's own error."""

    def __init__(self, record: ConsumerRecord, attempts: int) -> None:
        super().__init__(
            f"the handler failed for {record.topic}-{record.partition} offset {record.offset} "
            f"({attempts} attempt{'s' if attempts > 1 else ''}); nothing at or behind this record was committed: "
            "repair the handler and start again, or give on_failure='skip' or a function that puts such records aside"
        )
        self.record = record


@dataclass(frozen=True, slots=True, kw_only=True)
class FailurePolicy:
    retries: int = 0
    """How often the handler is called again for a record, `retry_backoff_ms` apart, doubled each time."""
    retry_backoff_ms: float = 100.0
    retry_backoff_max_ms: float = 10_000.0
    on_failure: OnFailure = "stop"
    """After the last attempt: end the run; log and go on; or a function of record and error that deals with it (where
    the handler runs). When that function fails too, the run ends."""

    def may_retry(self, work: Work) -> bool:
        return work.attempt <= self.retries

    def pause_s(self, work: Work) -> float:
        return min(self.retry_backoff_ms * 2.0 ** (work.attempt - 1), self.retry_backoff_max_ms) / 1000

    def call(self, handler: Callable[[ConsumerRecord], Any], work: Work) -> None:
        """In a worker thread: the handler, and on its last failure what was given for that."""
        work.attempt += 1
        try:
            _check_done(handler(work.record))
        except Exception as error:  # the user's own handler: what to do with any failure is what the policy is for
            if not self._last_word(work):
                raise
            assert callable(self.on_failure)
            self.on_failure(work.record, error)

    async def call_async(self, handler: Callable[[ConsumerRecord], Awaitable[Any]], work: Work) -> None:
        work.attempt += 1
        try:
            await handler(work.record)
        except Exception as error:  # the user's own handler: what to do with any failure is what the policy is for
            if not self._last_word(work):
                raise
            assert callable(self.on_failure)
            answer = self.on_failure(work.record, error)
            if isinstance(answer, Awaitable):
                await answer

    def _last_word(self, work: Work) -> bool:
        return callable(self.on_failure) and not self.may_retry(work)

    def skips(self, work: Work, error: Exception) -> bool:
        if self.on_failure != "skip":
            return False
        record = work.record
        log.error(
            "skipped %s-%d offset %d: its handler failed %d times",
            record.topic, record.partition, record.offset, work.attempt, exc_info=error,
        )  # fmt: skip
        return True


def _check_done(answer: object) -> None:
    """A lambda around a coroutine function looks plain: what it gives would be dropped, and the record lost."""
    if inspect.iscoroutine(answer):
        answer.close()
        raise TypeError("the handler gave a coroutine to a thread, where nobody awaits it: give executor='tasks'")
