"""The driver of a producer's transactions: what the user calls, and what the sender asks.

Each of the user's calls runs as a task of its own which goes on when the caller's time is over: a commit that timed out
may have been carried out, so the only thing to do is to call it again and learn how it ended. Until then every other
call is refused. The producer's sender asks `may_drain` before it takes batches and calls `prepare` in each round.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, NamedTuple, Protocol

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.types import TopicPartition
from penstock.client.config import common_keys, producer_keys
from penstock.client.core.types import ConsumerGroupMetadata, OffsetAndMetadata
from penstock.client.core.waiting import pause
from penstock.client.errors import (
    ClientError,
    InvalidState,
    KafkaTimeout,
    TransactionAborted,
    TransactionError,
    error_for,
)
from penstock.client.producer.transactions.calls import CoordinatorCalls
from penstock.client.producer.transactions.dialogue import CoordinatorDialogue, ProducerIdentity
from penstock.client.producer.transactions.machine import TransactionMachine
from penstock.client.producer.transactions.offsets import Offsets, group_of, plain_offsets
from penstock.client.producer.transactions.states import TransactionState
from penstock.client.producer.transactions.verdicts import Verdict, verdict_on_batch
from penstock.network.versions import VERSION_MAX

log = logging.getLogger(__name__)

_S = TransactionState
_V1_PRODUCE: Final = 11


class ProducerHooks(Protocol):
    """What a transaction needs done; in the event loop where nothing else is said."""

    async def flush(self) -> None:
        """Returns when every batch appended so far is complete, whether well or not."""

    def abort_unsent(self, error: KafkaError) -> None:
        """Fail every batch that is not under way."""

    def wake_sender(self) -> None:
        """Something may be drained now. Any thread."""


class _Operation(NamedTuple):
    name: str
    task: asyncio.Task[ClientError | None]


class TransactionManager:
    """One per transactional producer. Methods without a note belong to the event loop."""

    is_transactional: Final = True

    def __init__(
        self,
        core: Any,
        *,
        transactional_id: str,
        identity: ProducerIdentity,
        hooks: ProducerHooks,
        transaction_timeout_ms: int | None = None,
    ) -> None:
        config = core.config
        self.transactional_id = transactional_id
        self.machine = TransactionMachine(transactional_id)
        self._core = core
        self._hooks = hooks
        self._max_block_ms = config[producer_keys.MAX_BLOCK_MS]
        calls = CoordinatorCalls(
            core,
            lambda pause_ms: pause(core.ports, pause_ms / 1000),
            backoff_ms=config[common_keys.RETRY_BACKOFF_MS],
            backoff_max_ms=config[common_keys.RETRY_BACKOFF_MAX_MS],
        )
        timeout_ms = transaction_timeout_ms or config[producer_keys.TRANSACTION_TIMEOUT_MS]
        self._dialogue = CoordinatorDialogue(
            self.machine, identity, calls, timeout_ms=timeout_ms, on_failure=self._fail
        )
        self._pending: _Operation | None = None
        self._adding: asyncio.Task[ClientError | None] | None = None
        self._offsets: set[asyncio.Task[ClientError | None]] = set()
        self._offsets_lock = asyncio.Lock()

    # For the threads that send.

    def check_can_append(self) -> None:
        """Any thread: raises unless a record may join the transaction now."""
        self.machine.check_can_append()

    def partition_appended(self, partition: TopicPartition) -> None:
        """Any thread: a record for this partition is in the accumulator."""
        if self.machine.partition_appended(partition):
            # The sender may have seen the batch a moment before, when it did not belong to the transaction.
            self._hooks.wake_sender()

    # For the sender.

    @property
    def transaction_version(self) -> int:
        return self.machine.version

    @property
    def version_max(self) -> int:
        """The highest version of the protocol that may be chosen; 2 unless it was lowered before `init`."""
        return self._dialogue.version_max

    @version_max.setter
    def version_max(self, version: int) -> None:
        self._dialogue.version_max = version

    @property
    def produce_version_max(self) -> int:
        return VERSION_MAX if self.machine.version >= 2 else _V1_PRODUCE

    @property
    def is_aborting(self) -> bool:
        """Whether batches that are not under way will never be sent: fail them with `abort_error()`."""
        return self.machine.is_dropping

    def abort_error(self) -> ClientError:
        error = self.machine.error
        if error is None:
            return TransactionAborted(f"the transaction of {self.transactional_id!r} was aborted before this was sent")
        return error_for(error.code, error.message) if error.fatal else TransactionAborted(error.message)

    def may_drain(self, partition: TopicPartition) -> bool:
        return self.machine.may_drain(partition)

    def prepare(self) -> None:
        """Announce new partitions (V1), if there are any; the sender is woken when they may be drained."""
        partitions = self.machine.take_new_partitions()
        if partitions:
            self._adding = self._spawn(self._add_partitions(partitions), "announcing partitions")

    def batch_failed(self, partition: TopicPartition, error: KafkaError, *, sequenced: bool = True) -> None:
        """A batch is given up. `sequenced`: it had got sequence numbers, which nobody will ever use again."""
        fatal = verdict_on_batch(error.code) is Verdict.FATAL
        self._fail(_as_transaction_error(error, fatal, f"a batch for {partition} was lost"), fatal, sequenced)

    # For the user, through the producer.

    async def init(self, timeout_ms: float | None = None) -> None:
        """Take over the transactional id: older producers are fenced, what they left open is ended."""
        await self._run("init_transactions", lambda: self._start_init(), timeout_ms)

    async def begin(self) -> None:
        self._check_nothing_pending("begin_transaction")
        self.machine.check("begin_transaction", _S.READY)
        await self._dialogue.begin()
        self.machine.begin()

    async def commit(self, timeout_ms: float | None = None) -> None:
        """Flush, then commit. After `KafkaTimeout` call it again: the outcome is not known before."""
        await self._run("commit_transaction", lambda: self._start_commit(), timeout_ms)

    async def abort(self, timeout_ms: float | None = None) -> None:
        """Drop what was not sent, then abort. After `KafkaTimeout` call it again."""
        await self._run("abort_transaction", lambda: self._start_abort(), timeout_ms)

    async def send_offsets(
        self, offsets: Offsets, group: ConsumerGroupMetadata | str, timeout_ms: float | None = None
    ) -> None:
        """Make consumed offsets part of the transaction: they are committed if it is."""
        plain, metadata = plain_offsets(offsets), group_of(group)
        self._check_nothing_pending("send_offsets")
        self.machine.check("send_offsets", _S.IN_TRANSACTION)
        if not plain:
            return
        task = self._spawn(self._send_offsets(plain, metadata), "sending offsets")
        self._offsets.add(task)
        task.add_done_callback(self._offsets.discard)
        await self._wait(task, "send_offsets", timeout_ms)

    async def close(self, timeout_ms: float | None = None) -> None:
        """Ends an open transaction, as far as there is time; the coordinator aborts it later otherwise."""
        try:
            # An initialization that has not ended leaves nothing behind.
            if self._pending is not None and self.machine.state is not _S.INITIALIZING:
                await self._wait(self._pending.task, self._pending.name, timeout_ms)
            if self.machine.state in {_S.IN_TRANSACTION, _S.ABORTABLE_ERROR}:
                await self.abort(timeout_ms)
        except KafkaError as error:
            log.warning("closing the producer of transactional id %r: %s", self.transactional_id, error.message)
        tasks = [*self._offsets, *([self._adding] if self._adding else ())]
        tasks += [self._pending.task] if self._pending else []
        for task in tasks:
            task.cancel()

    # Operations: the first part runs at once, so that a refused call changes nothing; the rest as a task.

    def _start_init(self) -> Coroutine[Any, Any, None]:
        self.machine.check("init_transactions", _S.UNINITIALIZED)
        self.machine.move(_S.INITIALIZING)
        return self._dialogue.initialize()

    def _start_commit(self) -> Coroutine[Any, Any, None]:
        self.machine.check("commit_transaction", _S.IN_TRANSACTION)
        self.machine.move(_S.COMMITTING)
        return self._commit()

    def _start_abort(self) -> Coroutine[Any, Any, None]:
        self.machine.check("abort_transaction", _S.IN_TRANSACTION, _S.ABORTABLE_ERROR)
        self.machine.move(_S.ABORTING)
        return self._abort()

    async def _commit(self) -> None:
        await self._settle()
        self.machine.check_no_error()
        await self._dialogue.end(committed=True)
        self.machine.finish()

    async def _abort(self) -> None:
        lost = self.machine.error is not None and self.machine.error.code is ErrorCode.INVALID_PRODUCER_ID_MAPPING
        self._hooks.abort_unsent(self.abort_error())
        await self._settle()
        self.machine.check_no_error()
        if not lost:
            # Without this the coordinator would take the request for an epoch as a takeover, and fence us.
            await self._dialogue.end(committed=False)
        if lost or self.machine.needs_epoch:
            self.machine.move(_S.INITIALIZING)
            await self._dialogue.initialize()
        else:
            self.machine.finish()

    async def _settle(self) -> None:
        """Nothing of this transaction is under way any more."""
        self._hooks.wake_sender()
        await self._hooks.flush()
        under_way = [*self._offsets, *([self._adding] if self._adding else ())]
        if under_way:
            await asyncio.wait(under_way)

    async def _add_partitions(self, partitions: frozenset[TopicPartition]) -> None:
        try:
            await self._dialogue.add_partitions(partitions)
        finally:
            self._hooks.wake_sender()

    async def _send_offsets(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: ConsumerGroupMetadata
    ) -> None:
        async with self._offsets_lock:
            self.machine.check_no_error()
            if self.machine.is_dropping:
                raise self.abort_error()
            await self._dialogue.send_offsets(offsets, group)

    # Errors, and calls that outlive their caller.

    def _fail(self, error: ClientError, fatal: bool, new_epoch: bool) -> None:
        self.machine.fail(error, fatal=fatal, new_epoch=new_epoch)
        if self.machine.is_dropping:
            # Not at once: the sender may be in the middle of its own list of batches.
            self._core.ports.tasks.call_soon(self._drop_unsent)

    def _drop_unsent(self) -> None:
        if self.machine.is_dropping:
            self._hooks.abort_unsent(self.abort_error())

    def _check_nothing_pending(self, operation: str) -> None:
        if self._pending is not None:
            raise InvalidState(
                f"{operation} is not possible: the last {self._pending.name}() of {self.transactional_id!r} "
                f"has not ended; call {self._pending.name}() again to learn how it ends"
            )

    async def _run(self, name: str, start: Callable[[], Coroutine[Any, Any, None]], timeout_ms: float | None) -> None:
        pending = self._pending
        if pending is None:
            pending = self._pending = _Operation(name, self._spawn(start(), name))
        elif pending.name != name:
            self._check_nothing_pending(name)
        await self._wait(pending.task, name, timeout_ms)

    async def _wait(self, task: asyncio.Task[ClientError | None], name: str, timeout_ms: float | None) -> None:
        timeout_ms = self._max_block_ms if timeout_ms is None else timeout_ms
        done, _ = await asyncio.wait({task}, timeout=timeout_ms / 1000)
        if not done:
            why = self._dialogue.why_late() or self._core.why_late()
            raise KafkaTimeout(
                f"{name}() of {self.transactional_id!r} had no end after {timeout_ms:.0f} ms; it goes on: "
                f"{'commit waits for it, abort gives it up' if name == 'send_offsets' else f'call {name}() again'}"
                f"{f' (the last cause: {why})' if why else ''}"
            )
        if self._pending is not None and self._pending.task is task:
            self._pending = None
        error = task.result()
        if error is not None:
            raise error

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[ClientError | None]:
        async def outcome() -> ClientError | None:
            # An error is a value here: nobody may be waiting any more, and it is kept in the state too.
            try:
                await work
            except ClientError as error:
                return error
            return None

        task: asyncio.Task[ClientError | None] = self._core.ports.tasks.spawn(
            outcome(), name=f"{self.transactional_id}: {name}"
        )
        return task


_NOT_TRIED: Final = ErrorCode.OPERATION_NOT_ATTEMPTED


def _as_transaction_error(error: KafkaError, fatal: bool, what: str) -> ClientError:
    if fatal:
        return error if isinstance(error, ClientError) else error_for(error.code, error.message)
    converted = TransactionError(f"{what}: {error.message}", code=error.code)
    converted.__cause__ = error
    return converted
