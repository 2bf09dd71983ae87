"""The two ways a message fails: bytes from the other side that are no message, and a value that fits no wire format."""

from __future__ import annotations


class DecodeError(Exception):
    """The peer sent bytes that are not the message they claim to be; the connection cannot go on."""


class EncodeError(Exception):
    """A message holds a value that its version cannot carry; the mistake is ours."""
