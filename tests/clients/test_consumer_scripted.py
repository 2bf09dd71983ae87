"""The consumer with a broker that misbehaves: damage, silence, hanging up, moved leaders, truncated logs."""

from __future__ import annotations

import time
from typing import Any

import pytest

from penstock import Consumer, ErrorCode, KafkaError, LogTruncated, RecordTooLarge, TopicPartition
from penstock.client.core.types import OffsetAndMetadata
from penstock.protocol.messages.fetch import AbortedTransaction, FetchRequest, PartitionData
from penstock.records.builder import ControlType, build_batch, end_transaction_marker
from penstock.records.record import Record
from tests.clients.consuming import read
from tests.clients.scripted import HANG_UP, SILENT, TOPIC, ScriptedBroker

TP = TopicPartition(TOPIC, 0)


def batch(base: int, count: int, **rest: Any) -> bytes:
    return build_batch([Record(0, None, b"%d" % (base + each)) for each in range(count)], base_offset=base, **rest)


def served(data: bytes, **rest: Any) -> PartitionData:
    return PartitionData(partition_index=0, high_watermark=100, last_stable_offset=100, records=data, **rest)


def asked_offset(request: FetchRequest) -> int:
    return request.topics[0].partitions[0].fetch_offset


def reader(broker: ScriptedBroker, **options: Any) -> Consumer:
    consumer = Consumer(
        bootstrap_servers=broker.bootstrap,
        **{"auto_offset_reset": "earliest", "fetch_max_wait_ms": 50, "retry_backoff_ms": 20, **options},
    )
    consumer.assign([TP])
    return consumer


def from_log(log: dict[int, bytes]) -> Any:
    """Serves batches by their base offsets, and nothing at other ones."""

    def serve(request: FetchRequest) -> PartitionData:
        offset = asked_offset(request) if request.topics else -1
        if offset not in log:
            time.sleep(0.02)
        return served(log.get(offset, b""))

    return serve


@pytest.mark.parametrize("version", [4, 7, 11, 12, 13, 18])
def test_every_version_of_fetch(version: int) -> None:
    log = {0: batch(0, 3), 3: batch(3, 2)}
    with ScriptedBroker(from_log(log), fetch_version_max=version) as broker, reader(broker) as consumer:
        assert [record.offset for record in read(consumer, 5)] == [0, 1, 2, 3, 4]


def test_a_batch_damaged_on_its_way_is_fetched_again() -> None:
    damaged = bytearray(batch(2, 2))
    damaged[-1] ^= 0xFF
    times = [0]

    def serve(request: FetchRequest) -> PartitionData:
        offset = asked_offset(request)
        if offset == 0:
            return served(batch(0, 2) + bytes(damaged))
        if offset == 2:
            times[0] += 1
            return served(bytes(damaged) if times[0] == 1 else batch(2, 2))
        time.sleep(0.02)
        return served(b"")

    with ScriptedBroker(serve) as broker, reader(broker) as consumer:
        assert [record.offset for record in read(consumer, 2)] == [0, 1]
        with pytest.raises(KafkaError, match="offset 2 of scripted-0 is damaged") as caught:
            read(consumer, 1)
        assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
        for _ in range(3):
            try:
                assert [record.offset for record in read(consumer, 2)] == [2, 3]
                break
            except KafkaError:
                continue
        else:
            pytest.fail("the good copy was not read")


def test_a_batch_that_stays_damaged_can_be_passed() -> None:
    damaged = bytearray(batch(0, 2))
    damaged[-1] ^= 0xFF
    log = {0: bytes(damaged), 2: batch(2, 1)}
    with ScriptedBroker(from_log(log)) as broker, reader(broker) as consumer:
        for _ in range(2):
            with pytest.raises(KafkaError, match="seek past it"):
                read(consumer, 1)
        assert consumer.position(TP) == 0
        consumer.seek(TP, 2)
        assert [record.offset for record in read(consumer, 1)] == [2]


def test_a_fetch_that_can_make_no_progress_is_told() -> None:
    with (
        ScriptedBroker(lambda _: served(batch(0, 100)[:70])) as broker,
        reader(broker) as consumer,
        pytest.raises(RecordTooLarge, match=r"max\.partition\.fetch\.bytes"),
    ):
        read(consumer, 1)


def test_silence_ends_with_the_request_time_out_and_another_connection() -> None:
    answers = [SILENT, served(batch(0, 2))]
    with (
        ScriptedBroker(lambda _: answers.pop(0) if answers else SILENT) as broker,
        reader(broker, request_timeout_ms=300, default_api_timeout_ms=30_000) as consumer,
    ):
        started = time.monotonic()
        assert consumer.poll(50) == []
        assert time.monotonic() - started < 20, "poll keeps its own time"
        assert [record.offset for record in read(consumer, 2)] == [0, 1]


