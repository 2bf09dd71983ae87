"""`penstock up` and `penstock sql-server` as processes: their words, their end, and the death of their Java."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import httpx
import pytest

from tests.support.ports import free_port
from tests.support.sql_servers import descendant

PROGRAM = [sys.executable, "-c", "from penstock.cli.main import main; main()"]
WAIT_S = 150


class Command:
    """A running command and what it says."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [*PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.lines: list[str] = []
        self._said = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def expect(self, pattern: str) -> re.Match[str]:
        """The first line that says so."""

        def found() -> re.Match[str] | None:
            return next((match for line in self.lines if (match := re.search(pattern, line))), None)

        with self._said:
            assert self._said.wait_for(lambda: found() or not self._reader.is_alive(), WAIT_S), self.lines
            match = found()
        assert match, self.lines
        return match

    def wait(self) -> int:
        """Its exit code, when all its words are read."""
        self._reader.join(WAIT_S)
        return self.process.wait(WAIT_S)

    def tracebacks(self) -> list[str]:
        """Each with the line before it, which says who speaks, and some of what follows."""
        found = (number for number, line in enumerate(self.lines) if "Traceback" in line)
        return ["".join(self.lines[max(number - 1, 0) : number + 40]) for number in found]

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._said:
                self.lines.append(line)
                self._said.notify_all()


def test_up_lives_through_the_death_of_its_java_and_stops_both(tmp_path: Path) -> None:
    port, sql_port = free_port(), free_port()
    up = Command(
        *("up", "--data-dir", str(tmp_path), "--port", str(port), "--sql-port", str(sql_port)),
        *("--spark-conf", "spark.master=local[2]", "--spark-conf", "spark.driver.memory=512m"),
    )
    try:
        up.expect(rf"^broker \| .* ready: broker 1 on 127\.0\.0\.1:{port}")
        url = up.expect(r"^sql    \| .* SQL ready: (http://[\d.:]+), service default_")[1]
        up.expect("Ctrl-C stops both")
        with httpx.Client(base_url=url, timeout=60) as http:
            assert http.get("/healthcheck").json()["isHealthy"]
            create = "CREATE STREAM s (a INT) WITH (kafka_topic='s', value_format='json', partitions=1);"
            assert http.post("/ksql", json={"ksql": create}).status_code == 200
            columns = "(k VARCHAR PRIMARY KEY, n INT)"
            table = f"CREATE TABLE t {columns} WITH (kafka_topic='t', value_format='json', partitions=1)"
            assert http.post("/ksql", json={"ksql": f"{table}; INSERT INTO t VALUES ('a', 7);"}).status_code == 200
            pull = {"sql": "SELECT n FROM t WHERE k = 'a';"}
            assert http.post("/query-stream", json=pull).text.splitlines()[1:] == ["[7]"]
            java = descendant(up.process.pid, "java")
            assert java is not None
            os.kill(java, signal.SIGKILL)
            up.expect("the Java machine under Spark has ended")
            # Neither needs Java.
            assert http.post("/query-stream", json=pull).text.splitlines()[1:] == ["[7]"]
            assert http.get("/healthcheck").json()["isHealthy"]
            up.expect("Spark runs again, the queries follow")
            create = "CREATE STREAM s_copy AS SELECT a FROM s;"
            assert http.post("/ksql", json={"ksql": create}).status_code == 200
            (streams,) = http.post("/ksql", json={"ksql": "SHOW STREAMS;"}).json()
            assert "S" in [stream["name"] for stream in streams["streams"]]
        up.process.send_signal(signal.SIGINT)
        assert up.wait() == 0, up.lines
    finally:
        up.process.kill()
    stopping = [line.split()[0] for line in up.lines if line.rstrip().endswith(" stopping")]
    assert stopping == ["sql", "broker"]
    assert up.tracebacks() == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--listeners", "http://127.0.0.1:x"], "http://127.0.0.1:x is no address"),
        (["--override", "penstock.sql.shuffle.partitions=none"], "penstock.sql.shuffle.partitions=none"),
        (["--spark-conf", "executor.memory=1g"], "executor.memory does not begin with spark."),
    ],
)
def test_wrong_settings_are_told_at_once(arguments: list[str], message: str) -> None:
    done = subprocess.run([*PROGRAM, "sql-server", *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode in (1, 2)
    assert message in done.stderr
    assert "Traceback" not in done.stderr
