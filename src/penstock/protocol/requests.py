"""Whole frames in and out, for the server (read a request, write its answer) and for the client (the reverse).

A frame is the bytes behind the four-byte size. What the server encodes is complete, size included. Requests are
decoded in two steps: the header tells the API and the version, and only a version that the server serves is decoded.
"""

from __future__ import annotations

import struct
from typing import Any, Final, NamedTuple

from penstock.protocol.apis import APIS, Api, request_header_version, response_header_version
from penstock.protocol.codec import Reader, Writer, reader, writer
from penstock.protocol.errors import DecodeError, EncodeError
from penstock.protocol.primitives import Buffer, nullable_legacy_string, skip_tags

_REQUEST_HEADER: Final = struct.Struct(">hhih")
_SIZE_AND_CORRELATION: Final = struct.Struct(">ii")

# A small frame is copied once: bytes are faster to index and to slice than a view of the receive buffer.
_COPIED_BYTES_MAX: Final = 16 * 1024

_FLEXIBLE: Final = frozenset(
    (int(known.key), version)
    for known in APIS.values()
    for version in range(known.lowest_version, known.highest_version + 1)
    if known.is_flexible(version)
)

_request_readers: Final[dict[tuple[int, int], Reader]] = {}
_request_writers: Final[dict[tuple[int, int], Writer]] = {}
_response_readers: Final[dict[tuple[int, int], Reader]] = {}
_response_writers: Final[dict[tuple[int, int], tuple[Writer, int]]] = {}


class RequestHeader(NamedTuple):
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    body_position: int
    """Where the body begins; for an API or version unknown here, behind the part that all headers share."""


def read_request_header(frame: Buffer) -> RequestHeader:
    """The header of a request, of any API and version that exists or may come to exist."""
    client_id = None
    position = _REQUEST_HEADER.size
    try:
        api_key, version, correlation_id, length = _REQUEST_HEADER.unpack_from(frame)
        if length >= 0:
            end = position + length
            if end > len(frame):
                raise DecodeError("the client id ends beyond the request")
            client_id = str(frame[position:end], "utf-8")
            position = end
        if (api_key, version) in _FLEXIBLE:
            # One zero byte nearly always: no client sends tagged fields in the header.
            position = skip_tags(frame, position, len(frame)) if frame[position] else position + 1
    except (IndexError, UnicodeDecodeError, struct.error) as error:
        raise DecodeError(f"the header of a request of {len(frame)} bytes cannot be read: {error}") from error
    # Every request comes through here, and this takes half the time of the named tuple's own constructor.
    return tuple.__new__(RequestHeader, (api_key, version, correlation_id, client_id, position))


def decode_request(api_key: int, version: int, frame: Buffer, position: int) -> Any:
    """The body of a request, which starts at `position`. Nothing in the result refers to the frame's memory."""
    read = _request_readers.get((api_key, version)) or _request_reader(api_key, version)
    end = len(frame)
    if end <= _COPIED_BYTES_MAX:
        frame = bytes(frame)
    return read(frame, position, end)[0]


def encode_response(api_key: int, version: int, correlation_id: int, message: object) -> bytes:
    """The whole answer: size, header, body."""
    write, header_size = _response_writers.get((api_key, version)) or _response_writer(api_key, version)
    out = bytearray(header_size)
    write(out, message)
    _SIZE_AND_CORRELATION.pack_into(out, 0, len(out) - 4, correlation_id)
    return bytes(out)


def encode_request(api_key: int, version: int, correlation_id: int, client_id: str | None, message: object) -> bytes:
    """The whole request: size, header, body."""
    write = _request_writers.get((api_key, version)) or _request_writer(api_key, version)
    try:
        out = bytearray(4) + _REQUEST_HEADER.pack(api_key, version, correlation_id, 0)[:8]
        out += nullable_legacy_string(client_id)
    except struct.error as error:
        raise EncodeError(f"the header of a {APIS[api_key].name} request cannot be written: {error}") from error
    if request_header_version(api_key, version) == 2:
        out.append(0)
    write(out, message)
    struct.pack_into(">i", out, 0, len(out) - 4)
    return bytes(out)


def decode_response(api_key: int, version: int, frame: Buffer) -> tuple[int, Any]:
    """(correlation id, message) of an answer to a request that was sent with this version."""
    try:
        (correlation_id,) = struct.unpack_from(">i", frame)
        position = 4
        if response_header_version(api_key, version) == 1:
            position = skip_tags(frame, position, len(frame))
    except (IndexError, struct.error) as error:
        raise DecodeError(f"an answer of {len(frame)} bytes is shorter than its header") from error
    read = _response_readers.get((api_key, version)) or _response_reader(api_key, version)
    return correlation_id, read(frame, position, len(frame))[0]


def _known(api_key: int, version: int, error: type[DecodeError | EncodeError]) -> Api:
    known = APIS.get(api_key)
    if known is None:
        raise error(f"API {api_key} is unknown")
    if not known.has_version(version):
        raise error(f"{known.name} has no version {version}")
    return known


def _request_reader(api_key: int, version: int) -> Reader:
    known = _known(api_key, version, DecodeError)
    read = reader(known.request_class(), version, known.is_flexible(version))
    _request_readers[api_key, version] = read
    return read


def _response_reader(api_key: int, version: int) -> Reader:
    known = _known(api_key, version, DecodeError)
    read = reader(known.response_class(), version, known.is_flexible(version))
    _response_readers[api_key, version] = read
    return read


def _request_writer(api_key: int, version: int) -> Writer:
    known = _known(api_key, version, EncodeError)
    write = writer(known.request_class(), version, known.is_flexible(version))
    _request_writers[api_key, version] = write
    return write


def _response_writer(api_key: int, version: int) -> tuple[Writer, int]:
    """The writer, and the bytes in front of the body: size, correlation id, no tagged fields."""
    known = _known(api_key, version, EncodeError)
    write = writer(known.response_class(), version, known.is_flexible(version))
    entry = write, 8 + response_header_version(api_key, version)
    _response_writers[api_key, version] = entry
    return entry
