"""The `penstock` command's nouns against a live broker, as a person or a script uses them."""

from __future__ import annotations

import base64
import json
import os
import pty
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock import Producer
from tests.support import peers
from tests.support.brokers import ROOT, PenstockBroker
from tests.support.ports import free_port

COMMAND = [sys.executable, "-m", "penstock"]
ENVIRONMENT = {"PYTHONPATH": str(ROOT / "src"), "PYTHONUNBUFFERED": "1", "XDG_CONFIG_HOME": "/nonexistent"}

Run = Callable[..., subprocess.CompletedProcess[str]]


def run(*arguments: str | Path, stdin: str | bytes = "", **environment: str) -> subprocess.CompletedProcess[str]:
    data = stdin.encode() if isinstance(stdin, str) else stdin
    done = subprocess.run(
        [*COMMAND, *map(str, arguments)],
        env={**os.environ, **ENVIRONMENT, **environment},
        input=data,
        capture_output=True,
        timeout=100,
        check=False,
    )
    out, err = done.stdout.decode(), done.stderr.decode()
    assert "Traceback" not in err, err
    return subprocess.CompletedProcess(done.args, done.returncode, out, err)


@pytest.fixture
def tool(broker: PenstockBroker) -> Run:
    def call(*arguments: str | Path, stdin: str | bytes = "") -> subprocess.CompletedProcess[str]:
        return run(*arguments, stdin=stdin, PENSTOCK_BOOTSTRAP_SERVER=broker.bootstrap)

    return call


