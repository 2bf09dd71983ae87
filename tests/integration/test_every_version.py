"""Every served API in every version: announced, answered, its answer read whole, and safe against cut requests."""

from __future__ import annotations

import struct

import pytest

from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.api_versions import ApiVersionsRequest
from penstock.protocol.messages.find_coordinator import FindCoordinatorRequest
from penstock.protocol.requests import decode_response, encode_request, encode_response
from tests.integration.admin_samples import EXPECTED
from tests.integration.conftest import Connect
from tests.integration.coordinator_samples import NOT_FOUND
from tests.integration.driving import create_topic, describe_topics, send_values
from tests.integration.sample_requests import (
    SERVED,
    VERSION_NAMES,
    VERSIONS,
    Sample,
    error_codes,
    sample_request,
)
from tests.support.raw_client import RawClient


@pytest.fixture
def sample(client: RawClient, topic: str) -> Sample:
    topic_id = create_topic(client, topic)
    doomed_id = create_topic(client, f"{topic}-doomed")
    send_values(client, topic, b"first")
    for kind in (0, 1):
        # Makes the topic of that kind of coordinator.
        client.call(ApiKey.FIND_COORDINATOR, 3, FindCoordinatorRequest(key="any", key_type=kind))
    return Sample(topic=topic, topic_id=topic_id, free=f"{topic}-new", doomed=f"{topic}-doomed", doomed_id=doomed_id)


def test_what_is_served_is_announced_and_nothing_else(client: RawClient) -> None:
    request = ApiVersionsRequest(client_software_name="tests", client_software_version="1")
    announced = {
        row.api_key: range(row.min_version, row.max_version + 1)
        for row in client.call(ApiKey.API_VERSIONS, 4, request).api_keys
    }
    assert announced == {**SERVED, ApiKey.PRODUCE: range(14)}


@pytest.mark.parametrize(("api", "version"), VERSIONS, ids=VERSION_NAMES)
def test_every_version_is_answered(client: RawClient, sample: Sample, api: ApiKey, version: int) -> None:
    message = sample_request(api, version, sample)
    sent = client.send(api, version, message)
    frame = client.recv_frame()
    correlation_id, answer = decode_response(api, version, frame)
    assert correlation_id == sent
    assert error_codes(answer) <= {0, NOT_FOUND.get(api, 0), EXPECTED.get(api, 0)}
    # Nothing is left over behind what the schema reads: written again, the answer is as long as it was.
    assert len(encode_response(api, version, correlation_id, answer)) - 4 == len(frame)
    if api is ApiKey.CREATE_TOPICS:
        (created,) = describe_topics(client, f"{sample.free}-{version}")
        assert created.error_code == 0
    if api is ApiKey.DELETE_TOPICS:
        (deleted,) = describe_topics(client, sample.doomed)
        assert deleted.error_code == 3


@pytest.mark.parametrize(("api", "version"), VERSIONS, ids=VERSION_NAMES)
def test_a_request_cut_anywhere_ends_its_connection_only(
    client: RawClient, connect: Connect, sample: Sample, api: ApiKey, version: int
) -> None:
    """The frame says its true size, its body ends too early: at every byte."""
    whole = encode_request(api, version, 1, "x", sample_request(api, version, sample))[4:]
    # The body of ApiVersions below version 3 is empty, so that such a request is whole before its last byte.
    header_end = 8 + 2 + 1
    stop = header_end if api is ApiKey.API_VERSIONS and version < 3 else len(whole)
    for end in range(stop):
        if end > 200 and end % 7:
            continue
        victim = connect()
        victim.send_raw(struct.pack(">i", end) + whole[:end])
        assert victim.is_closed_by_peer(), f"cut at {end} of {len(whole)}"
        victim.close()
    (alive,) = describe_topics(client, sample.topic)
    assert alive.error_code == 0
    assert describe_topics(client, sample.free + f"-{version}")[0].error_code == 3, "half a request was carried out"
    assert describe_topics(client, sample.doomed)[0].error_code == 0, "half a request was carried out"


@pytest.mark.parametrize("api", list(SERVED), ids=lambda api: api.name.lower())
@pytest.mark.parametrize("where", ["below", "above"])
def test_versions_out_of_range_close_the_connection(connect: Connect, api: ApiKey, where: str) -> None:
    versions = SERVED[api]
    version = versions.start - 1 if where == "below" else versions.stop
    victim = connect()
    frame = struct.pack(">hhih", api, version, 7, -1) + bytes(64)
    victim.send_raw(struct.pack(">i", len(frame)) + frame)
    if api is not ApiKey.API_VERSIONS:
        assert victim.is_closed_by_peer()
        return
    correlation_id, answer = decode_response(api, 0, victim.recv_frame())
    assert (correlation_id, answer.error_code) == (7, 35)
