"""PLAIN (RFC 4616): the password itself, which is why it belongs inside TLS."""

from __future__ import annotations

from penstock.security.sasl.mechanism import SaslError

NAME = "PLAIN"


class PlainClient:
    name = NAME

    def __init__(self, username: str, password: str, authorization_id: str = "") -> None:
        self._message = encode_message(username, password, authorization_id)
        self.is_complete = False

    def first(self) -> bytes:
        # One message is all there is: whether it convinces is the server's to say.
        self.is_complete = True
        return self._message

    def step(self, challenge: bytes) -> bytes | None:
        if challenge:
            raise SaslError("the broker asked something more although PLAIN has a single message")
        return None


def encode_message(username: str, password: str, authorization_id: str = "") -> bytes:
    parts = (authorization_id, username, password)
    if any("\0" in part for part in parts):
        raise SaslError("a user name or password for PLAIN cannot hold a zero character")
    return "\0".join(parts).encode()


def decode_message(message: bytes) -> tuple[str, str, str]:
    """(user name, password, authorization id) of a client's message."""
    try:
        authorization_id, username, password = message.decode().split("\0")
    except ValueError:
        raise SaslError("a PLAIN message has three parts in UTF-8 with zero bytes between them") from None
    return username, password, authorization_id
