"""Every API can refuse every version of a request, with the code where a client looks for it."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from penstock.base.errors import ErrorCode
from penstock.protocol.apis import APIS, ApiKey
from penstock.protocol.requests import decode_response
from penstock.protocol.schema import Message, element_class, wire_fields
from penstock.server.api import Api
from penstock.server.registry import ALL_APIS
from penstock.testing.refusals import refusal, with_topic_errors

CODE = ErrorCode.COORDINATOR_NOT_AVAILABLE


def sample(message_class: type) -> Any:
    """A message with one element in each list."""
    values: dict[str, Any] = {}
    for field, wire in wire_fields(message_class):
        element = element_class(message_class, wire)
        if wire.is_array:
            plain: Any = "some" if wire.element_type == "string" else 7
            values[field.name] = [sample(element) if element is not None else plain]
        elif wire.type == "string":
            values[field.name] = "some"
    return message_class(**values)


def codes_in(message: Any) -> list[int]:
    found: list[int] = []
    for field in dataclasses.fields(message):
        value = getattr(message, field.name)
        if field.name in ("error_code", "partition_error_code"):
            found.append(value)
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, Message):
                found += codes_in(each)
    return found


@pytest.mark.parametrize("api", ALL_APIS, ids=lambda api: api.name)
def test_every_version_carries_the_code(api: Api) -> None:
    for version in api.versions:
        request = sample(APIS[api.key].request_class())
        frame = refusal(api.key, version, 42, request, CODE)
        correlation_id, answer = decode_response(api.key, version, frame[4:])
        assert correlation_id == 42
        assert CODE in codes_in(answer), f"version {version}: {answer}"


def test_produce_names_the_partitions_of_the_request() -> None:
    request = sample(APIS[ApiKey.PRODUCE].request_class())
    request.topic_data[0].partition_data[0].index = 3
    _, answer = decode_response(ApiKey.PRODUCE, 9, refusal(ApiKey.PRODUCE, 9, 1, request, CODE)[4:])
    (topic,) = answer.responses
    assert topic.name == "some"
    assert [(each.index, each.error_code) for each in topic.partition_responses] == [(3, CODE)]


def test_fetch_fails_by_partition_and_an_empty_incremental_fetch_as_a_whole() -> None:
    request = sample(APIS[ApiKey.FETCH].request_class())
    request.topics[0].partitions[0].partition = 5
    _, answer = decode_response(ApiKey.FETCH, 12, refusal(ApiKey.FETCH, 12, 1, request, CODE)[4:])
    assert answer.error_code == 0
    assert [(each.partition_index, each.error_code) for each in answer.responses[0].partitions] == [(5, CODE)]
    request.topics = []
    _, answer = decode_response(ApiKey.FETCH, 12, refusal(ApiKey.FETCH, 12, 1, request, CODE)[4:])
    assert answer.error_code == CODE


def test_find_coordinator_names_every_key() -> None:
    request = APIS[ApiKey.FIND_COORDINATOR].request_class()(coordinator_keys=["a", "b"])
    frame = refusal(ApiKey.FIND_COORDINATOR, 4, 1, request, CODE)
    _, answer = decode_response(ApiKey.FIND_COORDINATOR, 4, frame[4:])
    assert [(each.key, each.error_code) for each in answer.coordinators] == [("a", CODE), ("b", CODE)]


def test_an_unsupported_version_is_answered_in_version_0() -> None:
    request = APIS[ApiKey.API_VERSIONS].request_class()()
    frame = refusal(ApiKey.API_VERSIONS, 4, 1, request, ErrorCode.UNSUPPORTED_VERSION)
    _, answer = decode_response(ApiKey.API_VERSIONS, 0, frame[4:])
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION


def test_metadata_keeps_its_brokers() -> None:
    answer = sample(APIS[ApiKey.METADATA].response_class())
    answer.brokers[0].node_id = 9
    from penstock.protocol.requests import encode_response

    frame = with_topic_errors(12, encode_response(ApiKey.METADATA, 12, 8, answer), CODE)
    correlation_id, changed = decode_response(ApiKey.METADATA, 12, frame[4:])
    assert correlation_id == 8
    assert changed.brokers[0].node_id == 9
    assert [topic.error_code for topic in changed.topics] == [CODE]
