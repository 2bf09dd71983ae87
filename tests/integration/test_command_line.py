"""`penstock serve` as a person uses it: settings from everywhere, refusals that help, a clean end."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import penstock
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from penstock.protocol.messages.metadata import MetadataRequest
from tests.integration.conftest import Connect, StartBroker
from tests.integration.driving import create_topic, read_values, send_values
from tests.integration.watching import wait_for
from tests.support.brokers import ROOT, PenstockBroker
from tests.support.ports import answers, free_port
from tests.support.processes import LoggedProcess
from tests.support.raw_client import RawClient

COMMAND = [sys.executable, "-m", "penstock"]
ENVIRONMENT = {"PYTHONPATH": str(ROOT / "src"), "PYTHONUNBUFFERED": "1"}
MARKER = ".kafka_cleanshutdown"

# The settings of the server.properties that Kafka 4 ships.
STOCK_SERVER_PROPERTIES = """
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:{port},CONTROLLER://:{other}
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:{port},CONTROLLER://localhost:{other}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs={directory}
num.partitions=1
num.recovery.threads.per.data.dir=2
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""


def run(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """A command that ends by itself."""
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        env={**os.environ, **ENVIRONMENT, **environment},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )


Serve = Callable[..., LoggedProcess]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """`penstock serve` with any arguments, ready when it returns; killed at the end."""
    started: list[LoggedProcess] = []

    def start(*arguments: str | Path, **environment: str) -> LoggedProcess:
        log = tmp_path / f"serve{len(started)}.log"
        process = LoggedProcess([*COMMAND, "serve", *arguments], log, cwd=tmp_path, env={**ENVIRONMENT, **environment})
        started.append(process)
        process.wait_until(lambda: " ready: " in process.output(), 20, "penstock serve")
        return process

    yield start
    for process in started:
        process.kill()


def refused(*arguments: str | Path, **environment: str) -> str:
    """What a refused start says: one message, no traceback, exit code 1, nothing on standard output."""
    result = run("serve", *arguments, **environment)
    assert result.returncode == 1, result
    assert "Traceback" not in result.stderr
    assert result.stdout == ""
    assert result.stderr.count("error: ") == 1
    return result.stderr


def settings(client: RawClient, *names: str, node: str = "1") -> dict[str, str | None]:
    resource = DescribeConfigsResource(resource_type=4, resource_name=node, configuration_keys=list(names))
    (result,) = client.call(ApiKey.DESCRIBE_CONFIGS, 4, DescribeConfigsRequest(resources=[resource])).results
    assert result.error_code == 0, result
    return {row.name: row.value for row in result.configs}


# -- Help and the ready line ---------------------------------------------------------------------------------------


def test_help() -> None:
    general = run("--help")
    assert general.returncode == 0
    assert re.search(r"serve +Run a broker in the foreground\.", general.stdout)
    own = run("serve", "--help")
    for option in ("--config", "--data-dir", "--listeners", "--advertised-listeners", "--override", "--profile"):
        assert option in own.stdout
    assert run("--version").stdout.strip().endswith(penstock.__version__)


def test_an_unknown_command_or_option() -> None:
    assert run("swerve").returncode == 2
    result = run("serve", "--colour", "blue")
    assert result.returncode == 2
    assert "--colour" in result.stderr


def test_the_ready_line_names_address_and_directory(serve: Serve, tmp_path: Path) -> None:
    port = free_port()
    process = serve("--data-dir", tmp_path / "d", "--listeners", f"PLAINTEXT://127.0.0.1:{port}")
    (line,) = [line for line in process.output().splitlines() if " ready: " in line]
    expected = (
        rf"Penstock {re.escape(penstock.__version__)} ready: broker \d+ on 127\.0\.0\.1:{port}, data in {tmp_path}/d"
    )
    assert re.match(expected, line), line
    assert answers(port)


def test_the_development_profile_says_what_to_type_next(serve: Serve, tmp_path: Path) -> None:
    port = free_port()
    process = serve(
        "--data-dir", tmp_path / "d", "--listeners", f"PLAINTEXT://127.0.0.1:{port}", "--profile", "development"
    )
    wait_for(lambda: "Ctrl-C stops the broker" in process.output(), "the next steps")
    assert f"penstock produce greetings -b 127.0.0.1:{port}" in process.output()


def test_port_0_takes_a_free_port_and_announces_it(serve: Serve, tmp_path: Path, connect: Connect) -> None:
    process = serve("--data-dir", tmp_path / "d", "--listeners", "PLAINTEXT://127.0.0.1:0")
    port = int(re.findall(r"ready: broker \d+ on 127\.0\.0\.1:(\d+)", process.output())[0])
    (broker,) = connect(port).call(ApiKey.METADATA, 12, MetadataRequest(topics=[])).brokers
    assert broker.port == port


# -- Settings ------------------------------------------------------------------------------------------------------


