"""Clients that do not read, and very many clients: nobody else notices, and memory stays bounded."""

from __future__ import annotations

import socket

from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.metadata import MetadataRequest
from penstock.protocol.requests import encode_request
from tests.integration.conftest import Connect, StartBroker
from tests.integration.driving import batch, create_topic, fetch_request, fetch_topic, produce_request, send_values
from tests.integration.watching import client_lines, open_files, resident_bytes, wait_for
from tests.support.brokers import PenstockBroker
from tests.support.raw_client import ConnectionEndedError, RawClient

MIB = 1 << 20


def stuff(client: RawClient, frame: bytes, *, bytes_max: int) -> int:
    """Send the same request again and again without reading, until the broker takes no more; bytes that were taken."""
    client.socket.settimeout(0.3)
    sent = 0
    try:
        while sent < bytes_max:
            sent += client.socket.send(frame)
    except (TimeoutError, ConnectionError):
        pass
    finally:
        client.socket.settimeout(10)
    return sent


def test_a_client_that_never_reads_holds_nobody_up(start_broker: StartBroker, connect: Connect, topic: str) -> None:
    broker = start_broker()
    client = connect(broker.port)
    create_topic(client, topic, partitions=100)
    for _ in range(8):
        send_values(client, topic, bytes(500_000))
    before = resident_bytes(broker)
    metadata = encode_request(ApiKey.METADATA, 12, 1, "x", MetadataRequest(topics=None))
    fetching = encode_request(
        ApiKey.FETCH, 12, 1, "x", fetch_request(fetch_topic(topic, {0: 0}, partition_max_bytes=4 * MIB))
    )
    for frame in [metadata, fetching] * 5:
        taken = stuff(connect(broker.port), frame * 50, bytes_max=20 * MIB)
        assert taken < 20 * MIB, "the broker goes on reading from a client that does not read"
    assert resident_bytes(broker) - before < 64 * MIB
    client.socket.settimeout(5)
    for _ in range(50):
        send_values(client, topic, b"quick")


def test_a_client_that_never_reads_is_closed_in_the_end(
    start_broker: StartBroker, connect: Connect, topic: str
) -> None:
    broker = start_broker(connections_max_idle_ms="1000")
    client = connect(broker.port)
    create_topic(client, topic)
    send_values(client, topic, bytes(900_000))
    victim = connect(broker.port)
    request = encode_request(
        ApiKey.FETCH, 12, 1, "x", fetch_request(fetch_topic(topic, {0: 0}, partition_max_bytes=MIB))
    )
    stuff(victim, request * 20, bytes_max=MIB)
    (line,) = client_lines(broker, victim)
    assert "connection closed" in line


def test_an_idle_client_is_closed_and_a_waiting_one_is_not(
    start_broker: StartBroker, connect: Connect, topic: str
) -> None:
    broker = start_broker(connections_max_idle_ms="500")
    idle, waiting = connect(broker.port), connect(broker.port)
    create_topic(waiting, topic)
    waiting.send(ApiKey.FETCH, 12, fetch_request(fetch_topic(topic, {0: 0}), max_wait_ms=2500))
    assert idle.is_closed_by_peer()
    assert waiting.recv_frame()


def test_two_thousand_connections_opened_and_closed(start_broker: StartBroker, connect: Connect, topic: str) -> None:
    broker = start_broker()
    client = connect(broker.port)
    create_topic(client, topic)
    request = encode_request(ApiKey.PRODUCE, 12, 1, "x", produce_request(topic, {0: batch(b"x")}))
    # What the first connections make the process keep for good is not a leak.
    _open_and_close(broker, request, 200)
    files, memory = open_files(broker), resident_bytes(broker)
    _open_and_close(broker, request, 1800)
    wait_for(lambda: open_files(broker) <= files, "the broker to close the connections")
    assert resident_bytes(broker) - memory < 16 * MIB
    assert send_values(client, topic, b"last") == 2000


def _open_and_close(broker: PenstockBroker, request: bytes, count: int) -> None:
    for start in range(0, count, 100):
        group = [socket.create_connection(("127.0.0.1", broker.port), timeout=10) for _ in range(start, start + 100)]
        for each in group:
            each.sendall(request)
        for each in group:
            assert each.recv(4096)
        for each in group:
            each.close()


def test_many_connections_at_once(start_broker: StartBroker, connect: Connect, topic: str) -> None:
    broker = start_broker()
    client = connect(broker.port)
    create_topic(client, topic)
    before = resident_bytes(broker)
    crowd = [socket.create_connection(("127.0.0.1", broker.port), timeout=10) for _ in range(400)]
    request = encode_request(ApiKey.PRODUCE, 12, 1, "x", produce_request(topic, {0: batch(b"x")}))
    try:
        for each in crowd:
            each.sendall(request)
        for each in crowd:
            assert each.recv(4096)
        assert resident_bytes(broker) - before < 400 * 128 * 1024
        assert send_values(client, topic, b"last") == 400
    finally:
        for each in crowd:
            each.close()


def test_connections_beyond_the_limit_are_closed(start_broker: StartBroker, connect: Connect) -> None:
    broker = start_broker(max_connections_per_ip="5")
    wait_for(lambda: open_files(broker) > 0, "the broker")
    kept = [connect(broker.port) for _ in range(5)]
    for each in kept:
        each.call(ApiKey.METADATA, 12, MetadataRequest(topics=[]))
    assert connect(broker.port).is_closed_by_peer()
    kept.pop().close()

    def can_connect_again() -> bool:
        with RawClient("127.0.0.1", broker.port) as another:
            another.send(ApiKey.METADATA, 12, MetadataRequest(topics=[]))
            try:
                return bool(another.recv_frame())
            except (ConnectionEndedError, ConnectionResetError):
                return False

    wait_for(can_connect_again, "the place of the closed connection")
    kept[0].call(ApiKey.METADATA, 12, MetadataRequest(topics=[]))
