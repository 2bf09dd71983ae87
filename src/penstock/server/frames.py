"""Which frame sizes are acceptable, and what a stranger's first bytes look like.

A request is four bytes of size and then the request. Whatever speaks another protocol on this port is noticed because
its first four bytes make an absurd size; then these functions say in words what it probably was.
"""

from __future__ import annotations

import struct
from typing import Final

SIZE: Final = struct.Struct(">i")
SIZE_BYTES: Final = 4

_HTTP_STARTS: Final = (
    b"GET ",
    b"POST",
    b"PUT ",
    b"HEAD",
    b"OPTI",
    b"DELE",
    b"PATC",
    b"CONN",
    b"TRAC",
    b"PRI ",
    b"HTTP",
)
_TLS_HANDSHAKE: Final = 0x16
_TLS_MAJOR: Final = 3


def describe_bad_size(head: bytes, limit: int) -> str:
    """Why a frame that begins with `head` (four bytes) is refused."""
    if head in _HTTP_STARTS:
        return f"these are bytes of an HTTP request ({_shown(head)}), but this port speaks the Kafka protocol"
    if head[0] == _TLS_HANDSHAKE and head[1] == _TLS_MAJOR:
        return (
            "these are bytes of a TLS handshake, but this listener is PLAINTEXT: check the client's security.protocol"
        )
    size: int = SIZE.unpack(head)[0]
    if size <= 0:
        return f"invalid request size {size}"
    return f"request size {size} is over socket.request.max.bytes={limit} (first bytes {_shown(head)})"


def _shown(head: bytes) -> str:
    return repr(head.decode("ascii")) if all(32 <= byte < 127 for byte in head) else "0x" + head.hex()
