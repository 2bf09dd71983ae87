"""Frames of requests and answers, both roles."""

from __future__ import annotations

import struct

import pytest

from penstock.protocol.apis import APIS, ApiKey, api, request_header_version, response_header_version
from penstock.protocol.errors import DecodeError, EncodeError
from penstock.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from penstock.protocol.messages.metadata import MetadataRequest, MetadataResponse
from penstock.protocol.requests import (
    RequestHeader,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    read_request_header,
)


@pytest.mark.parametrize("client_id", [None, "", "rdkafka", "ü" * 200])
@pytest.mark.parametrize("version", range(14))
def test_requests_there_and_back(version: int, client_id: str | None) -> None:
    request = MetadataRequest(topics=[])
    frame = encode_request(ApiKey.METADATA, version, -5, client_id, request)
    assert struct.unpack_from(">i", frame) == (len(frame) - 4,)
    body = memoryview(frame)[4:]
    header = read_request_header(body)
    assert header[:4] == (ApiKey.METADATA, version, -5, client_id)
    assert decode_request(ApiKey.METADATA, version, body, header.body_position) == request


@pytest.mark.parametrize("key", list(ApiKey))
def test_answers_there_and_back(key: ApiKey) -> None:
    known = api(key)
    for version in range(known.lowest_version, known.highest_version + 1):
        answer = known.response_class()()
        frame = encode_response(key, version, 2**31 - 1, answer)
        assert struct.unpack_from(">i", frame) == (len(frame) - 4,)
        assert decode_response(key, version, frame[4:]) == (2**31 - 1, answer)


def test_nothing_of_a_decoded_request_refers_to_the_frame() -> None:
    known = APIS[ApiKey.SASL_AUTHENTICATE]
    request = known.request_class()(auth_bytes=b"secret" * 10_000)
    frame = bytearray(encode_request(known.key, 2, 1, None, request)[4:])
    position = read_request_header(frame).body_position
    read = decode_request(known.key, 2, memoryview(frame), position)
    frame[:] = bytes(len(frame))
    frame.clear()
    assert read == request


def test_header_versions() -> None:
    assert request_header_version(ApiKey.API_VERSIONS, 2) == 1
    assert request_header_version(ApiKey.API_VERSIONS, 3) == 2
    assert [response_header_version(ApiKey.API_VERSIONS, v) for v in range(5)] == [0] * 5
    assert response_header_version(ApiKey.METADATA, 8) == 0
    assert response_header_version(ApiKey.METADATA, 9) == 1
    assert request_header_version(ApiKey.SASL_HANDSHAKE, 1) == 1


def test_api_versions_is_answered_with_the_short_header() -> None:
    frame = encode_response(ApiKey.API_VERSIONS, 3, 9, ApiVersionsResponse(error_code=35))
    assert frame[8:10] == struct.pack(">h", 35)


def test_the_header_of_an_unknown_version_can_be_read() -> None:
    frame = bytearray(encode_request(ApiKey.API_VERSIONS, 3, 9, "future", ApiVersionsRequest())[4:])
    struct.pack_into(">h", frame, 2, 99)
    assert read_request_header(frame)[:4] == (18, 99, 9, "future")
    struct.pack_into(">h", frame, 0, 12345)
    assert read_request_header(frame)[:4] == (12345, 99, 9, "future")


def test_tagged_fields_of_the_header_are_skipped() -> None:
    head = struct.pack(">hhih", ApiKey.METADATA, 9, 1, -1)
    header = read_request_header(head + b"\x01\x00\x03abc" + b"body")
    assert header == RequestHeader(ApiKey.METADATA, 9, 1, None, 16)


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        bytes(9),
        struct.pack(">hhih", 3, 0, 1, 5) + b"abc",
        struct.pack(">hhih", 3, 0, 1, 2) + b"\xc3\x28",
        struct.pack(">hhih", 3, 9, 1, -1),
        struct.pack(">hhih", 3, 9, 1, -1) + b"\x01\x00\x7fx",
    ],
)
def test_headers_that_are_none(frame: bytes) -> None:
    with pytest.raises(DecodeError):
        read_request_header(memoryview(frame))


def test_unknown_apis_and_versions() -> None:
    with pytest.raises(DecodeError, match="Metadata has no version 14"):
        decode_request(ApiKey.METADATA, 14, b"", 0)
    with pytest.raises(DecodeError, match="API 999 is unknown"):
        decode_request(999, 0, b"", 0)
    with pytest.raises(EncodeError, match="no version -1"):
        encode_response(ApiKey.METADATA, -1, 0, MetadataResponse())
    with pytest.raises(EncodeError):
        encode_request(ApiKey.METADATA, 0, 2**31, None, MetadataRequest())


@pytest.mark.parametrize("frame", [b"", b"\x00\x00\x00", b"\x00\x00\x00\x01", b"\x00\x00\x00\x01\x01"])
def test_answers_that_are_none(frame: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_response(ApiKey.METADATA, 9, frame)
