"""The two brokers under load, each a process of its own whose CPU time and memory are read from /proc."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from benchmarks import wire
from tests.support import peers
from tests.support.ports import free_port

ROOT = Path(__file__).resolve().parent.parent
_TICKS = os.sysconf("SC_CLK_TCK")
START_SECONDS_MAX = 60


class Usage(NamedTuple):
    cpu_seconds: float
    resident_megabytes: float


@dataclass
class Server:
    """A broker that was started and has answered once."""

    name: str
    process: subprocess.Popen[bytes]
    port: int
    start_seconds: float

    def usage(self) -> Usage:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        resident = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        return Usage((int(fields[11]) + int(fields[12])) / _TICKS, resident / 1e6)

    @property
    def peak_megabytes(self) -> float:
        """The most memory it ever had resident."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) * 1024 / 1e6

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def start_penstock(directory: Path) -> Server:
    port = free_port()
    command = [sys.executable, "-m", "penstock", "serve", "--data-dir", str(directory / "data")]
    command += ["--listeners", f"PLAINTEXT://127.0.0.1:{port}"]
    # Not to measure the wait for more members, a setting that both have at 3 s.
    command += ["--override", "group.initial.rebalance.delay.ms=0"]
    return _start("penstock", command, port, directory, environment={"PYTHONPATH": str(ROOT / "src")})


def start_kafka(directory: Path) -> Server:
    """One KRaft node with Kafka's stock heap and collector settings."""
    port, controller_port = free_port(), free_port()
    settings = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": str(directory / "data"),
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
    }
    properties = directory / "server.properties"
    properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    java = [str(peers.java()), "-cp", f"{peers.kafka_jars()}/*"]
    format_storage = ["kafka.tools.StorageTool", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qg", "-c", str(properties)]
    subprocess.run([*java, *format_storage], check=True, capture_output=True, timeout=START_SECONDS_MAX)
    # What kafka-server-start.sh and kafka-run-class.sh pass on.
    options = ["-Xmx1g", "-Xms1g", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"]
    options += ["-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent", "-Djava.awt.headless=true"]
    command = [java[0], *options, *java[1:], "kafka.Kafka", str(properties)]
    return _start("kafka", command, port, directory)


def _start(
    name: str, command: list[str], port: int, directory: Path, environment: dict[str, str] | None = None
) -> Server:
    with (directory / "server.log").open("wb") as output:
        started = time.perf_counter()
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, cwd=directory, env={**os.environ, **(environment or {})}
        )
    while time.perf_counter() - started < START_SECONDS_MAX:
        if process.poll() is not None:
            break
        if _answers(port):
            return Server(name, process, port, time.perf_counter() - started)
        time.sleep(0.005)
    process.kill()
    raise RuntimeError(f"{name} did not start:\n{(directory / 'server.log').read_text()[-2000:]}")


def _answers(port: int) -> bool:
    try:
        connection = wire.Connection(port)
        connection.call(wire.request(wire.API_VERSIONS, 0, 0, b""))
        connection.close()
    except OSError:
        return False
    return True