def good(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def document(done: subprocess.CompletedProcess[str]) -> Any:
    return json.loads(good(done))


def refused(done: subprocess.CompletedProcess[str], *, code: int = 1) -> str:
    """One sentence on stderr, nothing on stdout."""
    assert done.returncode == code, done.stdout + done.stderr
    assert done.stdout == ""
    if code == 1:
        assert done.stderr.startswith("error: ")
        assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    return done.stderr


# -- Topics --------------------------------------------------------------------------------------------------------


def test_topics_from_creation_to_deletion(tool: Run, topic: str) -> None:
    (created,) = document(tool("topics", "create", topic, "-p", "3", "-c", "retention.ms=99000"))
    assert created == {"topic": topic, "result": "created", "partitions": 3, "replicas": 1}
    assert topic in good(tool("topics", "list", "--names")).split()
    (listed,) = [each for each in document(tool("topics", "list")) if each["topic"] == topic]
    assert (listed["partitions"], listed["replicas"], listed["under_replicated"]) == (3, 1, 0)
    (described,) = document(tool("topics", "describe", topic))
    assert described["configs"] == {"retention.ms": "99000"}
    assert [each["next_offset"] for each in described["partitions"]] == [0, 0, 0]
    assert document(tool("topics", "create", topic, "--if-not-exists")) == [{"topic": topic, "result": "exists"}]
    assert "--yes" in refused(tool("topics", "delete", topic))
    assert document(tool("topics", "delete", topic, "-y")) == [{"topic": topic, "result": "deleted"}]
    assert "does not exist" in refused(tool("topics", "delete", topic, "-y"))
    assert document(tool("topics", "delete", topic, "-y", "--if-exists"))[0]["result"] == "missing"


def test_formats(tool: Run, topic: str) -> None:
    good(tool("topics", "create", topic, "-p", "2"))
    table = good(tool("topics", "describe", topic, "-o", "table"))
    assert f"topic        {topic}" in table
    assert "PARTITION  LEADER" in table
    assert "\x1b" not in table
    lines = good(tool("topics", "describe", topic, "-o", "csv")).splitlines()
    assert lines[0].startswith("topic,partition,leader,")
    assert len(lines) == 3
    for line in good(tool("topics", "list", "-o", "jsonl")).splitlines():
        assert "topic" in json.loads(line)


def test_every_result_can_be_csv(tool: Run, topic: str) -> None:
    created = good(tool("topics", "create", topic, "-o", "csv"))
    assert created.splitlines() == ["topic,result,partitions,replicas", f"{topic},created,1,1"]
    assert good(tool("perf", "produce", topic, "-n", "10", "-o", "csv")).startswith("records,bytes,seconds,")


def test_a_dry_run_creates_nothing(tool: Run, topic: str) -> None:
    assert document(tool("topics", "create", topic, "--dry-run"))[0]["result"] == "valid"
    assert topic not in good(tool("topics", "list", "--names")).split()


def test_a_broken_sentence_is_told_with_what_to_do(tool: Run, topic: str) -> None:
    told = refused(tool("topics", "describe", topic))
    assert told == f"error: {told.removeprefix('error: ').strip()}\n"
    assert told.count(topic) == 1
    good(tool("topics", "create", topic, "-c", "cleanup.policy=compact"))
    told = refused(tool("topics", "create", topic))
    assert told.count(topic) == 1
    assert "(--if-not-exists" in told
    told = refused(tool("records", "delete", f"{topic}:0=end", "-y"))
    assert "only topics whose cleanup.policy has `delete`" in told
    assert told.count(topic) == 1


def test_an_unknown_key_of_a_broker_is_told_of(tool: Run) -> None:
    """A broker takes any, since a plugin might want it."""
    done = tool("configs", "set", "broker", "default", "compression.typ=gzip", "--dry-run")
    assert not document(done)[0]["applied"]
    assert "did you mean compression.type?" in done.stderr
    done = tool("configs", "set", "broker", "default", "compression.type=gzip", "--dry-run")
    good(done)
    assert done.stderr == ""


def test_csv_of_nothing_and_of_truth(tool: Run, topic: str) -> None:
    good(tool("topics", "create", topic))
    assert good(tool("elect-leaders", "--all", "-o", "csv")).splitlines()[0] == "topic,partition,elected"
    assert ",false" in good(tool("topics", "list", "-o", "csv"))
    assert "will not move 1 partition without" in refused(tool("reassign", "move", f"{topic}:0=1"))


def test_several_failures_are_told_one_by_one(tool: Run, topic: str) -> None:
    good(tool("topics", "create", topic))
    done = tool("topics", "create", topic, "in valid")
    assert done.returncode == 1
    assert [line[:7] for line in done.stderr.splitlines()] == ["error: ", "error: "]


# -- Producing and consuming ---------------------------------------------------------------------------------------


def test_lines_in_and_out(tool: Run, topic: str) -> None:
    good(tool("produce", topic, stdin="one\ntwo\r\n\nlast without an end"))
    assert good(tool("consume", topic, "-e", "-f", "%o=%s;")) == "0=one;1=two;2=;3=last without an end;"


def test_keys_headers_timestamps_and_tombstones(tool: Run, topic: str) -> None:
    reports = good(
        tool(
            "produce", topic, "-K", ":", "--null", "NULL", "-H", "source=test", "-t", "1790000000000", "--report",
            stdin="a:1:2\nb:NULL\n",
        )
    ).splitlines()  # fmt: skip
    assert [json.loads(line)["offset"] for line in reports] == [0, 1]
    first, second = (json.loads(line) for line in good(tool("consume", topic, "-e")).splitlines())
    assert first == {
        "topic": topic,
        "partition": 0,
        "offset": 0,
        "timestamp": 1790000000000,
        "key": "a",
        "value": "1:2",
        "headers": [{"name": "source", "value": "test"}],
    }
    assert second["value"] is None
    shown = good(tool("consume", topic, "-e", "-f", r"%t %p %o %T %d %k %K %s %S %h%%\x41\n"))
    assert shown.splitlines()[0] == f"{topic} 0 0 1790000000000 2026-09-21T14:13:20.000Z a 1 1:2 3 source=test%A"
    assert shown.splitlines()[1].endswith("b 1  -1 source=test%A")


def test_json_lines_copy_a_topic_without_loss(tool: Run, topic: str) -> None:
    raw = bytes(range(256))
    good(tool("produce", topic, "--whole", "-k", "k", stdin=raw))
    good(tool("produce", topic, "--json", stdin='{"value": {"a": [1, "ü"]}, "headers": {"h": null}}\n'))
    copied = good(tool("consume", topic, "-e"))
    good(tool("produce", topic + "-copy", "--json", stdin=copied))
    again = [json.loads(line) for line in good(tool("consume", topic + "-copy", "-e")).splitlines()]
    before = [json.loads(line) for line in copied.splitlines()]
    assert [{**each, "topic": topic} for each in again] == before
    assert base64.b64decode(before[0]["value_base64"]) == raw
    assert before[1]["value"] == '{"a":[1,"ü"]}'
    assert before[1]["headers"] == [{"name": "h", "value": None}]


def test_bounds(tool: Run, topic: str) -> None:
    for number in range(6):
        good(tool("produce", topic, "-v", str(number), "-t", str(1790000000000 + number * 1000)))

    def values(*options: str) -> str:
        return good(tool("consume", topic, "-f", "%s", *options))

    assert values("-e", "--from-offset", "2", "--to-offset", "4") == "23"
    assert values("--tail", "2", "-e") == "45"
    assert values("-n", "3") == "012"
    assert values("--from-time", "1790000003000", "-e") == "345"
    assert values("--to-time", "2026-09-21T14:13:22Z") == "01"
    assert values("--from-offset", "99", "-e") == ""
    assert values("--from-end", "--idle-timeout", "300ms") == ""
    assert "no partition 7" in refused(tool("consume", topic, "-p", "7", "-e"))
    assert "one place" in refused(tool("consume", topic, "--tail", "1", "--from-beginning"), code=2)


def test_a_group_goes_on_where_it_was(tool: Run, topic: str) -> None:
    group = f"{topic}-g"
    good(tool("produce", topic, stdin="a\nb\nc\nd\n"))
    assert good(tool("consume", topic, "-g", group, "-n", "3", "-f", "%s")) == "abc"
    assert good(tool("consume", topic, "-g", group, "-e", "-f", "%s")) == "d"
    (described,) = document(tool("groups", "describe", group))
    assert (described["state"], described["lag"], described["partitions"][0]["offset"]) == ("Empty", 0, 4)
    assert "leave the bounds out" in refused(tool("consume", topic, "-g", group, "--tail", "1"), code=2)


def test_bad_records_are_told_with_their_line(tool: Run, topic: str) -> None:
    told = refused(tool("produce", topic, "--json", stdin='{"value": 1}\n{"key": 1}\n'))
    assert "line 2" in told
    assert "has no value" in told
    assert "line 1" in refused(tool("produce", topic, "--json", stdin="[1]\n"))
    assert "between a key and a value" in refused(tool("produce", topic, "-K", ":", stdin="no separator\n"))


def test_a_reader_that_goes_away_is_no_error(tool: Run, broker: PenstockBroker, topic: str) -> None:
    good(tool("produce", topic, stdin="x" * 500 + "\n" + ("y" * 500 + "\n") * 5000))
    shell = f"{sys.executable} -m penstock consume {topic} -b {broker.bootstrap} | head -n 1"
    done = subprocess.run(
        ["sh", "-c", shell], env={**os.environ, **ENVIRONMENT}, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == 1


def test_ctrl_c_ends_quietly(tool: Run, broker: PenstockBroker, topic: str) -> None:
    good(tool("produce", topic, "-v", "seen"))
    process = subprocess.Popen(
        [*COMMAND, "consume", topic, "-b", broker.bootstrap, "-f", r"%s\n"],
        env={**os.environ, **ENVIRONMENT},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "seen\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "")


def test_isolation(tool: Run, broker: PenstockBroker, topic: str) -> None:
    good(tool("topics", "create", topic))
    with Producer(bootstrap_servers=broker.bootstrap, transactional_id=topic) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"aborted")
        producer.flush()
        producer.abort_transaction()
        producer.begin_transaction()
        producer.send(topic, b"committed")
        producer.commit_transaction()
        (described,) = document(tool("transactions", "describe", topic))
        assert described["state"] == "CompleteCommit"
    assert good(tool("consume", topic, "-e", "-f", "%s ")) == "aborted committed "
    assert good(tool("consume", topic, "-e", "-f", "%s ", "--isolation", "read_committed")) == "committed "
    assert document(tool("transactions", "fence", topic, "-y")) == [{"transactional_id": topic, "result": "fenced"}]


def test_a_tail_is_of_records_and_not_of_offsets(tool: Run, broker: PenstockBroker, topic: str) -> None:
    """The last offsets of a transaction are its markers."""
    good(tool("topics", "create", topic, "-p", "2"))
    with Producer(bootstrap_servers=broker.bootstrap, transactional_id=topic) as producer:
        producer.init_transactions()
        for number in range(5):
            producer.begin_transaction()
            producer.send(topic, str(number).encode(), partition=0)
            producer.commit_transaction()
    for count, expected in ((1, "4"), (3, "234"), (9, "01234")):
        assert good(tool("consume", topic, "--tail", str(count), "-e", "-f", "%s")) == expected
    assert good(tool("consume", topic, "--tail", "2", "-n", "2", "-f", "%s")) == "34"


def test_an_end_behind_the_end_of_a_partition_is_not_waited_for(tool: Run, topic: str) -> None:
    good(tool("topics", "create", topic, "-p", "2"))
    good(tool("produce", topic, "-p", "0", stdin="a\nb\nc\n"))
    assert good(tool("consume", topic, "--to-offset", "2", "-f", "%s")) == "ab"
    assert good(tool("consume", topic, "--to-offset", "99", "-f", "%s")) == "abc"


# -- Groups --------------------------------------------------------------------------------------------------------


def test_reset_offsets_is_a_dry_run_unless_told(tool: Run, topic: str) -> None:
    group = f"{topic}-g"
    good(tool("produce", topic, stdin="a\nb\nc\nd\n"))
    good(tool("consume", topic, "-g", group, "-n", "4"))
    done = tool("groups", "reset-offsets", group, "--all-topics", "--to-earliest")
    assert document(done) == [{"topic": topic, "partition": 0, "old_offset": 4, "new_offset": 0}]
    assert "--execute" in done.stderr
    assert document(tool("groups", "describe", group))[0]["lag"] == 0
    good(tool("groups", "reset-offsets", group, "-t", f"{topic}:0", "--shift-by", "-3", "--execute"))
    assert document(tool("groups", "describe", group))[0]["lag"] == 3
    assert good(tool("consume", topic, "-g", group, "-e", "-f", "%s")) == "bcd"
    assert "say one place" in refused(
        tool("groups", "reset-offsets", group, "--all-topics", "--to-earliest", "--to-latest"), code=2
    )
    assert document(tool("groups", "delete", group, "-y")) == [{"group": group, "result": "deleted"}]
    assert "groups list" in refused(tool("groups", "describe", group))


# -- The rest ------------------------------------------------------------------------------------------------------


def test_configs_cluster_and_transactions(tool: Run, broker: PenstockBroker, topic: str) -> None:
    good(tool("topics", "create", topic, "-c", "retention.ms=5000"))
    (row,) = document(tool("configs", "describe", "topic", topic, "-k", "retention.ms"))
    assert (row["value"], row["source"]) == ("5000", "dynamic_topic")
    assert "no key" in refused(tool("configs", "describe", "topic", topic, "-k", "no.such.key"))
    assert "ids" in refused(tool("configs", "describe", "broker", "one"), code=2)
    found = document(tool("cluster", "describe"))
    assert found["brokers"][0]["address"] == broker.bootstrap
    assert "Produce" in {each["api"] for each in document(tool("cluster", "apis"))}
    assert isinstance(document(tool("transactions", "list")), list)
    assert "no such transactional id" in refused(tool("transactions", "describe", "nobody"))


def test_log_dump(tool: Run, broker: PenstockBroker, topic: str, tmp_path: Path) -> None:
    good(tool("produce", topic, "-z", "gzip", "-K", ":", stdin="k:v1\nk:v2\n"))
    directory = broker.partition_dir(topic)
    rows = [json.loads(line) for line in good(run("log", "dump", directory, "-r")).splitlines()]
    (batch,) = [row for row in rows if "base_offset" in row]
    assert (batch["count"], batch["codec"], batch["last_offset"]) == (2, "gzip", 1)
    assert [row["value"] for row in rows if "value" in row] == ["v1", "v2"]
    (segment,) = directory.glob("*.log")
    broken = tmp_path / segment.name
    data = bytearray(segment.read_bytes())
    data[-1] ^= 1
    broken.write_bytes(data + b"tail")
    done = run("log", "dump", broken)
    assert done.returncode == 1
    assert [json.loads(line)["problem"] for line in done.stdout.splitlines()] == [
        "the checksum does not match",
        "4 bytes at the end are no batch",
    ]
    assert "2 problems" in done.stderr
    assert "no segments" in refused(run("log", "dump", tmp_path.parent))


def test_perf(tool: Run, topic: str) -> None:
    written = document(tool("perf", "produce", topic, "-n", "2000", "-s", "50"))
    assert (written["records"], written["bytes"]) == (2000, 100_000)
    assert written["latency_ms_p99"] > 0
    assert document(tool("perf", "consume", topic, "-n", "2000"))["records"] == 2000


def test_perf_of_a_single_poll_tells_a_rate_that_can_be(tool: Run, topic: str) -> None:
    """The clock ran from the end of the first poll: 300 records in 0.0 seconds, 300,000,000,000 in a second."""
    good(tool("perf", "produce", topic, "-n", "300", "-s", "10"))
    read = document(tool("perf", "consume", topic, "-n", "300"))
    assert read["records"] == 300
    assert 0 < read["records_per_s"] < 100_000_000
    assert read["connecting_seconds"] > 0
    assert "gave no records" in refused(tool("perf", "consume", _empty(tool, topic), "--idle-timeout", "0.3"))


def _empty(tool: Run, topic: str) -> str:
    name = f"{topic}-empty"
    good(tool("topics", "create", name))
    return name


def test_what_a_broker_does_not_serve_is_named(tool: Run, topic: str) -> None:
    """A broker that serves the API obeys; one that does not is told of by the API's name."""
    good(tool("topics", "create", topic))
    done = tool("records", "delete", f"{topic}:0=0", "-y")
    assert done.returncode == 0 or "DeleteRecords" in refused(done)


# -- Where the cluster is ------------------------------------------------------------------------------------------


def test_profiles_files_environment_and_flags(broker: PenstockBroker, tmp_path: Path) -> None:
    nowhere = f"127.0.0.1:{free_port()}"
    file = tmp_path / "penstock" / "profiles.toml"
    file.parent.mkdir()
    file.write_text(f'[default]\nbootstrap.servers = "{nowhere}"\n[here]\nbootstrap.servers = "{broker.bootstrap}"\n')
    config = {"XDG_CONFIG_HOME": str(tmp_path)}
    assert nowhere in refused(run("topics", "list", **config))
    good(run("topics", "list", "--profile", "here", **config))
    good(run("topics", "list", PENSTOCK_PROFILE="here", **config))
    good(run("topics", "list", PENSTOCK_BOOTSTRAP_SERVER=broker.bootstrap, **config))
    good(run("topics", "list", "-b", broker.bootstrap, PENSTOCK_BOOTSTRAP_SERVER=nowhere, **config))
    assert "default, here" in refused(run("topics", "list", "--profile", "there", **config))
    properties = tmp_path / "client.properties"
    properties.write_text(f"bootstrap.servers={broker.bootstrap}\nclient.id=mine\nlinger.ms=5\n")
    done = run("topics", "list", "--command-config", properties, **config)
    assert good(done)
    assert done.stderr == "", "keys of another kind of client are no mistake"
    done = run("topics", "list", "-b", broker.bootstrap, "-X", "no.such.key=1")
    assert "no.such.key" in done.stderr
    file.write_text("[default\n")
    assert "TOML" in refused(run("topics", "list", **config))


def test_a_profile_file_that_is_wrong_is_told_of_and_is_in_nobodys_way(broker: PenstockBroker, tmp_path: Path) -> None:
    file = tmp_path / "penstock" / "profiles.toml"
    file.parent.mkdir()
    config = {"XDG_CONFIG_HOME": str(tmp_path)}
    file.write_text(f'bootstrap.servers = "{broker.bootstrap}"\n[other]\nclient.id = "x"\n')
    told = refused(run("topics", "list", **config))
    assert f"{file}: bootstrap.servers stands outside a table: write [default]" in told
    done = run("topics", "list", "-b", broker.bootstrap, **config)
    good(done)
    assert done.stderr.startswith(f"warning: {file}: bootstrap.servers stands outside a table")
    assert "outside" in refused(run("topics", "list", "-b", broker.bootstrap, "--profile", "other", **config))
    file.write_text("[default]\nbootstrap.servers = 3\n")
    told = refused(run("topics", "list", **config))
    assert f"{file}: bootstrap.servers of profile default has to be text: write it in quotes, such as boot" in told
    file.write_text(f'[default]\nbootstrap.servrs = "{broker.bootstrap}"\n')
    done = run("topics", "list", "-b", broker.bootstrap, **config)
    good(done)
    assert "did you mean bootstrap.servers?" in done.stderr


def test_bad_settings(broker: PenstockBroker, tmp_path: Path) -> None:
    bad = tmp_path / "bad.properties"
    bad.write_text("lonely\n")
    assert f"{bad}:1" in refused(run("topics", "list", "--command-config", bad))
    assert "missing.properties" in refused(run("topics", "list", "--command-config", tmp_path / "missing.properties"))
    assert "host:port" in refused(run("topics", "list", "-b", "host:port"))
    assert "KEY=VALUE" in refused(run("topics", "list", "-X", "lonely"), code=2)
    done = run("topics", "list", "-b", broker.bootstrap, "-X", "security.protocol=nonsense")
    assert "security.protocol=nonsense" in refused(done)


def test_nobody_there() -> None:
    told = refused(run("topics", "list", "-b", f"127.0.0.1:{free_port()}"))
    assert "penstock serve" in told
    assert "-b HOST:PORT" in told
    assert "does not resolve" in refused(run("topics", "list", "-b", "no-such-host.invalid:9092"))


def test_a_web_server_is_no_broker() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()

        def answer() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    seen = b""
                    while b"\r\n\r\n" not in seen and (data := connection.recv(4096)):
                        seen += data
                    if seen:
                        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        threading.Thread(target=answer, daemon=True).start()
        told = refused(run("topics", "list", "-b", f"127.0.0.1:{server.getsockname()[1]}"))
        assert "web server" in told
        server.shutdown(socket.SHUT_RDWR)


def test_tls_where_there_is_none(broker: PenstockBroker) -> None:
    told = refused(run("topics", "list", "-b", broker.bootstrap, "-X", "security.protocol=SSL", "--timeout", "5"))
    assert "TLS" in told


# -- The terminal --------------------------------------------------------------------------------------------------


def on_terminal(
    *arguments: str, answer: bytes = b"", interrupt_at: bytes | None = None, **environment: str
) -> tuple[int, str]:
    """The exit code and what a terminal shows."""
    return terminal([*COMMAND, *arguments], answer=answer, interrupt_at=interrupt_at, **environment)


def shell_on_terminal(line: str) -> tuple[int, str]:
    return terminal(["sh", "-c", line])


def terminal(
    command: list[str], *, answer: bytes = b"", interrupt_at: bytes | None = None, **environment: str
) -> tuple[int, str]:
    parent, child = pty.openpty()
    process = subprocess.Popen(
        command,
        env={**os.environ, **ENVIRONMENT, "TERM": "xterm", "COLUMNS": "120", **environment},
        stdin=child,
        stdout=child,
        stderr=child,
        start_new_session=True,
    )
    os.close(child)
    if answer:
        os.write(parent, answer)
    shown = b""
    while True:
        try:
            data = os.read(parent, 65536)
        except OSError:
            break
        if not data:
            break
        shown += data
        if interrupt_at is not None and interrupt_at in shown:
            process.send_signal(signal.SIGINT)
            interrupt_at = None
    os.close(parent)
    return process.wait(60), shown.decode()


def test_a_terminal_gets_tables_and_colours(tool: Run, broker: PenstockBroker, topic: str) -> None:
    good(tool("topics", "create", topic))
    code, shown = on_terminal("topics", "list", "-b", broker.bootstrap, NO_COLOR="")
    assert code == 0
    assert "\x1b[1m" in shown
    assert "PARTITIONS" in shown
    _, plain = on_terminal("topics", "list", "-b", broker.bootstrap, NO_COLOR="1", TERM="dumb")
    assert "\x1b[3" not in plain


def test_a_terminal_of_80_columns_cuts_no_heading(tool: Run, broker: PenstockBroker, topic: str) -> None:
    good(tool("topics", "create", topic))
    code, shown = on_terminal("topics", "describe", topic, "-b", broker.bootstrap, COLUMNS="80")
    assert code == 0
    for word in ("PARTITION", "LEADER", "REPLICAS", "OFFLINE", "RECORDS"):
        assert word in shown, shown


def test_destructive_commands_ask(tool: Run, broker: PenstockBroker, topic: str) -> None:
    good(tool("topics", "create", topic))
    code, shown = on_terminal("topics", "delete", topic, "-b", broker.bootstrap, answer=b"n\n")
    assert code == 1
    assert "Really delete topic" in shown
    assert "nothing was changed" in shown
    code, shown = on_terminal("topics", "delete", topic, "-b", broker.bootstrap, answer=b"y\n")
    assert code == 0
    assert f"Deleted topic {topic}." in shown


def test_ctrl_c_at_a_question_ends_as_it_does_anywhere(tool: Run, broker: PenstockBroker, topic: str) -> None:
    good(tool("topics", "create", topic))
    code, shown = on_terminal("topics", "delete", topic, "-b", broker.bootstrap, interrupt_at=b"[y/N]")
    assert code == 130
    assert "Aborted" not in shown
    assert shown.endswith("[y/N]: \r\n")
    code, shown = on_terminal("topics", "delete", topic, "-b", broker.bootstrap, answer=b"\x04")
    assert code == 1
    assert shown.endswith("nothing was changed\r\n"), "the end of the input is a no"
    assert topic in good(tool("topics", "list", "--names"))


def test_ctrl_c_gives_the_terminal_back(tool: Run, broker: PenstockBroker, topic: str) -> None:
    good(tool("topics", "create", topic))
    arguments = ["perf", "produce", topic, "-n", "100000", "--rate", "100", "-b", broker.bootstrap]
    code, shown = on_terminal(*arguments, interrupt_at=b"records/s")
    assert code == 130
    assert "Traceback" not in shown
    assert shown.rindex("\x1b[?25h") > shown.rindex("\x1b[?25l"), "the cursor is visible again"


def test_reading_into_a_file_shows_how_far_it_is(tool: Run, broker: PenstockBroker, topic: str, tmp_path: Path) -> None:
    good(tool("topics", "create", topic))
    good(tool("perf", "produce", topic, "-n", "3000", "-s", "100"))
    command = " ".join([*COMMAND, "consume", topic, "-b", broker.bootstrap, "-f", r"'%o\n'"])
    for end, shown_bar in (("-e", True), ("-n 3000", False)):
        file = tmp_path / "records"
        code, shown = shell_on_terminal(f"{command} {end} > {file}")
        assert code == 0, shown
        assert len(file.read_text().splitlines()) == 3000
        assert ("Reading" in shown) is shown_bar, "a bar needs an end that is known"
    code, shown = shell_on_terminal(f"{command} -e")
    assert code == 0
    assert "Reading" not in shown, "the records themselves show it"


# -- Help and completion -------------------------------------------------------------------------------------------


HEAVY = ("asyncio", "rich", "uvloop", "penstock.client", "penstock.protocol", "penstock.records", "penstock.server")


@pytest.mark.parametrize(
    "arguments",
    [
        [], ["topics"], ["topics", "create"], ["configs", "set"], ["groups", "reset-offsets"], ["produce"], ["consume"],
        ["records", "delete"], ["cluster"], ["log", "dump"], ["transactions"], ["perf", "produce"], ["elect-leaders"],
        ["reassign", "move"], ["completion"], ["serve"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_help_imports_nothing_that_takes_time(arguments: list[str]) -> None:
    script = (
        "import sys, penstock.cli.main as it\n"
        "try:\n    it.main([*sys.argv[1:], '--help'])\n"
        "finally:\n    print('LOADED', *sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env={**os.environ, **ENVIRONMENT},
        capture_output=True,
        text=True,
        timeout=90,
        check=True,
    )
    shown, _, loaded = done.stdout.partition("LOADED")
    assert "Usage:" in shown
    modules = loaded.split()
    assert [each for each in modules if each.startswith(HEAVY)] == []


def test_completion_knows_live_names(tool: Run, broker: PenstockBroker, topic: str) -> None:
    good(tool("topics", "create", topic))
    assert "_PENSTOCK_COMPLETE=bash_complete" in good(run("completion", "bash"))

    script = "import sys; sys.argv[0] = 'penstock'; from penstock.cli.main import main; main(prog_name='penstock')"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={
            **os.environ, **ENVIRONMENT, "_PENSTOCK_COMPLETE": "bash_complete", "COMP_CWORD": "3",
            "COMP_WORDS": f"penstock topics describe {topic[:-1]}", "PENSTOCK_BOOTSTRAP_SERVER": broker.bootstrap,
        },
        capture_output=True, text=True, timeout=90, check=False,
    )  # fmt: skip
    assert f"plain,{topic}" in done.stdout
    assert done.stderr == ""


def completed(broker: PenstockBroker, *words: str) -> list[str]:
    """What is offered for the last word."""
    script = "import sys; sys.argv[0] = 'penstock'; from penstock.cli.main import main; main(prog_name='penstock')"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={
            **os.environ, **ENVIRONMENT, "_PENSTOCK_COMPLETE": "bash_complete", "COMP_CWORD": str(len(words)),
            "COMP_WORDS": " ".join(["penstock", *words]), "PENSTOCK_BOOTSTRAP_SERVER": broker.bootstrap,
        },
        capture_output=True, text=True, timeout=90, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    return [line.removeprefix("plain,") for line in done.stdout.split()]


def test_completion_of_partitions_resources_and_keys(tool: Run, broker: PenstockBroker, topic: str) -> None:
    good(tool("topics", "create", topic, "-p", "2"))
    short = topic[:-1]
    assert topic in completed(broker, "groups", "reset-offsets", "g", "-t", short)
    assert f"{topic}:1=" in completed(broker, "records", "delete", short)
    assert f"{topic}:1=" in completed(broker, "reassign", "move", short)
    assert f"{topic}:0" in completed(broker, "elect-leaders", short)
    assert topic in completed(broker, "configs", "set", "topic", short)
    assert "default" in completed(broker, "configs", "set", "broker", "d")
    assert completed(broker, "configs", "set", "topic", topic, "retention.m") == ["retention.ms="]
    assert completed(broker, "configs", "set", "topic", topic, "retention.ms=1", "retention.m") == []
    assert completed(broker, "configs", "delete", "broker", "default", "log.retention.m") == [
        "log.retention.minutes",
        "log.retention.ms",
    ]


SHELLS = {
    "bash": (
        'eval "$(penstock completion bash)"; COMP_WORDS=(penstock topics describe {typed}); COMP_CWORD=3; '
        'COMPREPLY=(); _penstock_completion penstock; printf "%s\\n" "${{COMPREPLY[@]}}"'
    ),
    "zsh": (
        'compdef() {{ : }}; eval "$(penstock completion zsh)"; compadd() {{ print -l -- $completions }}; '
        "words=(penstock topics describe {typed}); CURRENT=4; _penstock_completion"
    ),
    "fish": 'penstock completion fish | source; complete -C "penstock topics describe {typed}"',
}


FOREIGN_SHELLS = {"zsh": peers.zsh, "fish": peers.fish}


@pytest.mark.parametrize("shell", list(SHELLS))
def test_every_shell_completes_live_names(
    tool: Run, broker: PenstockBroker, topic: str, tmp_path: Path, shell: str
) -> None:
    if shell in FOREIGN_SHELLS:
        FOREIGN_SHELLS[shell]()
    good(tool("topics", "create", topic))
    command = tmp_path / "penstock"
    script = 'from penstock.cli.main import main; main(prog_name="penstock")'
    command.write_text(f"#!/bin/sh\nexec {sys.executable} -c '{script}' \"$@\"\n")
    command.chmod(0o755)
    done = subprocess.run(
        [shell, "-c", SHELLS[shell].format(typed=topic[:-1])],
        env={
            **os.environ, **ENVIRONMENT, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
            "PENSTOCK_BOOTSTRAP_SERVER": broker.bootstrap, "HOME": str(tmp_path),
        },
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert topic in done.stdout.split(), done.stderr


def test_a_misspelt_command_is_guessed() -> None:
    told = refused(run("topcis"), code=2)
    assert "Did you mean topics?" in told