def test_file_then_environment_then_flags(serve: Serve, tmp_path: Path, connect: Connect) -> None:
    file, port = tmp_path / "server.properties", free_port()
    file.write_text(
        "# a comment\nnode.id = 5\nnum.partitions: 2\nlog.retention.hours=3\nmessage.max.bytes=5000\n"
        f"log.dirs={tmp_path / 'from-file'}\n"
    )
    serve(
        "--config", file, "--data-dir", tmp_path / "from-flag", "--listeners", f"PLAINTEXT://127.0.0.1:{port}",
        "--override", "message.max.bytes=7000", "--override", "log.segment.bytes = 2000000",
        KAFKA_NUM_PARTITIONS="3", KAFKA_MESSAGE_MAX_BYTES="6000", KAFKA_HOME="/nowhere", KAFKA_HEAP_OPTS="-Xmx1g",
    )  # fmt: skip
    found = settings(
        connect(port),
        "num.partitions",
        "log.retention.hours",
        "message.max.bytes",
        "log.dirs",
        "log.segment.bytes",
        node="5",
    )
    assert found == {
        "num.partitions": "3",
        "log.retention.hours": "3",
        "message.max.bytes": "7000",
        "log.dirs": str(tmp_path / "from-flag"),
        "log.segment.bytes": "2000000",
    }
    assert not (tmp_path / "from-file").exists()


def test_the_environment_alone_is_enough(serve: Serve, tmp_path: Path) -> None:
    port = free_port()
    serve(KAFKA_LOG_DIRS=str(tmp_path / "d"), KAFKA_LISTENERS=f"PLAINTEXT://127.0.0.1:{port}", KAFKA_NODE_ID="3")
    assert answers(port)
    assert "node.id=3" in (tmp_path / "d" / "meta.properties").read_text()


def test_a_stock_server_properties_of_kafka_starts(serve: Serve, tmp_path: Path, connect: Connect, topic: str) -> None:
    file, port = tmp_path / "server.properties", free_port()
    file.write_text(STOCK_SERVER_PROPERTIES.format(port=port, other=free_port(), directory=tmp_path / "d"))
    process = serve("--config", file)
    client = connect(port)
    create_topic(client, topic)
    send_values(client, topic, b"works")
    assert read_values(client, topic) == [b"works"]
    (broker,) = client.call(ApiKey.METADATA, 12, MetadataRequest(topics=[])).brokers
    assert (broker.host, broker.port) == ("localhost", port)
    assert "Traceback" not in process.output()


def test_advertised_listeners(serve: Serve, tmp_path: Path, connect: Connect) -> None:
    inside, outside = free_port(), free_port()
    serve(
        "--data-dir", tmp_path / "d",
        "--listeners", f"INSIDE://127.0.0.1:{inside},OUTSIDE://127.0.0.1:{outside}",
        "--advertised-listeners", f"INSIDE://broker.internal:{inside},OUTSIDE://example.org:19092",
        "--override", "listener.security.protocol.map=INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
        "--override", "inter.broker.listener.name=INSIDE",
    )  # fmt: skip
    seen = []
    for port in (inside, outside):
        (broker,) = connect(port).call(ApiKey.METADATA, 12, MetadataRequest(topics=[])).brokers
        seen.append((broker.host, broker.port))
    assert seen == [("broker.internal", inside), ("example.org", 19092)]


def test_json_logs(serve: Serve, tmp_path: Path) -> None:
    process = serve(
        "--data-dir", tmp_path / "d", "--listeners", "PLAINTEXT://127.0.0.1:0",
        "--override", "penstock.log.format=json", "--override", "unknown.key=1",
    )  # fmt: skip
    assert any(line.startswith('{"time":') and "unknown.key" in line for line in process.output().splitlines())


# -- Refusals ------------------------------------------------------------------------------------------------------


