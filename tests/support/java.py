"""One long-lived JVM per test worker, which runs Kafka's own clients and command-line tools on request.

A JVM takes about 1.5 s to start and the tools are used a hundred times. ``Tools.java`` calls the ``main`` method of the
real tool with its exit, standard output and standard error caught, so a call costs a fraction of that. Requests and
answers are JSON lines over pipes; the answer of a tool is its exit code and output.
"""

from __future__ import annotations

import atexit
import base64
import json
import queue
import subprocess
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support import peers

REQUEST_TIMEOUT_S = 120.0
TOOLS = "org.apache.kafka.tools."


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What a command-line tool did."""

    code: int
    stdout: bytes
    stderr: str

    @property
    def text(self) -> str:
        return self.stdout.decode(errors="replace")


def _main_class(tool: str) -> str:
    """Most tools are below ``org.apache.kafka.tools``; those that are still in Scala say their whole name."""
    return tool if tool.startswith("kafka.") else TOOLS + tool


def tool_command(tool: str, *arguments: str) -> list[str]:
    """The command line of a Kafka tool as a process of its own; ``tool`` as in ``JavaPeer.tool``."""
    classpath = f"{peers.kafka_jars()}/*"
    return [str(peers.java()), "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", classpath, _main_class(tool), *arguments]


class JavaPeer:
    """The JVM and its request pipe. Used by one test at a time."""

    def __init__(self, log: Path) -> None:
        classpath = f"{peers.java_classes()}:{peers.kafka_jars()}/*"
        self._log = log
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                [
                    str(peers.java()),
                    "-Xmx384m",
                    "-XX:+UseSerialGC",
                    "-XX:TieredStopAtLevel=1",
                    "-cp",
                    classpath,
                    "Tools",
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
            )
        self._answers: queue.Queue[bytes | None] = queue.Queue()
        threading.Thread(target=self._pump, daemon=True).start()

    def _pump(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._answers.put(line)
        self._answers.put(None)

    def call(self, **request: Any) -> Any:
        """Sends one request; a Java exception comes back as ``RuntimeError``."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()
        try:
            line = self._answers.get(timeout=REQUEST_TIMEOUT_S)
        except queue.Empty:
            # A late answer would be taken for the next request's: this JVM is finished.
            self._process.kill()
            raise TimeoutError(f"no answer from the JVM to {str(request)[:500]}") from None
        if line is None:
            raise RuntimeError(f"the JVM ended\n{self._log.read_text(errors='replace')[-3000:]}")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer["result"]

    def tool(self, tool: str, *arguments: str, stdin: bytes = b"") -> ToolResult:
        """Runs a tool's ``main``; ``tool`` is a class below ``org.apache.kafka.tools``, or below ``kafka``."""
        result = self.call(
            op="tool", main=_main_class(tool), args=list(arguments), stdin=base64.b64encode(stdin).decode()
        )
        return ToolResult(
            code=result["code"],
            stdout=base64.b64decode(result["stdout"]),
            stderr=base64.b64decode(result["stderr"]).decode(errors="replace"),
        )

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.close()
            self._process.wait(10)
        except (BrokenPipeError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait(10)


_shared: list[JavaPeer] = []


def shared_peer() -> JavaPeer:
    """The JVM of this test worker, started when first needed and again should it have died."""
    if not _shared or not _shared[0].alive:
        _shared[:] = [JavaPeer(Path(tempfile.mkdtemp(prefix="penstock-java-")) / "java.log")]
        atexit.register(_shared[0].close)
    return _shared[0]
