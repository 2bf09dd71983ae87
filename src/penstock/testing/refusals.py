"""An answer of any API that says: this failed, with that code.

Kafka puts errors where the work is: a Produce answer has one per partition, a FindCoordinator answer one per key. So
the answer is a mirror of the request. Each list of the answer takes its elements from the list of the request that
`_SOURCES` names, an element takes the fields by which a client finds it (`_IDENTITY`), and everything in the answer
that can carry an error carries it.
"""

from __future__ import annotations

from typing import Any, Final

from penstock.base.errors import ErrorCode
from penstock.protocol.apis import APIS, ApiKey
from penstock.protocol.requests import decode_response, encode_response
from penstock.protocol.schema import element_class, wire_fields

MESSAGE: Final = "injected by penstock.testing"

_SOURCES: Final[dict[str, tuple[str, ...]]] = {
    "coordinators": ("coordinator_keys",),
    "groups": ("groups",),
    "markers": ("markers",),
    "members": ("members",),
    "partition_responses": ("partition_data",),
    "partition_result": ("partitions",),
    "partitions": ("partitions", "partition_indexes"),
    "replica_election_results": ("topic_partitions",),
    "responses": ("topic_data", "topics", "topic_names", "resources"),
    "results": ("resources", "groups_names", "topics", "dirs.topics"),
    "results_by_partition": ("partitions",),
    "results_by_topic_v3_and_below": ("v3_and_below_topics",),
    "results_by_transaction": ("transactions",),
    "topic_results": ("topics",),
    "topics": ("topics",),
    "transaction_states": ("transactional_ids",),
}
"""Lists of answers, and where their elements are in requests; the first that is there and not empty counts.

`a.b` are the elements of `b` in all elements of `a`."""

_IDENTITY: Final[dict[str, tuple[str, ...]]] = {
    "group_id": ("group_id",),
    "group_instance_id": ("group_instance_id",),
    "index": ("index",),
    "key": ("key",),
    "member_id": ("member_id",),
    "name": ("name",),
    "partition": ("partition",),
    "partition_index": ("partition_index", "partition"),
    "producer_id": ("producer_id",),
    "resource_name": ("resource_name",),
    "resource_type": ("resource_type",),
    "topic": ("topic",),
    "topic_id": ("topic_id",),
    "topic_name": ("name",),
    "transactional_id": ("transactional_id",),
}
_NAMES_OF_PLAIN_ELEMENTS: Final = ("partition_index", "partition_id", "group_id", "key", "transactional_id", "name")
_CODES: Final = ("error_code", "partition_error_code")


def refusal(key: ApiKey, version: int, correlation_id: int, request: Any, code: ErrorCode) -> bytes:
    """The whole frame of an answer that refuses `request`."""
    known = APIS[key]
    answer, elements = _mirror(known.response_class(), request, code)
    if key is ApiKey.FETCH and elements:
        # At the top it would be an error of the fetch session.
        answer.error_code = 0
    if key is ApiKey.API_VERSIONS and code is ErrorCode.UNSUPPORTED_VERSION:
        # The one answer that a client must understand before it knows any version (KIP-511).
        version = 0
    return encode_response(key, version, correlation_id, answer)


def with_topic_errors(version: int, frame: bytes, code: ErrorCode) -> bytes:
    """A Metadata answer whose topics fail; without the brokers in it a client would be lost for good."""
    correlation_id, answer = decode_response(ApiKey.METADATA, version, frame[4:])
    for topic in answer.topics:
        topic.error_code = code
        topic.partitions = []
    answer.error_code = code
    return encode_response(ApiKey.METADATA, version, correlation_id, answer)


def _mirror(answer_class: type, source: Any, code: ErrorCode) -> tuple[Any, int]:
    """The answer to `source`, and how many elements it has below it."""
    values: dict[str, Any] = {}
    elements = 0
    for field, wire in wire_fields(answer_class):
        if field.name in _CODES:
            values[field.name] = code
        elif field.name == "error_message":
            values[field.name] = MESSAGE
        elif wire.is_array and (element := element_class(answer_class, wire)) is not None:
            values[field.name] = [_mirror(element, each, code)[0] for each in _elements(source, field.name)]
            elements += len(values[field.name])
        elif field.name in _IDENTITY:
            for name in _IDENTITY[field.name]:
                if hasattr(source, name):
                    values[field.name] = getattr(source, name)
    if isinstance(source, str | int):
        names = {field.name for field, _ in wire_fields(answer_class)}
        values[next(name for name in _NAMES_OF_PLAIN_ELEMENTS if name in names)] = source
    return answer_class(**values), elements


def _elements(source: Any, name: str) -> list[Any]:
    for candidate in _SOURCES.get(name, ()):
        found = [source]
        for step in candidate.split("."):
            found = [each for outer in found for each in getattr(outer, step, None) or ()]
        if found:
            return found
    return []
