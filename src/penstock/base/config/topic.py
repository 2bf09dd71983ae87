"""`TopicConfig`: a topic's own settings over the broker's over the defaults, and the check of settings from outside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from penstock.base.config import broker_keys, topic_keys
from penstock.base.config.broker import BrokerConfig
from penstock.base.config.declaration import Key
from penstock.base.config.rules import BadValueError
from penstock.base.errors import ErrorCode, KafkaError

T = TypeVar("T")

_UNSET: Mapping[str, str] = {}


class TopicConfig:
    """Values are resolved once. Overrides that are no topic keys are kept, listed and otherwise left alone."""

    __slots__ = ("_values", "broker", "overrides")

    def __init__(self, broker: BrokerConfig, overrides: Mapping[str, str] = _UNSET) -> None:
        self.broker = broker
        self.overrides = dict(overrides)
        self._values: dict[str, Any] = {}
        for name, key in topic_keys.KEYS.items():
            text = overrides.get(name)
            self._values[name] = broker_value(broker, key) if text is None else _parse(key, text)

    def __getitem__(self, key: Key[T]) -> T:
        return cast("T", self._values[key.name])

    @property
    def segment_bytes(self) -> int:
        """`segment.bytes`, unless a test has set `internal.segment.bytes`, which has no lower bound."""
        internal = self[topic_keys.INTERNAL_SEGMENT_BYTES]
        return self[topic_keys.SEGMENT_BYTES] if internal is None else internal

    @property
    def compacted(self) -> bool:
        return "compact" in self[topic_keys.CLEANUP_POLICY]

    @property
    def deletes(self) -> bool:
        return "delete" in self[topic_keys.CLEANUP_POLICY]


def broker_value(broker: BrokerConfig, key: Key[T]) -> T:
    """What a topic gets that sets nothing: the first synonym that has a value, else the key's default."""
    for synonym in key.synonyms:
        value: Any = broker[broker_keys.KEYS[synonym.name]]
        if value is not None:
            # Any negative retention means for ever, in whatever unit it was given.
            if key is topic_keys.RETENTION_MS and value < 0:
                return cast("T", -1)
            return cast("T", value if synonym.factor == 1 else value * synonym.factor)
    return key.default


def validate_topic_overrides(overrides: Mapping[str, str | None], broker: BrokerConfig | None = None) -> None:
    """Raise KafkaError(INVALID_CONFIG), in Kafka's words, unless a topic can have these settings."""
    if missing := [name for name, text in overrides.items() if text is None]:
        raise _invalid(f"Null value not supported for topic configs: {','.join(missing)}")
    if unknown := [name for name in overrides if name not in topic_keys.KEYS]:
        raise _invalid(f"Unknown topic config name: {unknown[0]}")
    config = TopicConfig(broker or _DEFAULT_BROKER, cast("Mapping[str, str]", overrides))
    shortest, longest = config[topic_keys.MIN_COMPACTION_LAG_MS], config[topic_keys.MAX_COMPACTION_LAG_MS]
    if shortest > longest:
        raise _invalid(
            f"conflict topic config setting min.compaction.lag.ms ({shortest}) > max.compaction.lag.ms ({longest})"
        )
    if config[topic_keys.REMOTE_STORAGE_ENABLE]:
        raise _invalid(
            "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log "
            "storage."
        )


def _parse(key: Key[Any], text: str) -> Any:
    try:
        return key.parse(text)
    except BadValueError as error:
        value = text if error.value is None else error.value
        raise _invalid(f"Invalid value {value} for configuration {key.name}: {error.reason}") from error


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_CONFIG, message)


_DEFAULT_BROKER = BrokerConfig()
