"""Every message in every version: our bytes are kio's bytes, and each reads what the other wrote."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kio.index import load_entity_schema
from kio.static.constants import EntityType

from penstock.protocol import codec
from penstock.protocol.apis import APIS, Api, request_header_version, response_header_version
from penstock.protocol.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from tests.unit.protocol import oracle

CASES = [
    pytest.param(api, version, role, id=f"{api.name}-v{version}-{role}")
    for api, version in oracle.api_versions()
    for role in ("request", "response")
]


@pytest.mark.parametrize(("api", "version", "role"), CASES)
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_same_bytes_and_same_values(api: Api, version: int, role: str, data: Any) -> None:
    ours, theirs = oracle.message_class(api, role), oracle.kio_class(api, version, role)
    flexible = api.is_flexible(version)
    message = data.draw(oracle.messages(ours, version, theirs))
    expected = oracle.to_kio(message, theirs)
    encoded = codec.encode(message, version, flexible)
    assert encoded == oracle.kio_encode(expected)
    assert oracle.kio_decode(theirs, encoded) == expected
    assert codec.decode(ours, version, flexible, memoryview(encoded)) == message
    assert codec.decode(ours, version, flexible, encoded) == message


def test_flexible_versions_and_headers_agree() -> None:
    for api, version in oracle.api_versions():
        request, response = (oracle.kio_class(api, version, role) for role in ("request", "response"))
        assert request.__flexible__ == response.__flexible__ == api.is_flexible(version)
        assert request.__api_key__ == api.key
        assert request.__header_schema__.__version__ == request_header_version(api.key, version)
        assert response.__header_schema__.__version__ == response_header_version(api.key, version)


def test_every_version_that_kio_has_is_here() -> None:
    for api in APIS.values():
        here = list(range(api.lowest_version, api.highest_version + 1))
        assert oracle.known_versions(api.key.name.lower()) == here


@pytest.mark.parametrize("version", range(4))
@pytest.mark.parametrize("ours", [ConsumerProtocolSubscription, ConsumerProtocolAssignment])
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_consumer_protocol(ours: type, version: int, data: Any) -> None:
    name = "consumer_protocol_" + ours.__name__.removeprefix("ConsumerProtocol").lower()
    theirs = load_entity_schema(name, version, EntityType.data)
    message = data.draw(oracle.messages(ours, version, theirs))
    encoded = codec.encode(message, version, flexible=False)
    assert encoded == oracle.kio_encode(oracle.to_kio(message, theirs))
    assert codec.decode(ours, version, False, encoded) == message
