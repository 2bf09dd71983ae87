"""Records of the coordinators' topics that cannot be shown: the rest of a file is shown all the same."""

from __future__ import annotations

import json

import pytest

from penstock.cli.failures import Failed
from penstock.cli.kafka.internal_formatters import UnreadableError, format_record
from penstock.cli.kafka.internal_records import decode_offsets_record, decode_share_record, decode_transaction_record
from penstock.coordinator.records.group_records import (
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitValue,
    group_metadata_record,
    offset_commit_record,
)


def test_a_commit_and_its_deletion() -> None:
    record = offset_commit_record("billing", "orders", 3, OffsetCommitValue(17, metadata="ä"))
    key, value = decode_offsets_record(0, record.key, record.value)
    assert json.loads(key) == {"type": "1", "data": {"group": "billing", "topic": "orders", "partition": 3}}
    assert value == '{"version":"4","data":{"offset":17,"leaderEpoch":-1,"metadata":"ä","commitTimestamp":0}}'
    assert decode_offsets_record(0, record.key, None) == (key, "<DELETE>")


def test_a_member_whose_bytes_are_no_consumers() -> None:
    members = (MemberMetadata(member_id="m", subscription=b"\x00\x00own", assignment=b"x"),)
    record = group_metadata_record("g", GroupMetadataValue(protocol_type="consumer", members=members))
    _, value = decode_offsets_record(0, record.key, record.value)
    (member,) = json.loads(value or "")["data"]["members"]
    assert (member["subscription"], member["assignment"]) == ("AABvd24=", "eA==")


@pytest.mark.parametrize(
    ("key", "value", "shown"),
    [
        (b"\x00\x63", b"", "Unknown record type 99 at offset 5, skipping."),
        (b"\x00", b"", "Error at offset 5, skipping. a record's key is shorter than its type"),
        (b"\x00\x01\x00\x01g\x00\x01t", b"", "Error at offset 5, skipping. the key is cut off in its partition"),
        (b"\x00\x02\x00\x01g", b"\x00\x63", "Error at offset 5, skipping. version 99"),
        (b"\x00\x02\x00\x01g", b"\x00\x03\xff", "Error at offset 5, skipping. a value of GroupMetadataLayout cannot"),
    ],
)
def test_what_cannot_be_read_is_skipped(key: bytes, value: bytes, shown: str) -> None:
    found, payload = decode_offsets_record(5, key, value)
    assert found.startswith(shown)
    assert payload is None


def test_a_record_without_a_key_is_of_another_topic() -> None:
    with pytest.raises(Failed, match=r"offset 7 has no key.*--transaction-log-decoder"):
        decode_transaction_record(7, None, b"")


@pytest.mark.parametrize(
    ("tags", "shown"),
    [
        (b"\x00", ""),
        # A null is written, for what is not there is an empty structure.
        (b"\x01\x00\x01\x00", ',"classicMemberMetadata":null'),
        (
            b"\x01\x00\x0c" b"\x01" b"\x00\x00\x00\x09" b"\x02" b"\x02r" b"\x02\xff" b"\x00" b"\x00",
            ',"classicMemberMetadata":{"sessionTimeoutMs":9,"supportedProtocols":[{"name":"r","metadata":"/w=="}]}',
        ),
    ],
)  # fmt: skip
def test_a_member_of_the_older_protocol_in_a_group_of_the_newer(tags: bytes, shown: str) -> None:
    value = b"\x00\x00\x00\x00\x02c\x02h\x01\x00\x00\x00\x00\x05\x00"
    _, payload = decode_offsets_record(0, b"\x00\x05\x00\x01g\x00\x01m", value + tags)
    assert payload == (
        '{"version":"0","data":{"instanceId":null,"rackId":null,"clientId":"c","clientHost":"h",'
        '"subscribedTopicNames":[],"subscribedTopicRegex":null,"rebalanceTimeoutMs":5,"serverAssignor":null'
        + shown
        + "}}"
    )


def test_the_state_of_a_share_group() -> None:
    key = b"\x00\x01\x00\x01g" + bytes(16) + b"\x00\x00\x00\x02"
    batch = bytes(7) + b"\x03" + bytes(7) + b"\x04" + b"\x02" + b"\x00\x01" + b"\x00"
    value = b"\x00\x00\x00\x00\x00\x05\x00\x00\x00\x06" + bytes(7) + b"\x03\x02" + batch + b"\x00"
    shown_key, shown = decode_share_record(0, key, value)
    assert shown_key == '{"type":"1","data":{"groupId":"g","topicId":"AAAAAAAAAAAAAAAAAAAAAA","partition":2}}'
    assert shown == (
        '{"version":"0","data":{"snapshotEpoch":5,"leaderEpoch":6,"startOffset":3,"stateBatches":'
        '[{"firstOffset":3,"lastOffset":4,"deliveryState":2,"deliveryCount":1}]}}'
    )
    assert decode_share_record(0, key, None) == (shown_key, "<DELETE>")
    assert decode_share_record(4, key[:-5], value) == (
        "Error at offset 4, skipping. the key is cut off in its topicId",
        None,
    )


def test_formatters_show_the_kinds_that_are_theirs() -> None:
    commit = offset_commit_record("billing", "orders", 3, OffsetCommitValue(17))
    shown = format_record("OffsetsMessageFormatter", commit.key, commit.value)
    assert shown == (
        '{"key":{"type":1,"data":{"group":"billing","topic":"orders","partition":3}},'
        '"value":{"version":4,"data":{"offset":17,"leaderEpoch":-1,"metadata":"","commitTimestamp":0}}}'
    )
    deleted = format_record("OffsetsMessageFormatter", commit.key, None)
    assert deleted is not None
    assert deleted.endswith('"value":null}')
    assert format_record("GroupMetadataMessageFormatter", commit.key, commit.value) is None
    assert format_record("OffsetsMessageFormatter", None, b"of another topic") is None
    with pytest.raises(UnreadableError, match="OffsetsMessageFormatter cannot read it: "):
        format_record("OffsetsMessageFormatter", b"\x00\x01\x00", b"")
