"""Whole transactions against a coordinator that answers from a script."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from penstock.base.errors import ErrorCode
from penstock.base.types import TopicPartition
from penstock.client.core.types import ConsumerGroupMetadata
from penstock.client.errors import (
    CommitFailed,
    InvalidState,
    KafkaTimeout,
    ProducerFenced,
    RecordTooLarge,
    TransactionalIdAuthorizationFailed,
    TransactionError,
)
from penstock.client.producer.transactions.states import TransactionState
from penstock.network.errors import Disconnected
from penstock.protocol.apis import ApiKey
from tests.unit.client.transactions.fakes import made

E = ErrorCode
P0 = TopicPartition("t", 0)
GROUP = ConsumerGroupMetadata("g", 3, "member")


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(test(), 10)

    asyncio.run(bounded())


async def append(manager: Any) -> None:
    manager.check_can_append()
    manager.partition_appended(P0)
    manager.prepare()
    await asyncio.sleep(0)


def test_v1_announces_partitions_and_keeps_the_epoch() -> None:
    async def test() -> None:
        manager, core, producer = await made(1)
        for _ in range(2):
            await manager.begin()
            await append(manager)
            await manager.commit()
        assert core.names() == ["INIT_PRODUCER_ID", *["ADD_PARTITIONS_TO_TXN", "END_TXN"] * 2]
        assert [version for api, _, version in core.asked if api is ApiKey.END_TXN] == [4, 4]
        assert producer.producer_epoch == 0
        assert manager.produce_version_max == 11

    run(test)


def test_v2_gets_an_epoch_from_every_end() -> None:
    async def test() -> None:
        manager, core, producer = await made(2)
        for _ in range(2):
            await manager.begin()
            await append(manager)
            assert manager.may_drain(P0)
            await manager.commit()
        assert core.names() == ["INIT_PRODUCER_ID", "END_TXN", "END_TXN"]
        assert producer.producer_epoch == 2
        assert manager.transaction_version == 2

    run(test)


@pytest.mark.parametrize("version", [1, 2])
def test_empty_transaction_asks_nobody(version: int) -> None:
    async def test() -> None:
        manager, core, _ = await made(version)
        await manager.begin()
        await manager.commit()
        await manager.begin()
        await manager.abort()
        assert core.names() == ["INIT_PRODUCER_ID"]

    run(test)


def test_offsets_join_the_transaction() -> None:
    async def test() -> None:
        for version, expected in ((1, ["ADD_OFFSETS_TO_TXN", "TXN_OFFSET_COMMIT"]), (2, ["TXN_OFFSET_COMMIT"])):
            manager, core, _ = await made(version)
            await manager.begin()
            await manager.send_offsets({P0: 5}, GROUP)
            await manager.commit()
            assert core.names() == ["INIT_PRODUCER_ID", *expected, "END_TXN"]
            api, request, _ = core.asked[-2]
            assert api is ApiKey.TXN_OFFSET_COMMIT
            assert request.generation_id == 3
            assert request.topics[0].partitions[0].committed_offset == 5

    run(test)


def test_retriable_answers_are_retried_and_a_lost_coordinator_looked_for() -> None:
    async def test() -> None:
        manager, core, _ = await made(1)
        core.script[ApiKey.ADD_PARTITIONS_TO_TXN].extend([E.CONCURRENT_TRANSACTIONS, Disconnected(None, "gone")])
        core.script[ApiKey.END_TXN].extend([E.NOT_COORDINATOR, E.COORDINATOR_LOAD_IN_PROGRESS])
        await manager.begin()
        await append(manager)
        await manager.commit()
        assert core.names().count("ADD_PARTITIONS_TO_TXN") == 3
        assert core.names().count("END_TXN") == 3
        assert len(core.lost) == 2

    run(test)


def test_fenced_producer_is_finished() -> None:
    async def test() -> None:
        manager, core, producer = await made(2)
        core.script[ApiKey.END_TXN].append(E.PRODUCER_FENCED)
        await manager.begin()
        await append(manager)
        with pytest.raises(ProducerFenced, match="orders"):
            await manager.commit()
        for call in (manager.begin, manager.abort, manager.commit):
            with pytest.raises(ProducerFenced):
                await call()
        with pytest.raises(ProducerFenced):
            manager.check_can_append()
        await asyncio.sleep(0)
        assert isinstance(producer.dropped[0], ProducerFenced)

    run(test)


def test_lost_batch_needs_an_abort_and_under_v1_an_epoch() -> None:
    async def test() -> None:
        for version in (1, 2):
            manager, core, producer = await made(version)
            await manager.begin()
            await append(manager)
            manager.batch_failed(P0, RecordTooLarge("too large"))
            await asyncio.sleep(0)
            assert producer.dropped
            with pytest.raises(TransactionError, match="too large"):
                manager.check_can_append()
            with pytest.raises(TransactionError):
                await manager.commit()
            await manager.abort()
            assert core.names()[-2:] == (["END_TXN", "INIT_PRODUCER_ID"] if version == 1 else core.names()[-2:])
            assert producer.producer_epoch == 1
            await manager.begin()

    run(test)


def test_batch_lost_while_committing_fails_the_commit() -> None:
    async def test() -> None:
        manager, core, producer = await made(2)
        await manager.begin()
        await append(manager)
        producer.flushing = asyncio.Event()
        commit = asyncio.create_task(manager.commit())
        await asyncio.sleep(0.01)
        with pytest.raises(InvalidState, match="commit_transaction"):
            manager.check_can_append()
        manager.batch_failed(P0, RecordTooLarge("too large"))
        producer.flushing.set()
        with pytest.raises(TransactionError, match="too large"):
            await commit
        assert "END_TXN" not in core.names()
        await manager.abort()
        assert manager.machine.state is TransactionState.READY

    run(test)


def test_commit_that_timed_out_is_called_again_and_nothing_else() -> None:
    async def test() -> None:
        manager, core, _ = await made(2)
        answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        core.script[ApiKey.END_TXN].append(answer)
        await manager.begin()
        await append(manager)
        with pytest.raises(KafkaTimeout, match=r"commit_transaction\(\) again"):
            await manager.commit(timeout_ms=20)
        for call in (manager.abort, manager.begin, lambda: manager.send_offsets({P0: 1}, GROUP)):
            with pytest.raises(InvalidState, match="commit_transaction"):
                await call()
        answer.set_result(0)
        await manager.commit()
        assert core.names().count("END_TXN") == 1
        await manager.begin()

    run(test)


def test_member_that_lost_its_partitions_cannot_commit_their_offsets() -> None:
    async def test() -> None:
        manager, core, _ = await made(2)
        core.script[ApiKey.TXN_OFFSET_COMMIT].append(E.ILLEGAL_GENERATION)
        await manager.begin()
        with pytest.raises(CommitFailed) as caught:
            await manager.send_offsets({P0: 5}, GROUP)
        assert caught.value.abortable
        with pytest.raises(TransactionError):
            await manager.commit()
        await manager.abort()
        await manager.begin()

    run(test)


def test_refused_init_is_fatal_but_an_unanswered_one_may_be_called_again() -> None:
    async def test() -> None:
        manager, core, _ = await made(2, initialized=False)
        core.script[ApiKey.INIT_PRODUCER_ID].append(E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        with pytest.raises(TransactionalIdAuthorizationFailed):
            await manager.init()
        with pytest.raises(TransactionalIdAuthorizationFailed):
            await manager.begin()
        manager, core, _ = await made(2, initialized=False)
        answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        core.script[ApiKey.INIT_PRODUCER_ID].append(answer)
        with pytest.raises(KafkaTimeout):
            await manager.init(timeout_ms=10)
        answer.set_result(0)
        await manager.init()
        with pytest.raises(InvalidState):
            await manager.init()

    run(test)


def test_producer_id_forgotten_by_the_coordinator_is_replaced() -> None:
    async def test() -> None:
        manager, core, producer = await made(1)
        core.script[ApiKey.ADD_PARTITIONS_TO_TXN].append(E.INVALID_PRODUCER_ID_MAPPING)
        await manager.begin()
        await append(manager)
        await asyncio.sleep(0.01)
        await manager.abort()
        assert core.names()[-2:] == ["ADD_PARTITIONS_TO_TXN", "INIT_PRODUCER_ID"]
        assert producer.producer_epoch == 1

    run(test)


def test_close_aborts_what_is_open() -> None:
    async def test() -> None:
        manager, core, _ = await made(2)
        await manager.begin()
        await append(manager)
        await manager.close(1_000)
        assert core.names()[-1] == "END_TXN"
        assert core.asked[-1][1].committed is False

    run(test)


def test_first_record_of_a_partition_wakes_the_sender() -> None:
    """The sender may have looked between the append and the joining; nothing else would make it look again."""

    async def test() -> None:
        manager, core, _ = await made(1)
        await manager.begin()
        manager.partition_appended(P0)
        await asyncio.sleep(0.01)
        assert core.names()[-1] == "ADD_PARTITIONS_TO_TXN"
        assert manager.may_drain(P0)

    run(test)


def test_each_transaction_speaks_the_version_that_the_cluster_has_then() -> None:
    """It was read once, by init_transactions."""

    async def test() -> None:
        manager, core, _ = await made(1)
        for version in (1, 2, 1):
            core.version = version
            await manager.begin()
            assert manager.transaction_version == version
            await append(manager)
            await manager.commit()
        # A coordinator that is away does not hold up a transaction: the last version counts.
        core.version, core.is_away = 2, True
        await manager.begin()
        assert manager.transaction_version == 1

    run(test)


@pytest.mark.parametrize("version", [1, 2])
def test_abort_gives_up_offsets_that_are_refused_again_and_again(version: int) -> None:
    async def test() -> None:
        manager, core, _ = await made(version)
        await manager.begin()
        core.script[ApiKey.TXN_OFFSET_COMMIT].extend([E.UNKNOWN_TOPIC_OR_PARTITION] * 100_000)
        with pytest.raises(KafkaTimeout, match=r"TXN_OFFSET_COMMIT: .*UNKNOWN_TOPIC_OR_PARTITION"):
            await manager.send_offsets({P0: 1}, GROUP, 50)
        await manager.abort()
        core.script.clear()
        assert core.names()[-1] == "END_TXN"
        await manager.begin()

    run(test)


@pytest.mark.parametrize(
    ("offsets", "group", "message"),
    [
        ({P0: 1}, None, "group_metadata must be"),
        ([P0], "g", "offsets must be a mapping"),
        ({"t": 1}, "g", "TopicPartitions as keys"),
        ({P0: "1"}, "g", "must be a number or an OffsetAndMetadata"),
        ({P0: -1}, "g", "from 0 on"),
    ],
)
def test_bad_offsets_are_refused_at_the_call(offsets: Any, group: Any, message: str) -> None:
    async def test() -> None:
        manager, core, _ = await made(2)
        await manager.begin()
        with pytest.raises((TypeError, ValueError), match=message):
            await manager.send_offsets(offsets, group)
        await manager.commit()
        assert core.names() == ["INIT_PRODUCER_ID"]

    run(test)


def test_abort_waits_until_the_coordinator_knows_the_transaction() -> None:
    async def test() -> None:
        manager, core, _ = await made(1)
        await manager.begin()
        core.script[ApiKey.ADD_PARTITIONS_TO_TXN].extend([E.CONCURRENT_TRANSACTIONS] * 3)
        await append(manager)
        await manager.abort()
        assert core.names() == ["INIT_PRODUCER_ID", *["ADD_PARTITIONS_TO_TXN"] * 4, "END_TXN"]

    run(test)
