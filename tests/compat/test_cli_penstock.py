"""The `penstock` command against both brokers: the same lines, the same answers; and what only Kafka serves so far."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock import AclBinding, AclOperation, AclPermission, Admin, Consumer, ResourceType
from tests.compat.hanging import write_hanging
from tests.support.brokers import ROOT, Broker, KafkaBroker, PenstockBroker

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module", params=["penstock", "kafka"])
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    directory = tmp_path_factory.mktemp(request.param)
    # Transactions of which no coordinator knows are let pass, so that one can hang.
    settings = {"transaction.partition.verification.enable": "false"}
    broker: Broker = PenstockBroker(directory, settings)
    if request.param == "kafka":
        authorizer = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
        settings |= {"authorizer.class.name": authorizer, "allow.everyone.if.no.acl.found": "true"}
        broker = KafkaBroker(directory, settings)
    broker.start()
    yield broker
    broker.stop()


@pytest.fixture
def tool(cluster: Broker) -> Run:
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "src"),
        "PENSTOCK_BOOTSTRAP_SERVER": cluster.bootstrap,
        "XDG_CONFIG_HOME": "/nonexistent",
    }

    def call(*arguments: str | Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "penstock", *map(str, arguments)],
            env=environment,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return done

    return call


def document(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def refused(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stderr.startswith("error: ")
    return done.stderr


def test_topics_grow_and_change(tool: Run, topic: str) -> None:
    document(tool("topics", "create", topic, "-p", "2"))
    assert document(tool("topics", "alter", topic, "-p", "4", "--dry-run"))[0]["result"] == "valid"
    document(tool("topics", "alter", topic, "-p", "4", "-c", "retention.ms=12345"))
    (described,) = document(tool("topics", "describe", topic))
    assert len(described["partitions"]) == 4
    assert described["configs"] == {"retention.ms": "12345"}
    document(tool("topics", "alter", topic, "--delete-config", "retention.ms"))
    assert document(tool("topics", "describe", topic))[0]["configs"] == {}
    assert "increase" in refused(tool("topics", "alter", topic, "-p", "2"))
    assert "does not exist" in refused(tool("topics", "alter", topic + "-not", "-p", "9"))


def test_configs(tool: Run, topic: str) -> None:
    document(tool("topics", "create", topic))
    document(tool("configs", "set", "topic", topic, "max.message.bytes=1048576"))
    document(tool("configs", "set", "topic", topic, "cleanup.policy=compact", "--append"))

    def value(key: str) -> str:
        (row,) = document(tool("configs", "describe", "topic", topic, "-k", key))
        return str(row["value"])

    assert value("max.message.bytes") == "1048576"
    assert value("cleanup.policy") == "delete,compact"
    document(tool("configs", "set", "topic", topic, "cleanup.policy=delete", "--subtract"))
    assert value("cleanup.policy") == "compact"
    document(tool("configs", "delete", "topic", topic, "max.message.bytes"))
    assert value("max.message.bytes") == "1048588"
    assert "no.such" in refused(tool("configs", "set", "topic", topic, "no.such=1"))


def test_records_are_deleted(tool: Run, topic: str) -> None:
    document(tool("topics", "create", topic))
    assert tool("produce", topic, stdin="a\nb\nc\n").returncode == 0
    assert "ends at offset 3" in refused(tool("records", "delete", f"{topic}:0=4", "-y"))
    assert "--yes" in refused(tool("records", "delete", f"{topic}:0=2"))
    (row,) = document(tool("records", "delete", f"{topic}:0=2", "-y"))
    assert row["first_offset"] == 2
    assert tool("consume", topic, "-e", "-f", "%s").stdout == "c"


def test_elections_and_moves(tool: Run, topic: str) -> None:
    document(tool("topics", "create", topic))
    assert document(tool("elect-leaders", f"{topic}:0")) == [{"topic": topic, "partition": 0, "elected": False}]
    assert document(tool("reassign", "move", f"{topic}:0=1", "-y"))[0]["to"] == [1]
    assert document(tool("reassign", "list")) == []
    assert "broker 7" in refused(tool("reassign", "move", f"{topic}:0=7", "-y"))
    assert document(tool("elect-leaders", f"{topic}:0", "--unclean", "-y"))[0]["elected"] is False
    assert "will not elect leaders" in refused(tool("elect-leaders", f"{topic}:0", "--unclean"))
    assert f"{topic}-0" in refused(tool("reassign", "cancel", f"{topic}:0", "-y")), "nothing is being moved"


def test_a_hanging_transaction_is_found_and_aborted(tool: Run, topic: str, cluster: Broker) -> None:
    document(tool("topics", "create", topic))
    assert document(tool("transactions", "find-hanging", "-t", topic)) == []
    write_hanging(cluster, topic)
    (found,) = document(tool("transactions", "find-hanging", "-t", topic, "--older-than", "0s"))
    assert (found["producer_id"], found["start_offset"]) == (4711, 0)
    assert "began at offset 7" in refused(tool("transactions", "abort", f"{topic}:0", "--start-offset", "7", "-y"))
    assert "--yes" in refused(tool("transactions", "abort", f"{topic}:0", "--start-offset", "0"))
    (done,) = document(tool("transactions", "abort", f"{topic}:0", "--start-offset", "0", "-y"))
    assert (done["producer_id"], done["result"]) == (4711, "aborted")
    assert document(tool("transactions", "find-hanging", "-t", topic, "--older-than", "0s")) == []


def test_offsets_of_a_group_with_members_are_theirs(tool: Run, topic: str, cluster: Broker) -> None:
    document(tool("topics", "create", topic))
    with Consumer(bootstrap_servers=cluster.bootstrap, group_id=topic) as member:
        member.subscribe([topic])
        while not member.assignment():
            member.poll(100)
        reset = ("groups", "reset-offsets", topic, "-t", topic, "--to-latest")
        assert topic in refused(tool(*reset, "--execute"))
        assert "members" in refused(tool(*reset, "--execute"))
        assert topic in refused(tool("groups", "delete", topic, "-y"))


def test_groups_and_files(tool: Run, topic: str, cluster: Broker) -> None:
    document(tool("topics", "create", topic))
    assert tool("produce", topic, stdin="a\nb\nc\n").returncode == 0
    assert tool("consume", topic, "-g", f"{topic}-g", "-n", "2", "-f", "%s").stdout == "ab"
    assert document(tool("groups", "describe", f"{topic}-g"))[0]["lag"] == 1
    (row,) = document(tool("groups", "reset-offsets", f"{topic}-g", "--all-topics", "--to-latest", "--execute"))
    assert (row["old_offset"], row["new_offset"]) == (2, 3)
    assert document(tool("groups", "delete", f"{topic}-g", "-y"))[0]["result"] == "deleted"
    dumped = tool("log", "dump", cluster.partition_dir(topic), "-r")
    assert dumped.returncode == 0
    assert [json.loads(line)["value"] for line in dumped.stdout.splitlines() if '"value"' in line] == ["a", "b", "c"]


def test_no_permission(tool: Run, topic: str, cluster: Broker) -> None:
    if isinstance(cluster, PenstockBroker):
        pytest.skip("the Penstock broker has no access rules yet")
    document(tool("topics", "create", topic))
    denied = AclBinding(
        resource_type=ResourceType.TOPIC,
        resource_name=topic,
        principal="User:ANONYMOUS",
        operation=AclOperation.ALL,
        permission=AclPermission.DENY,
    )
    with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        admin.create_acls([denied])
    for arguments in (("topics", "describe"), ("topics", "delete", "-y"), ("consume", "-e"), ("produce", "-v", "x")):
        told = refused(tool(*arguments, topic))
        assert topic in told
        assert "ACL" in told or "uthoriz" in told
