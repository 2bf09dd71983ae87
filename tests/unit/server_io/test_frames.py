import struct

import pytest

from penstock.server.frames import describe_bad_size


@pytest.mark.parametrize(
    ("head", "said"),
    [
        (b"GET ", "HTTP request ('GET ')"),
        (b"PRI ", "HTTP"),
        (b"\x16\x03\x01\x02", "TLS handshake"),
        (struct.pack(">i", -1), "invalid request size -1"),
        (struct.pack(">i", 0), "invalid request size 0"),
        (struct.pack(">i", 2**31 - 1), "2147483647 is over socket.request.max.bytes=100 (first bytes 0x7fffffff)"),
        (b"SSH-", "first bytes 'SSH-'"),
    ],
)
def test_a_refusal_says_what_the_bytes_looked_like(head: bytes, said: str) -> None:
    assert said in describe_bad_size(head, 100)
