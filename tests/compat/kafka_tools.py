"""Our tools under Kafka's names and Kafka's own, run with the same arguments."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.support.java import TOOLS, ToolResult, shared_peer

ROOT = Path(__file__).resolve().parent.parent.parent
JAVA_CLASSES = {
    "topics": TOOLS + "TopicCommand",
    "console_producer": TOOLS + "ConsoleProducer",
    "console_consumer": TOOLS + "consumer.ConsoleConsumer",
    "consumer_groups": TOOLS + "consumer.group.ConsumerGroupCommand",
    "configs": "kafka.admin.ConfigCommand",
    "get_offsets": TOOLS + "GetOffsetShell",
    "delete_records": TOOLS + "DeleteRecordsCommand",
    "log_dirs": TOOLS + "LogDirsCommand",
    "dump_log": TOOLS + "DumpLogSegments",
    "leader_election": TOOLS + "LeaderElectionCommand",
    "reassign_partitions": TOOLS + "reassign.ReassignPartitionsCommand",
    "producer_perf_test": TOOLS + "ProducerPerformance",
    "consumer_perf_test": TOOLS + "ConsumerPerformance",
    "transactions": TOOLS + "TransactionsCommand",
    "features": TOOLS + "FeatureCommand",
}
"""By our modules, which are the commands' names without `kafka-`."""
_PATHS = (str(ROOT / "src"), os.environ.get("PYTHONPATH", ""))
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(part for part in _PATHS if part)}


@dataclass(frozen=True, slots=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def kafkas_code(self) -> int:
        """Kafka's tools end with 1 where ours end with 2: when the command line makes no sense."""
        return 1 if self.code == 2 and "--help`." in self.err else self.code


def ours(tool: str, *arguments: str, stdin: str = "", cwd: Path | None = None) -> Done:
    done = subprocess.run(
        [sys.executable, "-m", f"penstock.cli.kafka.{tool}", *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=cwd,
        env=ENVIRONMENT,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return Done(done.returncode, done.stdout, done.stderr)


def java(tool: str, *arguments: str, stdin: str = "") -> Done:
    import base64

    request = {"args": list(arguments), "stdin": base64.b64encode(stdin.encode()).decode()}
    answer = shared_peer().call(op="tool", main=JAVA_CLASSES[tool], **request)
    result = ToolResult(
        code=answer["code"],
        stdout=base64.b64decode(answer["stdout"]),
        stderr=base64.b64decode(answer["stderr"]).decode(errors="replace"),
    )
    return Done(result.code, result.text, result.stderr)
