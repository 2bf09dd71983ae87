"""The same requests to two brokers, and their answers in a form that can be compared.

Dropped is what must differ between two clusters (addresses, cluster ids) or what is written for people (messages,
documentation). Ids of topics become the topics' names, ids of sessions and producers become yes or no, and lists whose
order means nothing are sorted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any
from uuid import UUID

from penstock.base.types import ZERO_UUID
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.create_topics import CreateTopicsRequest
from tests.integration.driving import new_topic
from tests.support.brokers import Broker
from tests.support.raw_client import ConnectionEndedError, RawClient

CLOSED = "the connection was closed"
NO_ANSWER = "no answer came"
ANSWER_TIMEOUT_S = 30
UNKNOWN_ID = UUID(int=99)

_DROPPED = frozenset(
    {
        "throttle_time_ms",
        "cluster_id",
        "host",
        "port",
        "error_message",
        "batch_index_error_message",
        "documentation",
        "node_endpoints",
    }
)
_ONLY_WHETHER = frozenset({"session_id", "producer_id", "log_append_time_ms"})
_ORDERED_BY = ("name", "topic", "topic_id", "partition_index", "index", "partition", "group_id", "transactional_id")


class Peer:
    """One of the two brokers: a connection that is renewed when it was closed, and the ids of its topics."""

    def __init__(self, broker: Broker) -> None:
        self.name = broker.name
        self._port = broker.port
        self._client = RawClient("127.0.0.1", broker.port, timeout=ANSWER_TIMEOUT_S)
        self._ids: dict[str, UUID] = {}

    def create(self, name: str, partitions: int = 1, **configs: str) -> None:
        request = CreateTopicsRequest(topics=[new_topic(name, partitions, **configs)], timeout_ms=10_000)
        (result,) = self._client.call(ApiKey.CREATE_TOPICS, 7, request).topics
        assert result.error_code == 0, result
        self._ids[name] = result.topic_id

    def id_of(self, name: str) -> UUID:
        return self._ids.get(name, UNKNOWN_ID)

    def topic(self, name: str, by_id: bool) -> str | UUID:
        return self.id_of(name) if by_id else name

    def call(self, api: ApiKey, version: int, message: object) -> Any:
        try:
            return self._client.call(api, version, message)
        except (ConnectionEndedError, ConnectionResetError):
            self._connect_again()
            return CLOSED
        except TimeoutError:
            self._connect_again()
            return NO_ANSWER

    def _connect_again(self) -> None:
        self.close()
        self._client = RawClient("127.0.0.1", self._port, timeout=ANSWER_TIMEOUT_S)

    def close(self) -> None:
        self._client.close()

    def comparable(self, answer: Any) -> Any:
        return _plain(answer, {topic_id: name for name, topic_id in self._ids.items()})


def _plain(value: Any, names: Mapping[UUID, str]) -> Any:
    if is_dataclass(value):
        return {
            field.name: _plain_field(field.name, getattr(value, field.name), names)
            for field in fields(value)
            if field.name not in _DROPPED
        }
    if isinstance(value, list | tuple):
        return _sorted([_plain(each, names) for each in value])
    if isinstance(value, UUID):
        return names.get(value, "no id" if value == ZERO_UUID else "an id")
    return value


def _plain_field(name: str, value: Any, names: Mapping[UUID, str]) -> Any:
    return value > 0 if name in _ONLY_WHETHER else _plain(value, names)


def _sorted(values: list[Any]) -> list[Any]:
    if not all(isinstance(value, dict) for value in values):
        return values
    return sorted(values, key=lambda value: [(value[key] is None, value[key]) for key in _ORDERED_BY if key in value])


def differences(kafka: Any, ours: Any, path: str = "") -> list[str]:
    """Where two comparable answers differ, in words."""
    if isinstance(kafka, dict) and isinstance(ours, dict) and kafka.keys() == ours.keys():
        return [line for key in kafka for line in differences(kafka[key], ours[key], f"{path}.{key}")]
    if isinstance(kafka, list) and isinstance(ours, list) and len(kafka) == len(ours):
        return [
            line
            for index, pair in enumerate(zip(kafka, ours, strict=True))
            for line in differences(*pair, f"{path}[{index}]")
        ]
    return [] if kafka == ours else [f"{path}: Kafka says {kafka!r:.300}, Penstock says {ours!r:.300}"]
