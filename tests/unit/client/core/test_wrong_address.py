"""An address where something listens that is no Kafka broker: errors name the address, the cause and the remedy."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

import penstock


class Listener:
    """Accepts everything; answers each connection with `answer`, or never."""

    def __init__(self, answer: bytes | None) -> None:
        self._answer = answer
        self._server = socket.create_server(("127.0.0.1", 0))
        self._accepted: list[socket.socket] = []
        self.address = f"127.0.0.1:{self._server.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                peer, _ = self._server.accept()
            except OSError:
                return
            self._accepted.append(peer)
            if self._answer is not None:
                peer.recv(65_536)
                peer.sendall(self._answer)
                peer.close()

    def close(self) -> None:
        self._server.close()
        for peer in self._accepted:
            peer.close()


@pytest.fixture(params=[None, b"", b"HTTP/1.1 400 Bad Request\r\n\r\n"], ids=["silent", "hangs up", "http"])
def listener(request: pytest.FixtureRequest) -> Iterator[Listener]:
    listener = Listener(request.param)
    yield listener
    listener.close()


def check(error: penstock.KafkaError, address: str) -> None:
    assert address in str(error)
    assert "is this a Kafka listener" in str(error) or "give the port of the Kafka listener" in str(error)
    assert "node -1" not in str(error)


def test_an_admin_tells_address_cause_and_remedy(listener: Listener) -> None:
    with (
        penstock.Admin(bootstrap_servers=listener.address, default_api_timeout_ms=500) as admin,
        pytest.raises(penstock.KafkaError) as raised,
    ):
        admin.list_topics()
    check(raised.value, listener.address)


def test_a_producer_tells_address_cause_and_remedy(listener: Listener) -> None:
    with (
        penstock.Producer(bootstrap_servers=listener.address, max_block_ms=500) as producer,
        pytest.raises(penstock.KafkaError) as raised,
    ):
        producer.send("t", b"1")
    check(raised.value, listener.address)
