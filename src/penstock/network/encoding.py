"""Requests to bytes, answers to values.

A message is encoded by its class. Whoever has encoded a body already, such as a producer with finished batches, gives
an `EncodedBody`: its parts go to the socket behind the header without being copied together.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from penstock.base.ports import Buffer
from penstock.network.in_flight import Frame
from penstock.protocol.apis import request_header_version, response_header_version
from penstock.protocol.errors import DecodeError
from penstock.protocol.primitives import nullable_legacy_string, skip_tags
from penstock.protocol.requests import decode_response, encode_request

_HEAD: Final = struct.Struct(">ihhi")


@dataclass(frozen=True, slots=True)
class EncodedBody:
    """The body of a request, encoded in the version it is sent with. The parts must not change until it is answered."""

    parts: Sequence[Buffer]


def encode(api_key: int, version: int, correlation_id: int, client_id: str | None, message: object) -> list[Buffer]:
    """The whole request as parts. `EncodeError` when the message does not fit its version."""
    if not isinstance(message, EncodedBody):
        return [encode_request(api_key, version, correlation_id, client_id, message)]
    header = nullable_legacy_string(client_id)
    if request_header_version(api_key, version) == 2:
        header += b"\x00"
    size = _HEAD.size - 4 + len(header) + sum(len(part) for part in message.parts)
    return [_HEAD.pack(size, api_key, version, correlation_id) + header, *message.parts]


def decode(api_key: int, version: int, frame: Frame) -> Any:
    """The message of an answer. `DecodeError` when it is none."""
    return decode_response(api_key, version, frame)[1]


def body_position(api_key: int, version: int, frame: Frame) -> int:
    """Where the body of an answer begins, for those who decode it by themselves."""
    if response_header_version(api_key, version) == 0:
        return 4
    try:
        return skip_tags(frame, 4, len(frame))
    except IndexError as error:
        raise DecodeError(f"an answer of {len(frame)} bytes is shorter than its header") from error
