"""`penstock serve --ephemeral`, as a test in another language runs it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.integration.driving import create_topic, send_values
from tests.support.brokers import ROOT
from tests.support.raw_client import connect

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "src")}


@contextmanager
def serve(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    command = [sys.executable, "-m", "penstock", "serve", "--ephemeral", *arguments]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT
    )
    try:
        assert process.stdout is not None
        yield process, json.loads(process.stdout.readline())
    finally:
        process.kill()
        process.communicate()


def test_one_line_of_json_and_an_end_with_standard_input() -> None:
    with serve("--until-stdin-closes") as (process, ready):
        assert ready["bootstrap_servers"] == f"127.0.0.1:{ready['port']}"
        assert ready["pid"] == process.pid
        with connect("127.0.0.1", ready["port"]) as client:
            create_topic(client, "t")
            assert send_values(client, "t", b"x") == 0
        assert os.path.isdir(ready["data_directory"])
        out, errors = process.communicate(timeout=60)
        assert out == ""
        assert process.returncode == 0, errors
        assert not os.path.exists(ready["data_directory"])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_end_by_signal(number: signal.Signals) -> None:
    with serve("--override", "num.partitions=2") as (process, ready):
        process.send_signal(number)
        assert process.wait(20) == 0
        assert not os.path.exists(ready["data_directory"])


def test_bad_usage_says_what_to_leave_out() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "penstock", "serve", "--ephemeral", "--data-dir", "x"],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        timeout=60,
    )
    assert done.returncode == 2
    assert "leave out --data-dir, or --ephemeral" in done.stderr


def test_a_refused_start_leaves_no_folder(tmp_path: object) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "penstock", "serve", "--ephemeral", "--override", "num.partitions=x"],
        capture_output=True,
        text=True,
        env={**ENVIRONMENT, "TMPDIR": str(tmp_path)},
        timeout=60,
    )
    assert done.returncode == 1
    assert "num.partitions" in done.stderr
    assert os.listdir(str(tmp_path)) == []
