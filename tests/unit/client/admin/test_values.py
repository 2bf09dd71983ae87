"""The pure parts: descriptions of groups, hanging transactions, bit sets, salted passwords."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.base.types import TopicPartition
from penstock.client.admin import (
    AclOperation,
    AclPermission,
    ConfigResource,
    GroupState,
    GroupType,
    HangingTransaction,
    InvalidInput,
    ProducerState,
    ScramCredential,
    TransactionDescription,
    TransactionState,
)
from penstock.client.admin.asking import by_topic
from penstock.client.admin.enums import NOT_ASKED, numbered, operations, worded
from penstock.client.admin.group_descriptions import decode_assignment, decode_subscription, of_classic
from penstock.client.admin.hanging import hanging, open_too_long
from penstock.client.admin.leaders import leader_of
from penstock.client.admin.users import _upsertion
from penstock.client.core.types import Node
from penstock.protocol.codec import encode
from penstock.protocol.messages.consumer_protocol import (
    AssignmentTopicPartition,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from penstock.protocol.messages.describe_groups import DescribedGroup, DescribedGroupMember
from penstock.protocol.messages.metadata import MetadataResponsePartition, MetadataResponseTopic

TP = TopicPartition("t", 0)
topics = st.dictionaries(st.text("abc", min_size=1, max_size=3), st.sets(st.integers(0, 9), min_size=1), max_size=4)


@given(topics, st.integers(0, 3))
def test_assignments_of_every_version_are_read(assigned: dict[str, set[int]], version: int) -> None:
    message = ConsumerProtocolAssignment(
        assigned_partitions=[
            AssignmentTopicPartition(topic=topic, partitions=list(numbers)) for topic, numbers in assigned.items()
        ],
        user_data=b"x",
    )
    data = version.to_bytes(2, "big") + bytes(encode(message, version, False))
    expected = sorted(TopicPartition(topic, number) for topic, numbers in assigned.items() for number in numbers)
    assert decode_assignment(data) == tuple(expected)


@given(st.lists(st.text("abc", max_size=5), max_size=4), st.integers(0, 3))
def test_subscriptions_of_every_version_are_read(names: list[str], version: int) -> None:
    message = ConsumerProtocolSubscription(topics=names, rack_id="r" if version >= 3 else None)
    data = version.to_bytes(2, "big") + bytes(encode(message, version, False))
    assert decode_subscription(data) == tuple(sorted(names))


@given(st.binary(max_size=40))
def test_anything_may_stand_there(data: bytes) -> None:
    assert isinstance(decode_assignment(data), tuple)
    assert isinstance(decode_subscription(data), tuple)


def test_members_of_other_protocols_are_not_read() -> None:
    member = DescribedGroupMember(member_id="m", member_metadata=b"\x00\x01?", member_assignment=b"\x00\x01!")
    group = DescribedGroup(group_id="g", group_state="Stable", protocol_type="connect", members=[member])
    described = of_classic(group, Node(1, "h", 1))
    assert described.members[0].assignment == ()
    assert (described.members[0].metadata, described.members[0].raw_assignment) == (b"\x00\x01?", b"\x00\x01!")
    assert (described.type, described.state, described.is_simple) == (GroupType.CLASSIC, GroupState.STABLE, False)


def test_authorized_operations() -> None:
    assert operations(NOT_ASKED) is None
    assert operations(0) == frozenset()
    assert operations(1 << 3 | 1 << 8 | 0b111) == {AclOperation.READ, AclOperation.DESCRIBE, AclOperation.ALL}


def test_words_and_numbers_of_newer_brokers_are_unknown() -> None:
    assert numbered(AclPermission, 77) is AclPermission.UNKNOWN
    assert worded(GroupState, "Dancing") is GroupState.UNKNOWN
    assert worded(GroupType, "classic") is GroupType.CLASSIC


def test_the_leader_of_a_partition() -> None:
    topic = MetadataResponseTopic(
        name="t",
        partitions=[
            MetadataResponsePartition(partition_index=0, leader_id=4),
            MetadataResponsePartition(partition_index=1, leader_id=-1),
        ],
    )
    assert leader_of(topic, 0) == (4, 0)
    assert leader_of(topic, 1) == (-1, 5)
    assert leader_of(topic, 2) == (-1, 3)
    assert leader_of(None, 0) == (-1, 3)
    assert leader_of(MetadataResponseTopic(name="t", error_code=29), 0) == (-1, 29)


def test_partitions_by_topic() -> None:
    assert by_topic([TP, TopicPartition("u", 1), TopicPartition("t", 2)]) == {"t": [0, 2], "u": [1]}


def producer(**values: Any) -> ProducerState:
    chosen = {"transaction_start_offset": 5, "last_timestamp": 1000, **values}
    return ProducerState(producer_id=7, producer_epoch=1, last_sequence=0, coordinator_epoch=None, **chosen)


def test_only_transactions_that_are_open_for_too_long_may_hang() -> None:
    assert open_too_long({TP: [producer()]}, 2000, 1000) == []
    (found,) = open_too_long({TP: [producer()]}, 2001, 1000)
    assert (found.partition, found.producer_id, found.start_offset, found.duration_ms) == (TP, 7, 5, 1001)
    assert open_too_long({TP: [producer(transaction_start_offset=None)]}, 9000, 1000) == []


def test_a_transaction_hangs_if_its_coordinator_does_not_know_it() -> None:
    (candidate,) = open_too_long({TP: [producer()]}, 9000, 1000)

    def known(*partitions: TopicPartition) -> list[HangingTransaction]:
        described = TransactionDescription(
            transactional_id="x",
            coordinator=1,
            state=TransactionState.ONGOING,
            producer_id=7,
            producer_epoch=1,
            timeout_ms=1000,
            start_time_ms=0,
            partitions=frozenset(partitions),
        )
        return hanging([candidate], {7: described})

    assert hanging([candidate], {}) == [candidate]
    assert known() == [candidate]
    assert known(TopicPartition("t", 1)) == [candidate]
    assert known(TP) == []


def test_salted_passwords_are_those_of_rfc_7677() -> None:
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    made = _upsertion(ScramCredential(user="user", password="pencil", salt=salt))
    nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    auth = f"n=user,r=rOprNGfwEbeRWgbNEkqO,r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,c=biws,r={nonce}"
    server_key = hmac.digest(made.salted_password, b"Server Key", hashlib.sha256)
    signature = hmac.digest(server_key, auth.encode(), hashlib.sha256)
    assert base64.b64encode(signature) == b"6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_salts_are_random_and_long() -> None:
    made = [_upsertion(ScramCredential(user="user", password="pencil")) for _ in range(2)]
    assert made[0].salt != made[1].salt
    assert len(made[0].salt) >= 16


def test_a_resource_by_the_name_of_its_type() -> None:
    assert ConfigResource("topic", "t") == ConfigResource.topic("t")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=r"the type of a resource is one of .*topic.*, not str 'tpc'"):
        ConfigResource("tpc", "t")  # type: ignore[arg-type]
