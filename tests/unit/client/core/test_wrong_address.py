"""An address where something listens that is no Kafka broker: errors name the address, the cause and the remedy."""

from __future__ import annotations

import contextlib
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


def test_a_position_and_a_commit_tell_address_cause_and_remedy(listener: Listener) -> None:
    partition = penstock.TopicPartition("t", 0)
    with penstock.Consumer(bootstrap_servers=listener.address, group_id="g") as consumer:
        consumer.assign([partition])
        with pytest.raises(penstock.KafkaError) as raised:
            consumer.position(partition, timeout_ms=300)
        check(raised.value, listener.address)
        with pytest.raises(penstock.KafkaError) as raised:
            consumer.commit({partition: 1}, timeout_ms=300)
        check(raised.value, listener.address)


def test_a_transactional_producer_tells_address_cause_and_remedy(
    listener: Listener, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        pytest.raises(penstock.KafkaError) as raised,
        penstock.Producer(bootstrap_servers=listener.address, transactional_id="x", max_block_ms=300) as producer,
    ):
        producer.init_transactions()
    check(raised.value, listener.address)
    assert "closing the producer" not in caplog.text, "it waited for an initialization that nobody needs any more"


def test_the_last_commit_does_not_look_for_a_cluster_that_was_never_there(
    listener: Listener, caplog: pytest.LogCaptureFixture
) -> None:
    partition = penstock.TopicPartition("t", 0)
    with penstock.Consumer(bootstrap_servers=listener.address, group_id="g") as consumer:
        consumer.assign([partition])
        consumer.seek(partition, 4)
        with contextlib.suppress(penstock.KafkaError):
            consumer.poll(100)
    assert "were not committed" not in caplog.text
