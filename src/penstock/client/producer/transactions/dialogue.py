"""What a transactional producer says to its coordinators, and what their answers do to its state.

Each method is one step of the protocol, in the form that V1 or V2 wants. An error in an answer changes the state first
(`on_failure` tells the manager), then it is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from penstock.base.errors import ErrorCode
from penstock.base.types import TopicPartition
from penstock.client.core.types import ConsumerGroupMetadata, CoordinatorKind, OffsetAndMetadata
from penstock.client.errors import ClientError, TransactionAborted
from penstock.client.producer.transactions.calls import CoordinatorCalls
from penstock.client.producer.transactions.machine import TransactionMachine
from penstock.client.producer.transactions.requests import (
    add_partitions_codes,
    add_partitions_request,
    offset_commit_codes,
    offset_commit_request,
)
from penstock.client.producer.transactions.states import TransactionState
from penstock.client.producer.transactions.verdicts import Verdict, error_of, verdict_on
from penstock.network.versions import VERSION_MAX, VersionTable
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from penstock.protocol.messages.end_txn import EndTxnRequest
from penstock.protocol.messages.init_producer_id import InitProducerIdRequest

_S = TransactionState
_V1_END: Final = 4
_V1_OFFSETS: Final = 4
_V2_NEEDS: Final = {ApiKey.PRODUCE: 12, ApiKey.END_TXN: 5, ApiKey.TXN_OFFSET_COMMIT: 5}
_ADD_PARTITIONS: Final = 3
_INIT: Final = 5
_NOT_TRIED: Final = ErrorCode.OPERATION_NOT_ATTEMPTED


class ProducerIdentity(Protocol):
    """The producer's id, epoch and sequence numbers."""

    @property
    def producer_id(self) -> int: ...

    @property
    def producer_epoch(self) -> int: ...

    def assign(self, producer_id: int, producer_epoch: int) -> None:
        """A new identity: the sequences of all partitions begin at 0."""


