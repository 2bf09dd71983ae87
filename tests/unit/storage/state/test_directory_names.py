"""Names of partition directories."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.base.types import TopicPartition
from penstock.storage.directories.names import (
    NAME_LENGTH_MAX,
    DirectoryKind,
    directory_name,
    parse_directory_name,
    suffixed_name,
)

UNIQUE = UUID(int=0xABC)


def test_kafkas_forms() -> None:
    topic_partition = TopicPartition("a.b-c", 7)
    assert directory_name(topic_partition) == "a.b-c-7"
    assert suffixed_name(topic_partition, DirectoryKind.DELETE, UNIQUE) == f"a.b-c-7.{UNIQUE.hex}-delete"
    assert suffixed_name(topic_partition, DirectoryKind.STRAY, UNIQUE) == f"a.b-c-7.{UNIQUE.hex}-stray"
    assert suffixed_name(topic_partition, DirectoryKind.FUTURE, UNIQUE) == f"a.b-c-7.{UNIQUE.hex}-future"


def test_a_long_topic_is_cut_to_what_file_systems_take() -> None:
    name = suffixed_name(TopicPartition("t" * 249, 12), DirectoryKind.DELETE, UNIQUE)
    assert len(name) == NAME_LENGTH_MAX
    parsed = parse_directory_name(name)
    assert parsed is not None
    assert (parsed.kind, parsed.topic_partition.partition) == (DirectoryKind.DELETE, 12)


@given(
    st.from_regex(r"[a-zA-Z0-9._-]{1,60}", fullmatch=True), st.integers(0, 2**31 - 1), st.sampled_from(DirectoryKind)
)
def test_names_read_back(topic: str, partition: int, kind: DirectoryKind) -> None:
    topic_partition = TopicPartition(topic, partition)
    live = kind is DirectoryKind.LIVE
    name = directory_name(topic_partition) if live else suffixed_name(topic_partition, kind, UNIQUE)
    assert parse_directory_name(name) == (topic_partition, kind)


@pytest.mark.parametrize(
    "name",
    ["lost+found", "orders", "orders-", "-3", "orders-x", "orders-0-delete", "orders-9999999999", "a b-1", "", "x-²"],
)
def test_other_directories_are_not_partitions(name: str) -> None:
    assert parse_directory_name(name) is None
