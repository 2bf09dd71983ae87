"""The client side of SCRAM-SHA-256 and SCRAM-SHA-512.

Three messages each way at most: name and nonce; proof; nothing. The server's last message carries its own proof, and
only a server that knows the derived keys can make it: until that is checked the exchange is not complete, whatever
the server says.
"""

from __future__ import annotations

import enum
import hmac

from penstock.security.sasl import scram_messages as messages
from penstock.security.sasl.mechanism import SaslError


class ScramState(enum.Enum):
    START = enum.auto()
    """Nothing was said."""
    NAMED = enum.auto()
    """The name and our nonce are out; the server's nonce, salt and iterations are awaited."""
    PROVEN = enum.auto()
    """Our proof is out; the server's is awaited."""
    COMPLETE = enum.auto()
    """The server's proof is right."""


class ScramClient:
    """`nonce` is printable, without a comma, and never used twice. `extensions` are Kafka's, such as `tokenauth`."""

    def __init__(
        self, name: str, username: str, password: str, *, nonce: str, extensions: dict[str, str] | None = None
    ) -> None:
        self.name = name
        self.state = ScramState.START
        self._hash = messages.HASHES[name]
        self._password = password.encode()
        self._nonce = nonce
        self._first_bare = messages.client_first_bare(username, nonce, extensions or {})
        self._server_signature = b""

    @property
    def is_complete(self) -> bool:
        return self.state is ScramState.COMPLETE

    def first(self) -> bytes:
        self.state = ScramState.NAMED
        return (messages.GS2_HEADER + self._first_bare).encode()

    def step(self, challenge: bytes) -> bytes | None:
        if self.state is ScramState.NAMED:
            return self._prove(challenge)
        if self.state is ScramState.PROVEN:
            self._check(challenge)
            return None
        if challenge:
            raise SaslError("the broker went on after the end of the SCRAM exchange")
        return None

    def _prove(self, challenge: bytes) -> bytes:
        server = messages.parse_server_first(challenge)
        self._check_first(server)
        final_bare = f"c={messages.encode(messages.GS2_HEADER.encode())},r={server.nonce}"
        signed = f"{self._first_bare},{challenge.decode()},{final_bare}".encode()
        keys = messages.derive_keys(self._hash, self._password, server.salt, server.iterations)
        self._server_signature = messages.sign(self._hash, keys.server_key, signed)
        self.state = ScramState.PROVEN
        proof = messages.client_proof(self._hash, keys, signed)
        return f"{final_bare},p={messages.encode(proof)}".encode()

    def _check_first(self, server: messages.ServerFirst) -> None:
        if not server.nonce.startswith(self._nonce) or len(server.nonce) == len(self._nonce):
            raise SaslError("the broker's SCRAM nonce does not continue ours: another exchange is being replayed")
        if server.iterations < messages.ITERATIONS_MIN:
            raise SaslError(
                f"the broker asks for {server.iterations} SCRAM iterations, fewer than {messages.ITERATIONS_MIN}: "
                "create the user's credential again with more"
            )
        if server.iterations > messages.ITERATIONS_MAX:
            raise SaslError(f"the broker asks for {server.iterations} SCRAM iterations: more than anybody should")

    def _check(self, challenge: bytes) -> None:
        if not hmac.compare_digest(messages.parse_server_final(challenge), self._server_signature):
            raise SaslError("the broker could not prove that it knows the user's credential: it may be an impostor")
        self.state = ScramState.COMPLETE