def test_a_connection_that_breaks_is_made_again() -> None:
    answers = [HANG_UP, served(batch(0, 1)), HANG_UP, HANG_UP, served(batch(1, 1))]
    with ScriptedBroker(lambda _: answers.pop(0) if answers else SILENT) as broker, reader(broker) as consumer:
        assert [record.offset for record in read(consumer, 2)] == [0, 1]
    assert [asked_offset(fetch) for fetch in broker.fetches][:5] == [0, 0, 1, 1, 1]


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    ],
)
def test_errors_that_pass_are_tried_again(code: ErrorCode) -> None:
    answers: list[Any] = [PartitionData(partition_index=0, error_code=code), served(batch(0, 1))]
    with ScriptedBroker(lambda _: answers.pop(0) if answers else SILENT) as broker, reader(broker) as consumer:
        assert [record.offset for record in read(consumer, 1)] == [0]


def test_no_right_to_read_is_told() -> None:
    refused = PartitionData(partition_index=0, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    with ScriptedBroker(lambda _: refused) as broker, reader(broker) as consumer:
        with pytest.raises(KafkaError, match="scripted-0") as caught:
            read(consumer, 1)
        assert caught.value.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_a_truncated_log_is_told_or_followed() -> None:
    with ScriptedBroker(from_log({5: batch(5, 1, leader_epoch=3)})) as broker:
        broker.epoch_end = (2, 5)
        with reader(broker, auto_offset_reset="none") as consumer:
            consumer.seek(TP, OffsetAndMetadata(9, leader_epoch=2))
            with pytest.raises(LogTruncated, match="offset 9 of epoch 2") as caught:
                read(consumer, 1)
            assert caught.value.divergent == {TP: 5}
        with reader(broker) as consumer:
            consumer.seek(TP, OffsetAndMetadata(9, leader_epoch=2))
            assert [record.offset for record in read(consumer, 1)] == [5]


def test_a_new_leader_is_asked_before_it_is_read() -> None:
    log = {0: batch(0, 1, leader_epoch=3), 1: b"", 1_000: b""}
    with ScriptedBroker(from_log(log)) as broker, reader(broker, metadata_max_age_ms=100) as consumer:
        read(consumer, 1)
        broker.leader_epoch = 4
        deadline = time.monotonic() + 60
        while not any(key == 23 for key, _ in broker.requests):
            assert time.monotonic() < deadline
            consumer.poll(50)
        log[1] = batch(1, 1, leader_epoch=4)
        assert [record.offset for record in read(consumer, 1)] == [1]


def test_a_follower_nearby_is_read_until_it_fails() -> None:
    def lead(request: FetchRequest) -> PartitionData:
        if asked_offset(request) == 0:
            return served(b"", preferred_read_replica=2)
        return from_log({2: batch(2, 1)})(request)  # type: ignore[no-any-return]

    def follow(request: FetchRequest) -> PartitionData:
        if asked_offset(request) == 0:
            return served(batch(0, 2))
        return PartitionData(partition_index=0, error_code=ErrorCode.OFFSET_OUT_OF_RANGE)

    with ScriptedBroker(lead) as leader, ScriptedBroker(follow) as follower:
        leader.followers = follower.followers = {2: follower.port}
        with reader(leader, client_rack="here", auto_offset_reset="none") as consumer:
            consumer.seek(TP, 0)
            assert [record.offset for record in read(consumer, 3)] == [0, 1, 2]
        assert {fetch.rack_id for fetch in leader.fetches} == {"here"}
        assert asked_offset(follower.fetches[0]) == 0


def test_no_more_is_fetched_ahead_than_is_allowed() -> None:
    def serve(request: FetchRequest) -> PartitionData:
        offset = asked_offset(request)
        return served(build_batch([Record(0, None, b"x" * 100_000)], base_offset=offset) if offset < 50 else b"")

    with ScriptedBroker(serve) as broker, reader(broker, max_poll_records=1) as consumer:
        for expected in range(20):
            assert [record.offset for record in read(consumer, 1)] == [expected]
        time.sleep(0.1)
        ahead = [asked_offset(fetch) for fetch in broker.fetches]
        assert max(ahead) <= 22, "one fetch in hand and one more"
        assert len(ahead) == len(set(ahead)), "nothing is fetched twice"


def test_aborted_records_are_left_out() -> None:
    writer = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0, "transactional": True}
    marker = end_transaction_marker(
        ControlType.ABORT, producer_id=7, producer_epoch=0, coordinator_epoch=0, timestamp=0, base_offset=2
    )
    data = batch(0, 2, **writer) + marker + batch(3, 1)

    def serve(request: FetchRequest) -> PartitionData:
        if asked_offset(request) != 0:
            time.sleep(0.02)
            return served(b"")
        return served(data, aborted_transactions=[AbortedTransaction(producer_id=7, first_offset=0)])

    with ScriptedBroker(serve) as broker:
        with reader(broker, isolation_level="read_committed") as consumer:
            assert [record.offset for record in read(consumer, 1)] == [3]
        with reader(broker) as consumer:
            assert [record.offset for record in read(consumer, 3)] == [0, 1, 3]
