"""The test client itself, against a peer that answers from a script."""

from __future__ import annotations

import socket
import threading

import pytest

from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.metadata import MetadataRequest, MetadataResponse
from penstock.protocol.requests import encode_response, read_request_header
from tests.support.raw_client import ConnectionEndedError, connect


def answer_one_request(server: socket.socket) -> None:
    connection, _ = server.accept()
    with connection:
        frame = connection.recv(65536)[4:]
        header = read_request_header(frame)
        answer = MetadataResponse(cluster_id="c", controller_id=header.api_version)
        data = encode_response(ApiKey.METADATA, header.api_version, header.correlation_id, answer)
        connection.sendall(data[:6])
        connection.sendall(data[6:])


def test_call_and_end_of_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=answer_one_request, args=(server,))
        thread.start()
        with connect(*server.getsockname()) as client:
            answer = client.call(ApiKey.METADATA, 9, MetadataRequest(topics=[]))
            assert (answer.cluster_id, answer.controller_id) == ("c", 9)
            assert client.is_closed_by_peer()
            with pytest.raises(ConnectionEndedError):
                client.recv_frame()
        thread.join()