def test_every_problem_of_a_bad_configuration_is_listed(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=none\nlog.cleanup.policy=zap\nlonely\n")
    told = refused(
        "--config", file, "--data-dir", tmp_path / "d", "--listeners", "PLAINTEXT//oops", "--override", "node.id=-9",
        KAFKA_LOG_ROLL_MS="0",
    )  # fmt: skip
    for part in (
        "num.partitions=none",
        "log.cleanup.policy=zap",
        "lonely",
        "PLAINTEXT//oops",
        "node.id",
        "log.roll.ms=0",
    ):
        assert part in told
    assert not (tmp_path / "d").exists()


def test_a_missing_file(tmp_path: Path) -> None:
    result = run("serve", "--config", tmp_path / "missing.properties")
    assert result.returncode == 2
    assert "missing.properties" in result.stderr
    assert "Traceback" not in result.stderr


def test_an_override_without_a_value() -> None:
    result = run("serve", "--override", "node.id")
    assert result.returncode == 2
    assert "key=value" in result.stderr


def test_a_second_broker_on_the_same_directory_is_refused(
    start_broker: StartBroker, connect: Connect, topic: str
) -> None:
    first = start_broker()
    client = connect(first.port)
    create_topic(client, topic)
    told = refused("--data-dir", first.data_dir, "--listeners", f"PLAINTEXT://127.0.0.1:{free_port()}")
    assert str(first.data_dir) in told
    assert "used by" in told or "in use" in told or "lock" in told
    send_values(client, topic, b"the first goes on")
    first.stop()
    first.start()
    assert read_values(connect(first.port), topic) == [b"the first goes on"]


def test_a_second_broker_on_the_same_port_is_refused(start_broker: StartBroker, tmp_path: Path) -> None:
    first = start_broker()
    told = refused("--data-dir", tmp_path / "other", "--listeners", f"PLAINTEXT://127.0.0.1:{first.port}")
    assert f"127.0.0.1:{first.port}" in told
    assert "Address already in use" in told
    assert "--listeners" in told
    assert answers(first.port)


def test_a_directory_can_be_used_after_a_start_that_failed_at_the_port(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        refused("--data-dir", tmp_path / "d", "--listeners", f"PLAINTEXT://127.0.0.1:{port}")
    broker = PenstockBroker(tmp_path, port=port)
    (tmp_path / "d").rename(broker.data_dir)
    broker.start()
    broker.kill()


def test_a_host_that_is_not_ours(tmp_path: Path) -> None:
    told = refused("--data-dir", tmp_path / "d", "--listeners", "PLAINTEXT://203.0.113.7:9092")
    assert "203.0.113.7" in told
    told = refused("--data-dir", tmp_path / "d", "--listeners", "PLAINTEXT://no-such-host.invalid:9092")
    assert "no-such-host.invalid" in told


def test_a_data_directory_that_is_a_file(tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.write_text("not a directory")
    assert str(place) in refused("--data-dir", place, "--listeners", "PLAINTEXT://127.0.0.1:0")
    assert place.read_text() == "not a directory"
    assert "beneath" in refused("--data-dir", place / "beneath", "--listeners", "PLAINTEXT://127.0.0.1:0")


def test_a_directory_that_cannot_be_written() -> None:
    """Not even root can make anything in /proc."""
    assert "/proc/penstock" in refused("--data-dir", "/proc/penstock", "--listeners", "PLAINTEXT://127.0.0.1:0")


def test_a_directory_of_another_node(start_broker: StartBroker) -> None:
    first = start_broker()
    first.stop()
    told = refused("--data-dir", first.data_dir, "--listeners", "PLAINTEXT://127.0.0.1:0", "--override", "node.id=7")
    assert "meta.properties" in told
    assert "7" in told
    assert (first.data_dir / MARKER).exists(), "a refused start must not spoil the clean stop before it"


def test_damaged_meta_properties(start_broker: StartBroker) -> None:
    first = start_broker()
    first.stop()
    (first.data_dir / "meta.properties").write_text("version=9\n")
    assert "meta.properties" in refused("--data-dir", first.data_dir, "--listeners", "PLAINTEXT://127.0.0.1:0")


# -- Stopping ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_cleanly(
    start_broker: StartBroker, connect: Connect, topic: str, number: signal.Signals
) -> None:
    broker = start_broker()
    client = connect(broker.port)
    create_topic(client, topic)
    send_values(client, topic, b"kept")
    assert not (broker.data_dir / MARKER).exists()
    process = broker.process
    assert process is not None
    process.process.send_signal(number)
    assert process.process.wait(20) == 0
    assert (broker.data_dir / MARKER).exists()
    assert client.is_closed_by_peer()
    assert "Traceback" not in broker.output()
    _, _, end = broker.output().partition(" stopping")
    assert not any(level in end for level in (" WARNING ", " ERROR "))
    broker.start()
    assert read_values(connect(broker.port), topic) == [b"kept"]


def test_a_killed_broker_leaves_no_marker(start_broker: StartBroker) -> None:
    broker = start_broker()
    broker.stop()
    assert (broker.data_dir / MARKER).exists()
    broker.start()
    assert not (broker.data_dir / MARKER).exists()
    broker.kill()
    assert not (broker.data_dir / MARKER).exists()


def test_a_stop_under_load_is_clean(start_broker: StartBroker, connect: Connect, topic: str) -> None:
    """With connections that idle, that wait, and that do not read."""
    broker = start_broker()
    client = connect(broker.port)
    create_topic(client, topic, partitions=20)
    for partition in range(20):
        send_values(client, topic, b"x" * 100_000, partition=partition)
    others = [connect(broker.port) for _ in range(50)]
    for other in others[:10]:
        other.send_raw(b"\0\0\1")
    assert broker.process is not None
    assert broker.process.stop() == 0
    assert (broker.data_dir / MARKER).exists()


def test_a_signal_during_the_start_stops_too(tmp_path: Path) -> None:
    process = LoggedProcess(
        [*COMMAND, "serve", "--data-dir", tmp_path / "d", "--listeners", "PLAINTEXT://127.0.0.1:0"],
        tmp_path / "log",
        env=ENVIRONMENT,
    )
    try:
        wait_for(lambda: (tmp_path / "d").exists(), "the directory to be made")
        assert process.stop() == 0
        assert "Traceback" not in process.output()
    finally:
        process.kill()
