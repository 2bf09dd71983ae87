"""The few requests that fixtures send by themselves, from the test's thread, over TCP like any client's."""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping

from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from penstock.protocol.requests import decode_response, encode_request
from penstock.testing.rules import OWN_CLIENT_ID

_VERSION = 7
_TIMEOUT_SECONDS = 30.0


def create_topic(host: str, port: int, name: str, partitions: int, configs: Mapping[str, str]) -> str | None:
    """Why the topic was not made, or None."""
    if isinstance(partitions, bool) or not isinstance(partitions, int) or partitions < 1:
        return f"partitions={partitions!r} is not possible; give 1 or more"
    topic = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=1,
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
    )
    request = CreateTopicsRequest(topics=[topic], timeout_ms=int(_TIMEOUT_SECONDS * 1000))
    with socket.create_connection((host, port), timeout=_TIMEOUT_SECONDS) as connection:
        connection.sendall(encode_request(ApiKey.CREATE_TOPICS, _VERSION, 1, OWN_CLIENT_ID, request))
        with connection.makefile("rb") as stream:
            (size,) = struct.unpack(">i", stream.read(4))
            _, answer = decode_response(ApiKey.CREATE_TOPICS, _VERSION, stream.read(size))
    result = answer.topics[0]
    return result.error_message if result.error_code else None
