"""Brokers as processes: Penstock, and Apache Kafka as the measure.

Both have the same face, so that every compatibility test can be proven on the real thing first
(``PENSTOCK_COMPAT_TARGET=kafka``).
"""

from __future__ import annotations

import os
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path

from tests.support import peers
from tests.support.ports import answers, free_port
from tests.support.processes import LoggedProcess

ROOT = Path(__file__).resolve().parent.parent.parent
START_TIMEOUT_S = 60.0


class Broker(ABC):
    """A broker with a directory and a port of its own, which may be started and stopped several times."""

    name: str

    def __init__(self, directory: Path, overrides: Mapping[str, str] | None = None, port: int | None = None) -> None:
        self.directory = directory
        self.overrides = dict(overrides or {})
        self.port = port or free_port()
        self.process: LoggedProcess | None = None
        directory.mkdir(parents=True, exist_ok=True)

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def data_dir(self) -> Path:
        """Where the partition directories are."""
        return self.directory / "data"

    def partition_dir(self, topic: str, partition: int = 0) -> Path:
        return self.data_dir / f"{topic}-{partition}"

    @abstractmethod
    def start(self) -> None:
        """Returns when the broker answers."""

    def stop(self) -> None:
        """A clean stop."""
        if self.process is not None:
            self.process.stop()
            self.process = None

    def kill(self) -> None:
        """kill -9."""
        if self.process is not None:
            self.process.kill()
            self.process = None

    def output(self) -> str:
        return (self.directory / "broker.log").read_text(errors="replace")

    def _launch(self, command: list[str | Path], env: Mapping[str, str] | None = None) -> LoggedProcess:
        self.process = LoggedProcess(command, self.directory / "broker.log", cwd=self.directory, env=env)
        return self.process


class PenstockBroker(Broker):
    """``penstock serve`` from this checkout."""

    name = "penstock"

    def start(self) -> None:
        command: list[str | Path] = [sys.executable, "-m", "penstock", "serve"]
        command += ["--data-dir", self.data_dir, "--listeners", f"PLAINTEXT://{self.bootstrap}"]
        # Not the 3 s that a group's first members wait for more of them.
        for key, value in {"group.initial.rebalance.delay.ms": "0", **self.overrides}.items():
            command += ["--override", f"{key}={value}"]
        path = os.pathsep.join(part for part in (str(ROOT / "src"), os.environ.get("PYTHONPATH", "")) if part)
        started = self._launch(command, {"PYTHONPATH": path, "PYTHONUNBUFFERED": "1"})
        started.wait_until(
            lambda: "ready" in started.output() and answers(self.port), START_TIMEOUT_S, "penstock serve"
        )


class KafkaBroker(Broker):
    """Apache Kafka, one node, broker and controller in one process."""

    name = "kafka"

    def __init__(self, directory: Path, overrides: Mapping[str, str] | None = None, port: int | None = None) -> None:
        super().__init__(directory, overrides, port)
        self.controller_port = free_port()
        self.format_arguments: list[str] = []
        """For `kafka-storage format`, such as users to begin with."""

    def start(self) -> None:
        classpath = f"{peers.kafka_jars()}/*"
        properties = self._write_properties()
        if not (self.data_dir / "meta.properties").exists():
            self._format(classpath, properties)
        # Few threads and a cheap collector: a test broker shares two cores with its clients.
        options = ["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]
        started = self._launch([peers.java(), *options, "-cp", classpath, "kafka.Kafka", properties])
        started.wait_until(lambda: answers(self.port), START_TIMEOUT_S, "Apache Kafka")

    def _write_properties(self) -> Path:
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{self.controller_port}",
            "listeners": f"PLAINTEXT://{self.bootstrap},CONTROLLER://127.0.0.1:{self.controller_port}",
            "advertised.listeners": f"PLAINTEXT://{self.bootstrap}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(self.data_dir),
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            **self.overrides,
        }
        path = self.directory / "server.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        return path

    def _format(self, classpath: str, properties: Path) -> None:
        run = subprocess.run(
            [
                str(peers.java()), "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-cp", classpath,
                "kafka.tools.StorageTool", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qg", "-c", str(properties),
                *self.format_arguments,
            ],
            capture_output=True, text=True, timeout=START_TIMEOUT_S, check=False,
            env={**os.environ, "LC_ALL": "C.UTF-8"},
        )  # fmt: skip
        if run.returncode != 0:
            raise RuntimeError(f"Kafka's storage could not be formatted:\n{run.stdout}{run.stderr}")


def target_is_kafka() -> bool:
    """Whether the suite runs against Apache Kafka, to prove the tests themselves."""
    return os.environ.get("PENSTOCK_COMPAT_TARGET", "penstock") == "kafka"


def make_target(directory: Path, overrides: Mapping[str, str] | None = None, port: int | None = None) -> Broker:
    """The broker under test, not started."""
    kind = KafkaBroker if target_is_kafka() else PenstockBroker
    return kind(directory, overrides, port)
