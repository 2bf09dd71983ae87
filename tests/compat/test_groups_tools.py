"""``kafka-consumer-groups``: lists, describes, resets and deletes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.compat.admin import create_topic
from tests.compat.clients.base import Record
from tests.compat.clients.registry import CLIENTS
from tests.compat.committing import COMMITTERS, Commit
from tests.compat.groups import PROGRAMS, GroupAdmin, GroupWatch, Host
from tests.support.java import ToolResult, shared_peer

RECORDS = 10


@pytest.fixture
def tool(bootstrap: str) -> Callable[..., ToolResult]:
    def run(*arguments: str) -> ToolResult:
        return shared_peer().tool("consumer.group.ConsumerGroupCommand", "--bootstrap-server", bootstrap, *arguments)

    return run


def rows(result: ToolResult) -> list[dict[str, str]]:
    """A printed table as one mapping per line."""
    assert result.code == 0, result
    lines = [line.split() for line in result.text.splitlines() if line.strip()]
    head = next(index for index, line in enumerate(lines) if line[0] in ("GROUP", "TOPIC"))
    return [dict(zip(lines[head], line, strict=False)) for line in lines[head + 1 :]]


def offsets(result: ToolResult) -> dict[int, str]:
    """By partition, the new or current offset."""
    found = rows(result)
    column = "NEW-OFFSET" if found and "NEW-OFFSET" in found[0] else "CURRENT-OFFSET"
    return {int(row["PARTITION"]): row[column] for row in found}


@pytest.fixture
def group(bootstrap: str, topic: str) -> str:
    """A group without members, which has read a part of its topic of two partitions."""
    create_topic(bootstrap, topic, 2)
    now = int(time.time() * 1000)
    for partition in range(2):
        records = [Record(None, b"%d" % index, (), now - 60_000 + 1000 * index) for index in range(RECORDS)]
        CLIENTS["confluent-kafka"].write(bootstrap, topic, records, partition=partition)
    COMMITTERS["confluent-kafka"].commit(bootstrap, topic, topic, {0: Commit(4), 1: Commit(7)})
    return topic


@pytest.fixture
def active(bootstrap: str, group: str, tmp_path: Path) -> Iterator[GroupWatch]:
    """The same group with two members."""
    host = Host(PROGRAMS["confluent-kafka"], tmp_path / "members.log")
    watch = GroupWatch(group, group, 2, "range")
    for _ in range(2):
        host.join(watch, bootstrap)
    GroupAdmin(bootstrap).wait_until_stable([watch])
    yield watch
    host.kill()


def test_list(tool: Callable[..., ToolResult], group: str) -> None:
    assert group in tool("--list").text.split()
    (listed,) = [row for row in rows(tool("--list", "--state")) if row["GROUP"] == group]
    assert listed["STATE"] == "Empty"
    assert group in tool("--list", "--state", "empty").text
    assert group not in tool("--list", "--state", "stable").text
    assert group in tool("--list", "--type", "classic").text


def test_describe_without_members(tool: Callable[..., ToolResult], group: str) -> None:
    described = tool("--describe", "--group", group)
    assert f"Consumer group '{group}' has no active members" in described.stderr + described.text
    seen = {(row["PARTITION"], row["CURRENT-OFFSET"], row["LOG-END-OFFSET"], row["LAG"]) for row in rows(described)}
    assert seen == {("0", "4", "10", "6"), ("1", "7", "10", "3")}
    (state,) = rows(tool("--describe", "--group", group, "--state"))
    assert "Empty" in state.values()


def test_describe_with_members(tool: Callable[..., ToolResult], active: GroupWatch) -> None:
    found = rows(tool("--describe", "--group", active.group))
    assert {row["PARTITION"] for row in found} == {"0", "1"}
    assert all(row["CLIENT-ID"] == "rdkafka" and row["HOST"] == "/127.0.0.1" for row in found)
    members = rows(tool("--describe", "--group", active.group, "--members"))
    assert [row["#PARTITIONS"] for row in members] == ["1", "1"]
    assert all("rdkafka" in row["CONSUMER-ID"] for row in members)
    verbose = tool("--describe", "--group", active.group, "--members", "--verbose").text
    assert f"{active.group}:0" in verbose or f"{active.group}(0)" in verbose
    (state,) = rows(tool("--describe", "--group", active.group, "--state"))
    assert {"Stable", "range", "2"} <= set(" ".join(state.values()).split())


def test_unknown_group(tool: Callable[..., ToolResult]) -> None:
    described = tool("--describe", "--group", "nobody")
    assert "GroupIdNotFoundException" in described.text + described.stderr
    deleted = tool("--delete", "--group", "nobody")
    assert "GroupIdNotFoundException" in deleted.text + deleted.stderr


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        (["--to-earliest"], {0: "0", 1: "0"}),
        (["--to-latest"], {0: "10", 1: "10"}),
        (["--to-offset", "5"], {0: "5", 1: "5"}),
        (["--shift-by", "-2"], {0: "2", 1: "5"}),
        (["--shift-by", "100"], {0: "10", 1: "10"}),
        (["--to-current"], {0: "4", 1: "7"}),
        (["--by-duration", "PT1H"], {0: "0", 1: "0"}),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_reset(tool: Callable[..., ToolResult], group: str, how: list[str], expected: dict[int, str]) -> None:
    arguments = ["--reset-offsets", "--group", group, "--topic", group, *how]
    planned = tool(*arguments, "--dry-run")
    assert offsets(planned) == expected
    assert offsets(tool("--describe", "--group", group)) == {0: "4", 1: "7"}
    assert offsets(tool(*arguments, "--execute")) == expected
    assert offsets(tool("--describe", "--group", group)) == expected


def test_reset_to_a_time_and_from_a_file(
    tool: Callable[..., ToolResult], bootstrap: str, topic: str, tmp_path: Path
) -> None:
    create_topic(bootstrap, topic)
    start = int(time.time()) * 1000 - 60_000
    records = [Record(None, b"%d" % index, (), start + 1000 * index) for index in range(RECORDS)]
    CLIENTS["confluent-kafka"].write(bootstrap, topic, records)
    moment = datetime.fromtimestamp((start + 3000) / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    arguments = ["--reset-offsets", "--group", topic, "--execute"]
    assert offsets(tool(*arguments, "--topic", topic, "--to-datetime", moment)) == {0: "3"}
    plan = tmp_path / "plan.csv"
    plan.write_text(f"{topic},0,8\n")
    assert offsets(tool(*arguments, "--from-file", str(plan))) == {0: "8"}
    assert COMMITTERS["confluent-kafka"].committed(bootstrap, topic, topic, 0) == Commit(8)


def test_an_active_group_is_neither_reset_nor_deleted(tool: Callable[..., ToolResult], active: GroupWatch) -> None:
    reset = tool("--reset-offsets", "--group", active.group, "--topic", active.topic, "--to-earliest", "--execute")
    assert "Stable" in reset.text + reset.stderr
    deleted = tool("--delete", "--group", active.group)
    assert "GroupNotEmptyException" in deleted.text + deleted.stderr
    kept = tool("--delete-offsets", "--group", active.group, "--topic", active.topic)
    assert "subscribed" in (kept.text + kept.stderr).lower()


def test_delete_offsets_and_group(tool: Callable[..., ToolResult], bootstrap: str, group: str) -> None:
    done = tool("--delete-offsets", "--group", group, "--topic", f"{group}:1")
    assert "Successful" in done.text, done
    assert COMMITTERS["confluent-kafka"].committed(bootstrap, group, group, 1) is None
    assert COMMITTERS["confluent-kafka"].committed(bootstrap, group, group, 0) == Commit(4)
    assert f"('{group}') was successful" in tool("--delete", "--group", group).text
    assert group not in tool("--list").text.split()
