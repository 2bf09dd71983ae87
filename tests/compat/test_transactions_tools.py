"""``kafka-transactions`` on open and finished transactions, and DumpLogSegments on the coordinators' topics."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.compat.admin import create_topic
from tests.compat.committing import COMMITTERS, Commit
from tests.compat.groups import PROGRAMS, GroupAdmin, GroupWatch, Host, eventually
from tests.compat.test_dump_log_segments import complaints, dump
from tests.compat.test_transactions import Producer, committed_values
from tests.support.brokers import Broker, make_target
from tests.support.java import ToolResult, shared_peer

OPEN, DONE, DROPPED = "open-one", "done-one", "dropped-one"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker of its own: the tests count its transactions."""
    overrides = {"transaction.state.log.num.partitions": "4", "offsets.topic.num.partitions": "4"}
    target = make_target(tmp_path_factory.mktemp("transactions"), overrides)
    target.start()
    yield target
    target.kill()


@pytest.fixture(scope="module")
def opened(broker: Broker) -> Producer:
    """One transaction is open, one was committed, one aborted; beside them a group with commits and members."""
    create_topic(broker.bootstrap, "t", 2)
    Producer(broker.bootstrap, DONE).write("t", "done")
    dropped = Producer(broker.bootstrap, DROPPED)
    dropped.begin("t", "dropped", partition=1)
    dropped.producer.abort_transaction(30)
    open_one = Producer(broker.bootstrap, OPEN, timeout_ms=600_000)
    open_one.begin("t", "open", partition=1)
    return open_one


@pytest.fixture
def tool(broker: Broker, opened: Producer) -> Callable[..., ToolResult]:
    def run(*arguments: str) -> ToolResult:
        return shared_peer().tool("TransactionsCommand", "--bootstrap-server", broker.bootstrap, *arguments)

    return run


def table(result: ToolResult) -> list[dict[str, str]]:
    assert result.code == 0, result
    lines = [line.rstrip().split("\t") for line in result.text.splitlines() if line.strip()]
    names = [name.strip() for name in lines[0]]
    return [dict(zip(names, (cell.strip() for cell in line), strict=False)) for line in lines[1:]]


def test_list(tool: Callable[..., ToolResult]) -> None:
    states = {row["TransactionalId"]: row["TransactionState"] for row in table(tool("list"))}
    assert states == {OPEN: "Ongoing", DONE: "CompleteCommit", DROPPED: "CompleteAbort"}
    long_running = table(tool("list", "--duration-filter", "3600000"))
    assert [row for row in long_running if row["TransactionalId"] == OPEN] == []


def test_describe(tool: Callable[..., ToolResult]) -> None:
    (row,) = table(tool("describe", "--transactional-id", OPEN))
    assert row["TransactionState"] == "Ongoing"
    assert row["TransactionTimeoutMs"] == "600000"
    assert row["TopicPartitions"] == "t-1"
    assert int(row["ProducerId"]) >= 0
    (done,) = table(tool("describe", "--transactional-id", DONE))
    assert done["TransactionState"] == "CompleteCommit"
    unknown = tool("describe", "--transactional-id", "nobody")
    assert unknown.code == 1
    assert "the ID could not be found" in unknown.stderr


def test_describe_producers(tool: Callable[..., ToolResult]) -> None:
    found = table(tool("describe-producers", "--topic", "t", "--partition", "1"))
    open_ones = [row for row in found if row["CurrentTransactionStartOffset"] != "None"]
    assert len(found) == 2
    # The aborted record and its marker come first.
    assert [row["CurrentTransactionStartOffset"] for row in open_ones] == ["2"]
    assert {row["ProducerEpoch"] for row in found} <= {"0", "1"}


def test_find_hanging(tool: Callable[..., ToolResult]) -> None:
    """None hangs: the coordinator knows of the one that is open."""
    found = tool("find-hanging", "--topic", "t", "--max-transaction-timeout", "0")
    assert table(found) == []


def test_abort(tool: Callable[..., ToolResult], broker: Broker) -> None:
    """The tool ends an open transaction by its place in the log, and readers go on."""
    create_topic(broker.bootstrap, "aborted-by-tool")
    owner = Producer(broker.bootstrap, "ended-by-tool", timeout_ms=600_000)
    owner.begin("aborted-by-tool", "never")
    assert committed_values(broker.bootstrap, "aborted-by-tool") == []
    done = tool("abort", "--topic", "aborted-by-tool", "--partition", "0", "--start-offset", "0")
    assert done.code == 0, done
    Producer(broker.bootstrap, "another").write("aborted-by-tool", "after")
    assert committed_values(broker.bootstrap, "aborted-by-tool") == ["after"]


