"""The client side of OAUTHBEARER (RFC 7628, KIP-255, KIP-342): a token that the server checks.

A refused token is told in two turns: the server sends a reason as JSON, the client answers with a single byte 0x01, and
only then the exchange fails.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final

from penstock.security.sasl.mechanism import SaslError
from penstock.security.sasl.tokens import Token

NAME: Final = "OAUTHBEARER"

_SEPARATOR: Final = "\x01"
_TOKEN: Final = re.compile(r"[!-~]+")
_EXTENSION_NAME: Final = re.compile(r"[A-Za-z]+")
_EXTENSION_VALUE: Final = re.compile(r"[\x21-\x7E \t\r\n]+")


class OAuthBearerClient:
    name = NAME

    def __init__(self, token: Token) -> None:
        self._message = encode_message(token.value, token.extensions)
        self.is_complete = False
        self.refusal: str | None = None
        """Why the server does not take the token, in its own words."""

    def first(self) -> bytes:
        self.is_complete = True
        return self._message

    def step(self, challenge: bytes) -> bytes | None:
        if not challenge:
            return None
        if self.refusal is not None:
            raise SaslError("the broker went on after it had refused the token")
        self.refusal = describe_refusal(challenge)
        self.is_complete = False
        return _SEPARATOR.encode()


def encode_message(token: str, extensions: Mapping[str, str]) -> bytes:
    if not _TOKEN.fullmatch(token):
        raise SaslError("the OAuth token holds characters that no token may hold, or is empty")
    fields = [f"auth=Bearer {token}"]
    for name, value in extensions.items():
        if name == "auth" or not _EXTENSION_NAME.fullmatch(name) or not _EXTENSION_VALUE.fullmatch(value):
            raise SaslError(f"the SASL extension {name!r} is not valid: a name has letters, a value printable ASCII")
        fields.append(f"{name}={value}")
    return f"n,,{_SEPARATOR}{_SEPARATOR.join(fields)}{_SEPARATOR}{_SEPARATOR}".encode("ascii")


def describe_refusal(challenge: bytes) -> str:
    try:
        told = json.loads(challenge)
    except ValueError:
        return "the token was refused"
    status = told.get("status") if isinstance(told, dict) else None
    return f"the token was refused ({status})" if isinstance(status, str) else "the token was refused"
