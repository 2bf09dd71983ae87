"""Coordinators' records: bytes that Apache Kafka 4.3.1 wrote, older versions, garbage, and round trips."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.base.types import ZERO_UUID
from penstock.coordinator.records.errors import RecordFormatError, UnknownRecordTypeError
from penstock.coordinator.records.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    decode_group_key,
    decode_group_metadata_value,
    decode_offset_commit_value,
    group_metadata_record,
    offset_commit_record,
)
from penstock.coordinator.records.layouts import GroupMetadataLayout, MemberLayout, OffsetCommitLayout
from penstock.coordinator.records.transaction_records import (
    TransactionLogValue,
    decode_transaction_key,
    decode_transaction_value,
    transaction_record,
)
from penstock.coordinator.records.values import encode_value
from penstock.coordinator.runtime.shard import CoordinatorRecord


def written(key: str, value: str) -> CoordinatorRecord:
    return CoordinatorRecord(bytes.fromhex(key), bytes.fromhex(value))


# What a Kafka 4.3.1 broker left in its __consumer_offsets and __transaction_state for librdkafka's clients.
MEMBER = "static-1-3829b473-5867-46b7-8734-e1105ee2c1e3"
KAFKA_OFFSET = written(
    "000100076772c3bc7070650002696e00000000",
    "00040000000000000001ffffffff0f736f6d65206d6574616461746100000001a1e5bc6fbd0100103f458ad71154476c92eff0d15d43efbf",
)
KAFKA_TRANSACTIONAL_OFFSET = written(
    "00010004636f70790002696e00000000", "00040000000000000002ffffffff0574786e00000001a1e5bcf59e00"
)
KAFKA_NEW_GROUP = written("000200076772c3bc707065", "0003000000000000ffffffff000001a1e5bc6ed700000000")
KAFKA_GROUP = written(
    "000200076772c3bc707065",
    "00030008636f6e73756d657200000001000572616e6765002d7374617469632d312d33383239623437332d353836372d343662372d3837333"
    "42d653131303565653263316533000001a1e5bc6eee00000001002d7374617469632d312d33383239623437332d353836372d343662372d38"
    "3733342d65313130356565326331653300087374617469632d3100096d792d636c69656e74000a2f3132372e302e302e31000493e00000af"
    "c8000000180003000000010002696e0000000000000000ffffffff0000000000160000000000010002696e000000010000000000000000",
)
KAFKA_EMPTY_TRANSACTION = written(
    "000000067472616e2d30", "000100000000000000000001000075300000000001a1e5bcf2e2ffffffffffffffff0100080000000000000000"
)
KAFKA_TRANSACTION = written(
    "000000067472616e2d30",
    "000100000000000000000001000075300203135f5f636f6e73756d65725f6f666673657473020000000100046f7574020000000000000001a1"
    "e5bcf626000001a1e5bcf53d0100080000000000000000",
)
KAFKA_COMPLETE_TRANSACTION = written(
    "000000067472616e2d30", "000100000000000000000001000075300401000001a1e5bcf651000001a1e5bcf53d0100080000000000000000"
)


@pytest.mark.parametrize(
    ("record", "key", "value"),
    [
        (
            KAFKA_OFFSET,
            OffsetCommitKey("grüppe", "in", 0),
            OffsetCommitValue(
                1, -1, "some metadata\x00", 1794855694269, -1, UUID("3f458ad7-1154-476c-92ef-f0d15d43efbf")
            ),
        ),
        (
            KAFKA_TRANSACTIONAL_OFFSET,
            OffsetCommitKey("copy", "in", 0),
            OffsetCommitValue(2, -1, "txn\x00", 1794855728542),
        ),
    ],
)
def test_offsets_are_those_of_kafka(record: CoordinatorRecord, key: OffsetCommitKey, value: OffsetCommitValue) -> None:
    assert record.value is not None
    assert decode_group_key(record.key) == key
    assert decode_offset_commit_value(record.value) == value
    assert offset_commit_record(*key, value) == record


@pytest.mark.parametrize(
    ("record", "value"),
    [
        (KAFKA_NEW_GROUP, GroupMetadataValue(current_state_timestamp_ms=1794855694039)),
        (
            KAFKA_GROUP,
            GroupMetadataValue(
                protocol_type="consumer",
                generation=1,
                protocol="range",
                leader=MEMBER,
                current_state_timestamp_ms=1794855694062,
                members=(
                    MemberMetadata(
                        member_id=MEMBER,
                        group_instance_id="static-1",
                        client_id="my-client",
                        client_host="/127.0.0.1",
                        rebalance_timeout_ms=300_000,
                        session_timeout_ms=45_000,
                        subscription=bytes.fromhex("0003000000010002696e0000000000000000ffffffff0000"),
                        assignment=bytes.fromhex("0000000000010002696e000000010000000000000000"),
                    ),
                ),
            ),
        ),
    ],
)
def test_groups_are_those_of_kafka(record: CoordinatorRecord, value: GroupMetadataValue) -> None:
    assert record.value is not None
    assert decode_group_key(record.key) == GroupMetadataKey("grüppe")
    assert decode_group_metadata_value(record.value) == value
    assert group_metadata_record("grüppe", value) == record


@pytest.mark.parametrize(
    ("record", "status", "partitions", "updated_ms", "started_ms"),
    [
        (KAFKA_EMPTY_TRANSACTION, 0, None, 1794855727842, -1),
        (KAFKA_TRANSACTION, 2, (("__consumer_offsets", (1,)), ("out", (0,))), 1794855728678, 1794855728445),
        (KAFKA_COMPLETE_TRANSACTION, 4, (), 1794855728721, 1794855728445),
    ],
)
def test_transactions_are_those_of_kafka(
    record: CoordinatorRecord,
    status: int,
    partitions: tuple[tuple[str, tuple[int, ...]], ...] | None,
    updated_ms: int,
    started_ms: int,
) -> None:
    value = TransactionLogValue(
        producer_id=0,
        producer_epoch=1,
        previous_producer_id=0,
        transaction_timeout_ms=30_000,
        transaction_status=status,
        transaction_partitions=partitions,
        transaction_last_update_timestamp_ms=updated_ms,
        transaction_start_timestamp_ms=started_ms,
    )
    assert record.value is not None
    assert decode_transaction_key(record.key) == "tran-0"
    assert decode_transaction_value(record.value) == value
    assert transaction_record("tran-0", value) == record


def test_tombstones_have_no_value() -> None:
    assert offset_commit_record("g", "t", 1, None).value is None
    assert group_metadata_record("g", None).value is None
    assert transaction_record("t", None).value is None


def test_the_oldest_kind_of_offset_key_is_read() -> None:
    key = b"\x00\x00" + offset_commit_record("g", "t", 1, None).key[2:]
    assert decode_group_key(key) == OffsetCommitKey("g", "t", 1)


@pytest.mark.parametrize("version", range(5))
def test_every_version_of_an_offset_is_read(version: int) -> None:
    layout = OffsetCommitLayout(
        offset=7, leader_epoch=3, metadata="m", commit_timestamp=11, expire_timestamp=13, topic_id=UUID(int=5)
    )
    assert decode_offset_commit_value(encode_value(layout, version, 4)) == OffsetCommitValue(
        7,
        3 if version >= 3 else -1,
        "m",
        11,
        13 if version == 1 else -1,
        UUID(int=5) if version >= 4 else ZERO_UUID,
    )


@pytest.mark.parametrize("version", range(5))
def test_every_version_of_a_group_is_read(version: int) -> None:
    member = MemberLayout(
        member_id="m", group_instance_id="i", client_id="c", client_host="h", rebalance_timeout=9, session_timeout=5
    )
    layout = GroupMetadataLayout(
        protocol_type="t", generation=4, protocol="p", leader="l", current_state_timestamp=8, members=[member]
    )
    found = decode_group_metadata_value(encode_value(layout, version, 4))
    assert (found.protocol_type, found.generation, found.protocol, found.leader) == ("t", 4, "p", "l")
    assert found.current_state_timestamp_ms == (8 if version >= 2 else -1)
    # Version 0 had one time-out for both.
    assert found.members[0].rebalance_timeout_ms == (9 if version >= 1 else 5)
    assert found.members[0].group_instance_id == ("i" if version >= 3 else None)


def test_an_offset_that_expires_at_a_fixed_time_is_written_in_version_1() -> None:
    value = OffsetCommitValue(7, -1, "m", 11, 13)
    record = offset_commit_record("g", "t", 1, value)
    assert record.value is not None
    assert record.value[:2] == b"\x00\x01"
    assert decode_offset_commit_value(record.value) == value


def test_version_0_of_a_transaction_knows_one_producer_id() -> None:
    value = TransactionLogValue(producer_id=5, producer_epoch=2, transaction_partitions=(("t", (1, 2)),))
    record = transaction_record("t", value, version=0)
    assert record.value is not None
    assert record.value[:2] == b"\x00\x00"
    assert decode_transaction_value(record.value) == value


@pytest.mark.parametrize("record_type", [3, 8, 16, -1])
def test_other_kinds_are_unknown(record_type: int) -> None:
    key = record_type.to_bytes(2, "big", signed=True) + b"\x00\x01g"
    with pytest.raises(UnknownRecordTypeError):
        decode_group_key(key)
    with pytest.raises(UnknownRecordTypeError):
        decode_transaction_key(key)


@given(st.binary(max_size=60))
def test_garbage_is_refused_in_one_way(data: bytes) -> None:
    for decode in (
        decode_group_key,
        decode_transaction_key,
        decode_offset_commit_value,
        decode_group_metadata_value,
        decode_transaction_value,
    ):
        for prefix in (b"", b"\x00\x01", b"\x00\x04", b"\x00\x03"):
            try:
                decode(prefix + data)
            except (RecordFormatError, UnknownRecordTypeError):
                continue


TEXT = st.text(max_size=30)
INT64 = st.integers(-(2**63), 2**63 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)


@given(TEXT, TEXT, INT32, INT64, INT32, st.text(max_size=300), INT64, st.uuids())
def test_offsets_round_trip(
    group: str, topic: str, partition: int, offset: int, epoch: int, metadata: str, timestamp_ms: int, topic_id: UUID
) -> None:
    value = OffsetCommitValue(offset, epoch, metadata, timestamp_ms, topic_id=topic_id)
    record = offset_commit_record(group, topic, partition, value)
    assert record.value is not None
    assert decode_group_key(record.key) == (group, topic, partition)
    assert decode_offset_commit_value(record.value) == value


@given(
    st.builds(
        GroupMetadataValue,
        protocol_type=TEXT,
        generation=INT32,
        protocol=st.none() | TEXT,
        leader=st.none() | TEXT,
        current_state_timestamp_ms=INT64,
        members=st.lists(
            st.builds(
                MemberMetadata,
                member_id=TEXT,
                group_instance_id=st.none() | TEXT,
                client_id=TEXT,
                client_host=TEXT,
                rebalance_timeout_ms=st.integers(0, 2**31 - 1),
                session_timeout_ms=INT32,
                subscription=st.binary(max_size=200),
                assignment=st.binary(max_size=200),
            ),
            max_size=4,
        ).map(tuple),
    )
)
def test_groups_round_trip(value: GroupMetadataValue) -> None:
    record = group_metadata_record("g", value)
    assert record.value is not None
    assert decode_group_metadata_value(record.value) == value


@given(
    st.builds(
        TransactionLogValue,
        producer_id=INT64,
        producer_epoch=st.integers(-1, 2**15 - 1),
        previous_producer_id=INT64,
        next_producer_id=INT64,
        next_producer_epoch=st.integers(-1, 2**15 - 1),
        transaction_timeout_ms=INT32,
        transaction_status=st.integers(0, 7),
        transaction_partitions=st.none()
        | st.lists(st.tuples(TEXT, st.lists(INT32, max_size=3).map(tuple)), max_size=3).map(tuple),
        transaction_last_update_timestamp_ms=INT64,
        transaction_start_timestamp_ms=INT64,
        client_transaction_version=st.integers(0, 2),
    ),
    TEXT,
)
def test_transactions_round_trip(value: TransactionLogValue, transactional_id: str) -> None:
    record = transaction_record(transactional_id, value)
    assert record.value is not None
    assert decode_transaction_key(record.key) == transactional_id
    assert decode_transaction_value(record.value) == value