class CoordinatorDialogue:
    def __init__(
        self,
        machine: TransactionMachine,
        identity: ProducerIdentity,
        calls: CoordinatorCalls,
        *,
        timeout_ms: int,
        on_failure: Callable[[ClientError, bool, bool], None],
    ) -> None:
        self.version_max = 2
        self._machine = machine
        self._identity = identity
        self._calls = calls
        self._timeout_ms = timeout_ms
        self._on_failure = on_failure
        """Called with the error, whether it is fatal, and whether a new epoch is needed."""
        self._versions: VersionTable | None = None

    async def initialize(self) -> None:
        """An epoch from the coordinator: the first, or a higher one than the present."""
        has_one = self._identity.producer_id >= 0
        request = InitProducerIdRequest(
            transactional_id=self._machine.transactional_id,
            transaction_timeout_ms=self._timeout_ms,
            producer_id=self._identity.producer_id if has_one else -1,
            producer_epoch=self._identity.producer_epoch if has_one else -1,
        )
        # Version 6 asks for more than is wanted here (KIP-939).
        answer = await self._ask(ApiKey.INIT_PRODUCER_ID, request, at_least=3 if has_one else 0, at_most=_INIT)
        self._versions = await self._calls.versions(CoordinatorKind.TRANSACTION, self._machine.transactional_id)
        self._identity.assign(answer.producer_id, answer.producer_epoch)
        self._choose_version()
        self._machine.finish()

    async def end(self, *, committed: bool) -> None:
        """Tell how the transaction ends, if the coordinator may know of it."""
        if not self._machine.known_to_coordinator:
            return
        request = EndTxnRequest(**self._who(), committed=committed)
        if self._machine.version < 2:
            await self._ask(ApiKey.END_TXN, request, at_most=_V1_END)
            return
        answer = await self._ask(ApiKey.END_TXN, request, at_least=_V2_NEEDS[ApiKey.END_TXN])
        if answer.producer_id >= 0:
            self._identity.assign(answer.producer_id, answer.producer_epoch)

    def why_late(self) -> str:
        """What the last tries of a question that is being repeated failed with."""
        return self._calls.why_late()

    async def add_partitions(self, partitions: frozenset[TopicPartition]) -> None:
        """Announce partitions (V1), before anything is written to them."""
        request = add_partitions_request(**self._who(), partitions=partitions)
        succeeded = False
        try:
            await self._ask(ApiKey.ADD_PARTITIONS_TO_TXN, request, at_most=_ADD_PARTITIONS, codes=add_partitions_codes)
            succeeded = True
        finally:
            self._machine.partitions_added(succeeded)

    async def send_offsets(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: ConsumerGroupMetadata
    ) -> None:
        """Consumed offsets for the group's coordinator, which keeps them back until the transaction ends."""
        machine = self._machine
        machine.known_to_coordinator = True
        is_v2 = machine.version >= 2
        if not is_v2:
            await self._ask(ApiKey.ADD_OFFSETS_TO_TXN, AddOffsetsToTxnRequest(**self._who(), group_id=group.group_id))
        # A fenced member is found out by its generation, which version 3 brought (KIP-447).
        await self._ask(
            ApiKey.TXN_OFFSET_COMMIT,
            offset_commit_request(**self._who(), group=group, offsets=offsets),
            at_least=_V2_NEEDS[ApiKey.TXN_OFFSET_COMMIT] if is_v2 else 3 if group.member_id else 0,
            at_most=VERSION_MAX if is_v2 else _V1_OFFSETS,
            codes=offset_commit_codes,
            at=(CoordinatorKind.GROUP, group.group_id),
        )

    async def begin(self) -> None:
        """The cluster may have been upgraded or downgraded since the last transaction: a new connection tells."""
        found = await self._calls.versions_now(CoordinatorKind.TRANSACTION, self._machine.transactional_id)
        self._versions = found or self._versions
        self._choose_version()

    def _choose_version(self) -> None:
        """V2 where the cluster has decided for it and the broker speaks it; between transactions only."""
        table = self._versions
        enough = table is not None and table.features.get("transaction.version", 0) >= 2
        if enough and table is not None:
            enough = all(table.best.get(api_key, -1) >= least for api_key, least in _V2_NEEDS.items())
        self._machine.version = min(2 if enough else 1, self.version_max)

    def _who(self) -> dict[str, Any]:
        return {
            "transactional_id": self._machine.transactional_id,
            "producer_id": self._identity.producer_id,
            "producer_epoch": self._identity.producer_epoch,
        }

    async def _ask(
        self,
        api_key: int,
        request: Any,
        *,
        at_least: int = 0,
        at_most: int = VERSION_MAX,
        codes: Callable[[Any], Mapping[TopicPartition, ErrorCode]] | None = None,
        at: tuple[CoordinatorKind, str] | None = None,
    ) -> Any:
        """The answer of a coordinator; an error in it changes the state, then it is raised."""
        kind, key = at or (CoordinatorKind.TRANSACTION, self._machine.transactional_id)
        what = ApiKey(api_key).name

        def found(response: Any) -> Mapping[Any, ErrorCode]:
            return codes(response) if codes is not None else {what: ErrorCode.of(response.error_code)}

        def check_wanted() -> None:
            # Not what opens the transaction at the coordinator: to end one that it does not know yet is an error there.
            if api_key == ApiKey.TXN_OFFSET_COMMIT and self._machine.is_dropping:
                raise TransactionAborted(f"{what} was not answered well before the transaction was given up")

        try:
            answer = await self._calls.ask(
                kind, key, api_key, request, found, at_least=at_least, at_most=at_most, check_wanted=check_wanted
            )
        except ClientError as error:
            raise self._failed(api_key, error.code, error) from error.__cause__
        for about, code in _worst_first(api_key, found(answer)):
            raise self._failed(api_key, code, error_of(api_key, code, self._machine.transactional_id, str(about)))
        return answer

    def _failed(self, api_key: int, code: ErrorCode, error: ClientError) -> ClientError:
        verdict = verdict_on(api_key, code)
        if api_key == ApiKey.INIT_PRODUCER_ID and verdict is not Verdict.FATAL:
            self._machine.move(_S.UNINITIALIZED)
        else:
            self._on_failure(error, verdict is Verdict.FATAL, verdict is Verdict.NEW_EPOCH)
        return error


def _worst_first(api_key: int, codes: Mapping[Any, ErrorCode]) -> list[tuple[Any, ErrorCode]]:
    """Errors in an answer, a fatal one before the others."""
    failed = [(about, code) for about, code in codes.items() if code is not ErrorCode.NONE]
    return sorted(
        failed,
        key=lambda each: (verdict_on(api_key, each[1]) is not Verdict.FATAL, each[1] is _NOT_TRIED, str(each[0])),
    )
