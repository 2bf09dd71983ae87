"""A real ZooKeeper, which PySpark brings among its jars."""

from __future__ import annotations

import importlib.util
import os
import socket
from pathlib import Path

from tests.support import peers
from tests.support.ports import free_port
from tests.support.processes import LoggedProcess

START_TIMEOUT_S = 60.0
JARS = ("zookeeper-3", "zookeeper-jute", "slf4j-api", "metrics-core", "snappy-java")
"""What a server of its own needs of them."""


class ZooKeeper:
    def __init__(self, directory: Path) -> None:
        self.port = free_port()
        self._directory = directory
        self._process: LoggedProcess | None = None

    @property
    def hosts(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        settings = {
            "tickTime": "500",
            "dataDir": str(self._directory / "data"),
            "clientPort": str(self.port),
            "clientPortAddress": "127.0.0.1",
            "admin.enableServer": "false",
            "4lw.commands.whitelist": "*",
        }
        config = self._directory / "zoo.cfg"
        config.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        options = ["-Xmx64m", "-XX:TieredStopAtLevel=1", "-cp", _class_path()]
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        process = LoggedProcess([peers.java(), *options, main, config], self._directory / "zookeeper.log")
        self._process = process
        process.wait_until(self._is_ok, START_TIMEOUT_S, "ZooKeeper")

    def _is_ok(self) -> bool:
        """The answer to its own question after its health."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1) as connection:
                connection.sendall(b"ruok")
                return connection.recv(4) == b"imok"
        except OSError:
            return False

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process = None


def _class_path() -> str:
    found = importlib.util.find_spec("pyspark")
    assert found is not None
    assert found.submodule_search_locations
    jars = Path(found.submodule_search_locations[0]) / "jars"
    return os.pathsep.join(str(jar) for name in JARS for jar in jars.glob(f"{name}*.jar"))
