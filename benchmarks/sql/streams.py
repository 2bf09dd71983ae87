"""Kafka Streams: one Java process per query."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.sql.plan import PARTITIONS, STREAMS
from benchmarks.sql.processes import TreeClock
from benchmarks.sql.running import Job
from benchmarks.sql.topics import Topics
from tests.support import peers
from tests.support.cache import PeerMissingError, digest, entry
from tests.support.processes import LoggedProcess

GUARANTEES: Final = ("exactly_once_v2", "at_least_once")
_SOURCE: Final = Path(__file__).parent / "java" / "StreamsBench.java"


def compiled() -> Path:
    """The folder with the compiled program; made once for every version of it."""
    javac = peers.java().resolve().parent / "javac"
    if not javac.exists():
        raise PeerMissingError(f"no Java compiler beside {peers.java()}", "install a JDK or set JAVA_HOME to one")
    jars = peers.streams_jars()

    def compile_into(folder: Path) -> None:
        command = [javac, "-cp", f"{jars}/*", "-d", folder, _SOURCE]
        subprocess.run([str(part) for part in command], check=True, timeout=300)

    return entry(f"bench-streams-{digest([_SOURCE], peers.KAFKA_VERSION)}", "the Streams program (javac)", compile_into)


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaStreams:
    """`commit_interval_ms` 0: Streams' own, 100 ms for exactly once."""

    folder: Path
    topics: Topics
    guarantee: str = GUARANTEES[0]
    commit_interval_ms: int = 0
    name: str = STREAMS

    def start(self, job: Job) -> RunningTopology:
        return RunningTopology(self, job)


class RunningTopology:
    """The time and the CPU of the Java machine's start are part of it."""

    def __init__(self, streams: KafkaStreams, job: Job) -> None:
        self._topics = streams.topics
        self._inputs = job.query.inputs
        self._application = f"streams-{job.result}".lower()
        self._state = streams.folder / self._application
        self._topics.create(job.result)
        self._result = job.result
        arguments = [job.query.topology, self._topics.bootstrap, self._application, str(self._state)]
        arguments += [streams.guarantee, str(PARTITIONS), str(streams.commit_interval_ms), job.result]
        arguments += [*job.query.inputs, *job.query.tables]
        class_path = f"{compiled()}:{peers.streams_jars()}/*"
        command: list[str | Path] = [peers.java(), "-Xmx1g", "-cp", class_path, "StreamsBench", *arguments]
        streams.folder.mkdir(parents=True, exist_ok=True)
        self._process = LoggedProcess(command, streams.folder / f"{self._application}.log")
        self._clock = TreeClock(self._process.process.pid)

    def consumed(self) -> int:
        if self._process.process.poll() is not None or "state ERROR" in self._process.output():
            raise RuntimeError(f"{self._application} ended:\n{self._process.output()[-4000:]}")
        return self._topics.committed(self._application, self._inputs)

    def cpu_seconds(self) -> float:
        return self._clock.cpu_seconds()

    def stop(self) -> None:
        self._process.stop()
        self._topics.delete_like(f"{self._application}-")
        self._topics.admin.delete_topics([self._result])
        shutil.rmtree(self._state, ignore_errors=True)
