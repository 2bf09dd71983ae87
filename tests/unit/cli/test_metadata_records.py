"""Records of Apache Kafka's controllers and of tiered storage, from bytes that were put together by hand."""

from __future__ import annotations

import struct

import pytest

from penstock.cli.kafka.control_records import show_control_record
from penstock.cli.kafka.metadata_records import decode_cluster_metadata_record, decode_remote_log_metadata_record

ID = bytes.fromhex("0123456789abcdef0123456789abcdef")
ID_TEXT = "ASNFZ4mrze8BI0VniavN7w"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        # Frame version, kind, version; then the message, which ends with its tagged fields: here none of them.
        (
            b"\x01\x02\x00" b"\x02t" + ID + b"\x00",
            '{"type":"TOPIC_RECORD","version":0,"data":{"name":"t","topicId":"' + ID_TEXT + '"}}',
        ),
        (
            b"\x01\x04\x00" b"\x02" b"\x02t" b"\x03ka" b"\x00" b"\x00",
            '{"type":"CONFIG_RECORD","version":0,"data":{"resourceType":2,"resourceName":"t","name":"ka","value":null}}',
        ),
        # A tagged array that became empty is something else than one that did not change.
        (
            b"\x01\x05\x00" b"\x00\x00\x00\x03" + ID + b"\x02" b"\x00\x01\x01" b"\x01\x04\x00\x00\x00\x07",
            '{"type":"PARTITION_CHANGE_RECORD","version":0,"data":{"partitionId":3,"topicId":"'
            + ID_TEXT
            + '","isr":[],"leader":7}}',
        ),
        # A number with a fraction as Java writes it, and the default of an entity, which has no name.
        (
            b"\x01\x0e\x00" b"\x02" b"\x05user\x00\x00" b"\x05rate" + struct.pack(">d", 2e7) + b"\x00" b"\x00",
            '{"type":"CLIENT_QUOTA_RECORD","version":0,"data":{"entity":[{"entityType":"user","entityName":null}],'
            '"key":"rate","value":2.0E7,"remove":false}}',
        ),
        (b"\x01\x14\x00\x00", '{"type":"NO_OP_RECORD","version":0,"data":{}}'),
        (b"\x01\x17\x00\x00", '{"type":"BEGIN_TRANSACTION_RECORD","version":0,"data":{}}'),
        (
            b"\x01\x17\x00\x01\x00\x02\x02n",
            '{"type":"BEGIN_TRANSACTION_RECORD","version":0,"data":{"name":"n"}}',
        ),
        (b"\x01\x1c\x00\x02t\x00", '{"type":"CLEAR_ELR_RECORD","version":0,"data":{"topicName":"t"}}'),
        (
            b"\x01\x11\x03" b"\x00\x00\x00\x01" + bytes(7) + b"\x09" b"\x02" b"\x00\x01\x01" b"\x03\x01\x01",
            '{"type":"BROKER_REGISTRATION_CHANGE_RECORD","version":3,"data":{"brokerId":1,"brokerEpoch":9,"fenced":1,'
            '"cordonedLogDirs":[]}}',
        ),
    ],
)  # fmt: skip
def test_records_of_the_controllers(value: bytes, shown: str) -> None:
    assert decode_cluster_metadata_record(5, None, value) == (None, shown)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (None, "the record ends before its frame's version"),
        (b"\x01", "the record ends before its kind"),
        (b"\x01\x02", "the record ends before its version"),
        (b"\x00\x02\x00", "version 0 of the frame is unknown; only 1 is known"),
        (b"\x01\x0d\x00", "kind 13 of records is unknown"),
        (b"\x01\x80\x01\x00", "kind 128 of records is unknown"),
        (b"\x01\x03\x03", "version 3 of PARTITION_RECORD is unknown; the newest known is 2"),
        (b"\x01\x02\x00\x05t", "TopicLayout.name ends beyond the message"),
        (b"\x01\x14\x00\x00\x00\x00", "2 bytes are left behind NO_OP_RECORD"),
    ],
)
def test_what_cannot_be_read_is_said(value: bytes | None, why: str) -> None:
    assert decode_cluster_metadata_record(5, None, value) == (None, f"Error at 5, skipping. {why}")
    key, shown = decode_remote_log_metadata_record(5, None, value)
    assert key is None
    assert shown.startswith("Error at offset 5, skipping. ")


def test_a_partition_deleted_from_tiered_storage() -> None:
    value = b"\x01\x02\x00\x02t" + ID + b"\x00\x00\x00\x03\x00\x00\x00\x00\x01" + bytes(7) + b"\x09"
    assert decode_remote_log_metadata_record(0, None, value + b"\x02\x00") == (
        None,
        f"RemotePartitionDeleteMetadata{{topicPartition={ID_TEXT}:t-3, state=DELETE_PARTITION_FINISHED, "
        "eventTimestampMs=9, brokerId=1}",
    )
    assert decode_remote_log_metadata_record(7, None, value + b"\x05\x00") == (
        None,
        "Error at offset 7, skipping. state 5 is unknown",
    )


@pytest.mark.parametrize(
    ("kind", "value", "shown"),
    [
        (0, b"\x00\x00\x00\x00\x00\x07", "endTxnMarker: ABORT coordinatorEpoch: 7"),
        (1, b"\x00\x00\x00\x00\x00\x08", "endTxnMarker: COMMIT coordinatorEpoch: 8"),
        (
            2,
            b"\x00\x00" b"\x00\x00\x00\x01" b"\x02\x00\x00\x00\x01\x00" b"\x01" b"\x00",
            'LeaderChange: {"version":0,"leaderId":1,"voters":[{"voterId":1}],"grantingVoters":[]}',
        ),
        (
            2,
            b"\x00\x01" b"\x00\x00\x00\x01" b"\x02\x00\x00\x00\x01" + ID + b"\x00" b"\x01" b"\x00",
            'LeaderChange: {"version":1,"leaderId":1,"voters":[{"voterId":1,"voterDirectoryId":"'
            + ID_TEXT
            + '"}],"grantingVoters":[]}',
        ),
        (4, b"\x00\x00\x00", 'SnapshotFooter {"version":0}'),
        (4, b"\x00", "SnapshotFooter Error at 6, skipping. the record is shorter than its version"),
        (5, b"\x00\x00\x00\x01\x00", 'KRaftVersion {"version":0,"kRaftVersion":1}'),
        (99, b"", "controlType: UNKNOWN(99)"),
    ],
)  # fmt: skip
def test_control_records(kind: int, value: bytes, shown: str) -> None:
    assert show_control_record(6, struct.pack(">hh", 0, kind), value) == shown


def test_a_control_record_that_is_broken_does_not_stop_the_dump() -> None:
    assert show_control_record(6, b"\x00\x00\x00\x03", b"\x00\x00\x01").startswith(
        "SnapshotHeader Error at 6, skipping."
    )
    assert show_control_record(6, b"", b"") == "controlType: UNKNOWN(-1)"
