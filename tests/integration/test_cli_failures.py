"""What cannot work is one sentence with a remedy and exit code 1, from `penstock` and from Kafka's tools alike."""

from __future__ import annotations

import os
import socket
import socketserver
import ssl
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from penstock import KafkaError
from penstock.cli.connection import Connection
from tests.support.brokers import ROOT
from tests.support.certificates import Authority
from tests.support.ports import free_port

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "XDG_CONFIG_HOME": "/nonexistent"}
Talk = Callable[[socket.socket], object]
Said = Callable[..., str]


def penstock(address: str, *more: str, verb: str = "list") -> str:
    what = (verb,) if verb == "list" else (verb, "orders")
    return _refused("penstock", "topics", *what, "-b", address, "--timeout", "5", *more)


def kafka_topics(address: str, *more: str, verb: str = "list") -> str:
    what = (f"--{verb}",) if verb == "list" else (f"--{verb}", "--topic", "orders")
    said = _refused("penstock.cli.kafka.topics", *what, "--bootstrap-server", address, *more)
    return said.removeprefix("Error while executing topic command : ")


def _refused(module: str, *arguments: str) -> str:
    """The one sentence."""
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        env=ENVIRONMENT, capture_output=True, text=True, timeout=90, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done
    (said,) = (done.stdout + done.stderr).splitlines()
    assert "Traceback" not in said
    return said.removeprefix("error: ")


@pytest.fixture(params=[penstock, kafka_topics], ids=["penstock", "kafka-topics"])
def said(request: pytest.FixtureRequest) -> Said:
    found: Said = request.param
    return found


@contextmanager
def serving(talk: Talk) -> Iterator[str]:
    """A server that talks so with whoever connects; its address."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            try:
                talk(self.request)
            except OSError:
                pass

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        allow_reuse_address = True

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_nobody_listens(said: Said) -> None:
    told = said(f"127.0.0.1:{free_port()}")
    assert told.startswith("no broker can be reached: 127.0.0.1:")
    assert "penstock serve" in told
    assert "PENSTOCK_BOOTSTRAP_SERVER" in told
    assert "does not resolve" in said("no-such-host.invalid:9092")
    assert "is no address of a broker" in said("host:port")


@pytest.mark.parametrize("waits", [False, True], ids=["at once", "at the end of a line"])
def test_a_web_server(said: Said, waits: bool) -> None:
    def talk(connection: socket.socket) -> None:
        seen = connection.recv(4096)
        while waits and b"\r\n\r\n" not in seen and (data := connection.recv(4096)):
            seen += data
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with serving(talk) as address:
        assert f"{address} is a web server, not a Kafka broker" in said(address)


@pytest.mark.parametrize("wants_certificate", [False, True], ids=["server", "mutual"])
def test_a_port_that_speaks_tls(said: Said, tmp_path: Path, wants_certificate: bool) -> None:
    identity = Authority(tmp_path / "ca").issue("broker", "IP:127.0.0.1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(identity.certificate, identity.key)
    if wants_certificate:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(identity.certificate)

    def talk(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as encrypted:
            encrypted.recv(4096)

    with serving(talk) as address:
        told = said(address)
    assert told.startswith(f"{address} speaks TLS")
    assert "security.protocol=SSL" in told


def test_somebody_silent_is_asked_within_the_limit() -> None:
    """What the probe takes counts against --timeout: 3 seconds were 6.8."""
    over = threading.Event()
    with serving(lambda _: over.wait(30)) as address:
        started = time.monotonic()
        connection = Connection(settings={"bootstrap.servers": address}, timeout_s=3.0)
        with pytest.raises(KafkaError), connection.admin() as admin:
            admin.list_topics()
        took = time.monotonic() - started
        over.set()
    assert took < 4.5


def test_a_broker_that_closes_every_connection(said: Said, tmp_path: Path) -> None:
    """As one that wants SASL does, and as those before 0.10 did when they were asked for their versions."""
    settings = tmp_path / "short.properties"
    settings.write_text("default.api.timeout.ms=3000\nrequest.timeout.ms=2000\n")
    with serving(lambda connection: connection.recv(4096)) as address:
        told = said(address, "--command-config", str(settings))
    assert address in told
    assert "security.protocol" in told


def test_a_broker_too_old(said: Said) -> None:
    """One of Kafka 0.10.0: it tells its versions by the first version of that API only, and cannot create topics."""
    with serving(old_broker) as address:
        told = said(address, verb="create")
    assert "CreateTopics" in told
    assert "broker" in told


def old_broker(connection: socket.socket) -> None:
    served = [(1, 0, 2), (3, 0, 1), (18, 0, 0)]
    versions = b"".join(struct.pack(">hhh", *each) for each in served)
    host, port = connection.getsockname()
    while len(head := connection.recv(4, socket.MSG_WAITALL)) == 4:
        request = connection.recv(struct.unpack(">i", head)[0], socket.MSG_WAITALL)
        key, version, correlation = struct.unpack_from(">hhi", request)
        body = struct.pack(">i", correlation)
        if key == 18:
            body += struct.pack(">hi", 0 if version == 0 else 35, len(served)) + versions
        elif (key, version) == (3, 1):
            node = struct.pack(">ih", 1, len(host)) + host.encode() + struct.pack(">ih", port, -1)
            body += struct.pack(">i", 1) + node + struct.pack(">ii", 1, 0)
        else:
            return
        connection.sendall(struct.pack(">i", len(body)) + body)
