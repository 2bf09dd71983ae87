"""A blocking client that speaks frames: one socket, one request at a time, any bytes you like.

For tests that must send exactly this version, or something that is no request at all.
"""

from __future__ import annotations

import itertools
import socket
import struct
from types import TracebackType
from typing import Any, Self

from penstock.protocol.apis import ApiKey
from penstock.protocol.requests import decode_response, encode_request


class ConnectionEndedError(Exception):
    """The server closed the connection before a whole frame came."""


class RawClient:
    def __init__(self, host: str, port: int, *, client_id: str | None = "raw", timeout: float = 30.0) -> None:
        self.socket = socket.create_connection((host, port), timeout=timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.client_id = client_id
        self._correlation_ids = itertools.count(1)

    def call(self, api_key: ApiKey, version: int, message: object) -> Any:
        """Send a request and give the answer to it."""
        correlation_id = self.send(api_key, version, message)
        answered, answer = decode_response(api_key, version, self.recv_frame())
        assert answered == correlation_id, f"answer {answered} came for request {correlation_id}"
        return answer

    def send(self, api_key: ApiKey, version: int, message: object) -> int:
        """Send a request without waiting; gives its correlation id."""
        correlation_id = next(self._correlation_ids)
        self.send_raw(encode_request(api_key, version, correlation_id, self.client_id, message))
        return correlation_id

    def send_raw(self, data: bytes) -> None:
        self.socket.sendall(data)

    def recv_frame(self) -> bytes:
        """The next frame without its size."""
        (size,) = struct.unpack(">i", self._recv_exactly(4))
        return self._recv_exactly(size)

    def is_closed_by_peer(self) -> bool:
        """Wait for the end of the connection; False when data comes instead or nothing happens in time."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True
        except TimeoutError:
            return False

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _recv_exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            chunk = self.socket.recv(min(size - len(data), 1 << 20))
            if not chunk:
                raise ConnectionEndedError(f"the connection ended after {len(data)} of {size} bytes")
            data += chunk
        return bytes(data)


def connect(host: str, port: int, *, client_id: str | None = "raw", timeout: float = 30.0) -> RawClient:
    return RawClient(host, port, client_id=client_id, timeout=timeout)
