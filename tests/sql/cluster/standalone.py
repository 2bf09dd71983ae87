"""A Spark cluster of other processes: a master and two workers from the jars of the pyspark package.

Workers know nothing of us: no PYTHONPATH, no virtual environment on the path, and, where the tests run as root, another
user, who cannot read the server's data folder.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.sql.spark.driver.java import class_path, java_options, spark_home
from tests.support import peers
from tests.support.ports import free_port

START_TIMEOUT_S = 120.0
NOBODY = "nobody"


def plain_python() -> str | None:
    """A Python of this minor version that has no Penstock, as seen from a worker."""
    import sys

    for name in (f"python{sys.version_info[0]}.{sys.version_info[1]}", "python3"):
        found = shutil.which(name, path="/usr/bin:/usr/local/bin:/bin")
        if found is None:
            continue
        probe = "import sys; print(sys.version_info[:2]); import penstock"
        run = subprocess.run([found, "-c", probe], capture_output=True, text=True, env={}, check=False, cwd="/")
        if run.stdout.strip() == str(sys.version_info[:2]) and run.returncode != 0:
            return found
    return None


def java_is_whole() -> bool:
    """Spark's own launcher, which starts the executors, asks for a module that trimmed runtimes lack."""
    run = subprocess.run([peers.java(), "--list-modules"], capture_output=True, text=True, check=False)
    return "jdk.incubator.vector" in run.stdout


def other_user() -> str | None:
    """Whom workers run as; None: as we do."""
    if os.geteuid() != 0:
        return None
    try:
        run = subprocess.run(["/bin/ls", spark_home() / "jars"], user=NOBODY, capture_output=True, check=False)
    except (OSError, LookupError):
        return None
    return NOBODY if run.returncode == 0 else None


@contextmanager
def standalone_cluster(folder: Path) -> Iterator[str]:
    """The master's address, `spark://...`."""
    port = free_port()
    address = f"spark://127.0.0.1:{port}"
    user = other_user()
    processes: list[subprocess.Popen[bytes]] = []
    try:
        master = [
            "org.apache.spark.deploy.master.Master",
            "--host",
            "127.0.0.1",
            "--port",
            str(port),
            "--webui-port",
            "0",
        ]
        processes.append(_start(master, folder / "master", None))
        _until_listening(port, processes[0])
        for name in ("worker-1", "worker-2"):
            worker = [
                "org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--cores", "1", "--memory", "1g",
                "--work-dir", str(folder / name / "work"), "--webui-port", "0", address,
            ]  # fmt: skip
            processes.append(_start(worker, folder / name, user))
        yield address
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            process.wait(30)


def _start(arguments: list[str], folder: Path, user: str | None) -> subprocess.Popen[bytes]:
    folder.mkdir(parents=True)
    if user is not None:
        shutil.chown(folder, user)
    java = peers.java().resolve()
    environment = {
        "PATH": "/usr/bin:/bin",
        "JAVA_HOME": str(java.parent.parent),
        "SPARK_HOME": str(spark_home()),
        "SPARK_SCALA_VERSION": "2.13",
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    command = [str(java), "-Xmx256m", *java_options(), "-cp", class_path(), *arguments]
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, user=user
        )


def _until_listening(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            assert process.poll() is None, "the master ended"
            assert time.monotonic() < deadline, "the master did not start"
            time.sleep(0.05)
        else:
            return
