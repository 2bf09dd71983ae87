"""Whatever comes in: a message or DecodeError, soon, and without memory for what is not there."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.protocol import codec
from penstock.protocol.apis import Api, ApiKey
from penstock.protocol.errors import DecodeError
from penstock.protocol.hot.fetch import decode_fetch
from penstock.protocol.hot.produce import decode_produce
from penstock.protocol.requests import decode_request, read_request_header
from tests.unit.protocol import oracle

VERSIONS = oracle.api_versions()
CASES = [pytest.param(api, version, id=f"{api.name}-v{version}") for api, version in VERSIONS]
# Counts and lengths as an attacker would write them: legacy, compact, and a little too much.
LIES = (
    b"\x7f\xff\xff\xff",
    b"\xff\xff\xff\xff\x07",
    b"\xff\xff\xff\xff\x0f",
    b"\x7f\xff",
    b"\x00\x00\x10\x00",
    b"\xff",
)
BOUNDED = settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))


def decoder(api: Api, version: int, role: str) -> Callable[[Any], Any]:
    cls = oracle.message_class(api, role)
    return lambda data: codec.decode(cls, version, api.is_flexible(version), data)


def tolerate(decode: Callable[[Any], Any], data: bytes) -> None:
    try:
        decode(memoryview(data))
    except DecodeError:
        pass


@st.composite
def valid(draw: Any, api: Api, version: int, role: str) -> bytes:
    strategy = oracle.messages(oracle.message_class(api, role), version, oracle.kio_class(api, version, role))
    return codec.encode(draw(strategy), version, api.is_flexible(version))


@pytest.mark.parametrize(("api", "version"), CASES)
@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_cut_short_and_lying(api: Api, version: int, data: Any) -> None:
    for role in ("request", "response"):
        decode = decoder(api, version, role)
        body = data.draw(valid(api, version, role))
        for end in {0, len(body) // 2, len(body) - 1, *range(min(len(body), 16))}:
            if 0 <= end < len(body):
                with pytest.raises(DecodeError):
                    decode(memoryview(body)[:end])
        for position in range(min(len(body), 40)):
            for lie in LIES:
                tolerate(decode, body[:position] + lie + body[position + len(lie) :])


@BOUNDED
@given(case=st.sampled_from(VERSIONS), role=st.sampled_from(["request", "response"]), data=st.binary(max_size=200))
def test_garbage(case: tuple[Api, int], role: str, data: bytes) -> None:
    tolerate(decoder(*case, role), data)


@BOUNDED
@given(data=st.binary(max_size=64))
def test_garbage_as_a_header(data: bytes) -> None:
    tolerate(read_request_header, data)


@BOUNDED
@given(version=st.integers(3, 13), data=st.binary(max_size=120))
def test_garbage_as_produce(version: int, data: bytes) -> None:
    tolerate(lambda frame: decode_produce(version, frame, 0), data)


@BOUNDED
@given(version=st.integers(4, 18), data=st.binary(max_size=160))
def test_garbage_as_fetch(version: int, data: bytes) -> None:
    tolerate(lambda frame: decode_fetch(version, frame, 0), data)


@pytest.mark.parametrize("lie", [b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x07"])
@pytest.mark.parametrize(("api", "version"), CASES)
def test_no_memory_for_elements_that_are_not_there(api: Api, version: int, lie: bytes) -> None:
    frame = lie * 8
    decode = decoder(api, version, "request")
    tolerate(decode, frame)  # compiles it
    tracemalloc.start()
    try:
        for start in range(len(lie)):
            tolerate(decode, frame[start:])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100_000


def test_many_tags_end_with_the_bytes() -> None:
    """The number of tagged fields may claim four billion: the loop ends where the bytes end."""
    body = b"\x00" + b"\x01\x01\x00\x00"[1:] + b"\xff\xff\xff\xff\x0f" + b"\x63\x00" * 1000
    with pytest.raises(DecodeError):
        decode_request(ApiKey.METADATA, 9, body, 0)
