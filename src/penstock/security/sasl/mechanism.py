"""What the client side of a SASL mechanism looks like to whoever moves its bytes."""

from __future__ import annotations

from typing import Protocol


class SaslError(Exception):
    """The other side's proof is wrong, or what it sent is no message of the mechanism; the text is a sentence."""


class ClientMechanism(Protocol):
    """One exchange. `first()` opens it; then `step` is called with each challenge until `is_complete`."""

    @property
    def name(self) -> str:
        """As SaslHandshake spells it."""

    @property
    def is_complete(self) -> bool:
        """Whether the mechanism is satisfied with the server. Success that the server claims before is a lie."""

    def first(self) -> bytes:
        """The initial response."""

    def step(self, challenge: bytes) -> bytes | None:
        """The answer to a challenge; None when there is nothing to say any more. `SaslError` gives up."""
