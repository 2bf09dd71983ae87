"""Streaming SQL on a real standalone cluster whose executors have a plain Python and cannot read the server's files."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sql.cluster.standalone import java_is_whole, other_user, plain_python, standalone_cluster

DRIVER = Path(__file__).parent / "driver.py"
SCENARIOS = ("filter", "join_stream_table", "tables")


@pytest.fixture
def folder() -> Iterator[Path]:
    """Below /tmp with a path that any user may walk; pytest's own folders are closed to others."""
    with tempfile.TemporaryDirectory(prefix="penstock-cluster-") as name:
        path = Path(name)
        path.chmod(0o755)
        yield path


@pytest.mark.timeout(960)
def test_queries_run_on_executors_that_have_only_what_the_server_ships(folder: Path) -> None:
    python = plain_python()
    if python is None or not java_is_whole():
        reason = "no Python of this version without Penstock, or a trimmed Java; install python3 and a whole JDK 17"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    data, checkpoints = folder / "data", folder / "checkpoints"
    data.mkdir(mode=0o700)
    checkpoints.mkdir()
    checkpoints.chmod(0o777)
    with standalone_cluster(folder / "cluster") as master:
        run = subprocess.run(
            [sys.executable, DRIVER, master, data, checkpoints, python, *SCENARIOS],
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
    assert run.returncode == 0, f"{run.stdout[-3000:]}\n{run.stderr[-6000:]}"
    assert [line for line in run.stdout.splitlines() if line.startswith("passed")] == [
        f"passed {name}" for name in SCENARIOS
    ]
    (executors,) = [line for line in run.stdout.splitlines() if line.startswith("executors")]
    assert sys.executable not in executors
    assert "penstock-environment/site-packages/penstock" in executors
    if other_user() is not None:
        assert ", 0, " not in executors
    assert any(checkpoints.rglob("offsets/0"))
