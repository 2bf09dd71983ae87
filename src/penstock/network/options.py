"""How a request may be sent, as typed keywords: those of `NodeChannel.send`, for whoever passes them on."""

from __future__ import annotations

from typing import TypedDict

from penstock.network.in_flight import Decode


class SendOptions(TypedDict, total=False):
    timeout_ms: float | None
    """From now to the answer; `request.timeout.ms` if not given."""
    at_least: int
    at_most: int
    """The versions of the API that will do."""
    decode: Decode | None
    """Instead of the message's own decoder."""
    expects_answer: bool
