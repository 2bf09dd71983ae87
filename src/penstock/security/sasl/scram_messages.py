"""SCRAM's messages and arithmetic (RFC 5802, RFC 7677), the same for both sides.

Neither side ever sends the password: the client proves that it knows it, and the server proves that it keeps what was
derived from it. A message is a list of `letter=value` with commas between them.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from dataclasses import dataclass
from typing import Final, NamedTuple

from penstock.security.sasl.mechanism import SaslError

HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
"""Mechanism to hash."""

ITERATIONS_MIN: Final = 4096
"""Kafka's own minimum: fewer make a stolen exchange cheap to crack, so a server that asks for fewer is not obeyed."""
ITERATIONS_MAX: Final = 1_000_000
"""More would only keep this side busy."""

GS2_HEADER: Final = "n,,"
"""No channel binding, no authorization id."""


class ServerFirst(NamedTuple):
    nonce: str
    salt: bytes
    iterations: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScramKeys:
    """What is derived from a password; a server keeps `stored_key` and `server_key` only."""

    client_key: bytes
    stored_key: bytes
    server_key: bytes


def derive_keys(hash_name: str, password: bytes, salt: bytes, iterations: int) -> ScramKeys:
    salted = hashlib.pbkdf2_hmac(hash_name, password, salt, iterations)
    client_key = sign(hash_name, salted, b"Client Key")
    return ScramKeys(
        client_key=client_key,
        stored_key=hashlib.new(hash_name, client_key).digest(),
        server_key=sign(hash_name, salted, b"Server Key"),
    )


def sign(hash_name: str, key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, hash_name)


def client_proof(hash_name: str, keys: ScramKeys, auth_message: bytes) -> bytes:
    signature = sign(hash_name, keys.stored_key, auth_message)
    return bytes(left ^ right for left, right in zip(keys.client_key, signature, strict=True))


def escape_name(name: str) -> str:
    return name.replace("=", "=3D").replace(",", "=2C")


def encode(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")


def decode(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise SaslError("the broker's SCRAM message holds something that is not base64") from None


def client_first_bare(username: str, nonce: str, extensions: dict[str, str]) -> str:
    extra = "".join(f",{name}={value}" for name, value in extensions.items())
    return f"n={escape_name(username)},r={nonce}{extra}"


def parse_server_first(message: bytes) -> ServerFirst:
    fields = _fields(message)
    _refuse_error(fields)
    nonce, salt, iterations = (fields.get(letter, "") for letter in "rsi")
    if "m" in fields:
        raise SaslError("the broker demands a SCRAM extension that is not known here")
    if not nonce or not salt or not (iterations.isascii() and iterations.isdigit()) or len(iterations) > 9:
        raise SaslError("the broker's first SCRAM message lacks nonce, salt or iteration count")
    return ServerFirst(nonce, decode(salt), int(iterations))


def parse_server_final(message: bytes) -> bytes:
    """The server's signature."""
    fields = _fields(message)
    _refuse_error(fields)
    if "v" not in fields:
        raise SaslError("the broker's last SCRAM message lacks its signature")
    return decode(fields["v"])


def _fields(message: bytes) -> dict[str, str]:
    try:
        pairs = [part.split("=", 1) for part in message.decode().split(",")]
        return {letter: value for letter, value in pairs}  # noqa: C416 - a pair of another length is an error
    except ValueError:
        raise SaslError("the broker sent something that is no SCRAM message") from None


def _refuse_error(fields: dict[str, str]) -> None:
    if "e" in fields:
        raise SaslError(f"the broker refused the SCRAM exchange: {fields['e']}")