def decoded(broker: Broker, topic: str, option: str) -> str:
    """What DumpLogSegments makes of all partitions of an internal topic."""
    files = sorted(broker.data_dir.glob(f"{topic}-*/*.log"))
    assert files, f"no segment of {topic} below {broker.data_dir}"
    result = dump(files, "--print-data-log", option)
    assert complaints(result) == []
    return result.text


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Broker:
    """A stopped broker that has seen groups, commits and transactions."""
    directory = tmp_path_factory.mktemp("decoded")
    target = make_target(directory, {"transaction.state.log.num.partitions": "2", "offsets.topic.num.partitions": "2"})
    target.start()
    try:
        fill(target, directory)
    finally:
        target.stop()
    return target


def fill(broker: Broker, directory: Path) -> None:
    bootstrap = broker.bootstrap
    create_topic(bootstrap, "t", 2)
    COMMITTERS["java"].commit(bootstrap, "by-hand", "t", {1: Commit(42, "with metadata")})
    host = Host(PROGRAMS["confluent-kafka"], directory / "members.log")
    watch = GroupWatch("with-members", "t", 2, "range")
    member = host.join(watch, bootstrap)
    GroupAdmin(bootstrap).wait_until_stable([watch])
    host.leave(member)
    eventually(lambda: not watch.current(), 20, lambda: "the member did not leave")
    host.kill()
    producer = Producer(bootstrap, "decoded-id")
    producer.write("t", "committed")
    producer.begin("t", "aborted", partition=1)
    producer.producer.abort_transaction(30)
    peer = shared_peer()
    peer.call(op="transactions_open", bootstrap=bootstrap, name="decoded", transactional_id="decoded-java")
    peer.call(
        op="transactions_run", name="decoded", topic="t", values=["x"], end="commit", group="in-a-transaction",
        offsets={"0": [7, "sealed"]},
    )  # fmt: skip
    peer.call(op="transactions_close", name="decoded")
    time.sleep(0.2)


def test_offsets_are_decoded(stopped: Broker) -> None:
    text = decoded(stopped, "__consumer_offsets", "--offsets-decoder")
    commits = re.findall(
        r'"group":"([^"]+)","topic":"t","partition":(\d).*?"offset":(\d+).*?"metadata":"([^"]*)"', text
    )
    assert ("by-hand", "1", "42", "with metadata") in commits
    assert ("in-a-transaction", "0", "7", "sealed") in commits
    groups = [line for line in text.splitlines() if '"type":"2"' in line and '"group":"with-members"' in line]
    assert groups, text
    stable = next(line for line in groups if '"memberId"' in line)
    assert '"protocolType":"consumer","generation":1,"protocol":"range","leader":"rdkafka-' in stable
    assert '"subscription":{"topics":["t"]' in stable
    assert '"assignment":{"assignedPartitions":[{"topic":"t","partitions":[0,1]}]' in stable
    # Without members the group stays, empty.
    assert '"members":[]' in groups[-1]
    assert "endTxnMarker: COMMIT" in text


def test_transactions_are_decoded(stopped: Broker) -> None:
    """Every state that a transaction went through, by Kafka's numbers for them."""
    text = decoded(stopped, "__transaction_state", "--transaction-log-decoder")
    empty, ongoing, prepare_commit, prepare_abort, complete_commit, complete_abort = range(6)
    found = re.findall(r'"transactionalId":"([^"]+)".*?"transactionStatus":(\d)', text)
    states = [int(status) for name, status in found if name == "decoded-id"]
    assert states == [
        *(empty, ongoing, prepare_commit, complete_commit),
        *(ongoing, prepare_abort, complete_abort),
    ]
    # The newer protocol, by the Java client, leaves its mark.
    newer = [line for line in text.splitlines() if '"transactionalId":"decoded-java"' in line]
    assert [int(status) for name, status in found if name == "decoded-java"][-2:] == [prepare_commit, complete_commit]
    assert all('"clientTransactionVersion":2' in line for line in newer[1:])
