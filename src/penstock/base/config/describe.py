"""What DescribeConfigs answers: rows with value, source, synonyms, type and text, as Kafka's broker gives them.

Pure functions of a configuration. A secret, and a key that is not known (it might be a plug-in's secret), has no value
in any row.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from penstock.base.config import broker_keys, topic_keys
from penstock.base.config.broker import BrokerConfig
from penstock.base.config.declaration import Key, UpdateMode, format_value
from penstock.base.config.resolving import known_key
from penstock.base.config.sources import Setting, Source
from penstock.base.config.topic import TopicConfig

UNKNOWN_TYPE = 0


class SynonymRow(NamedTuple):
    name: str
    value: str | None
    source: Source


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigRow:
    name: str
    value: str | None
    read_only: bool
    source: Source
    is_sensitive: bool
    synonyms: tuple[SynonymRow, ...]
    type: int
    documentation: str | None

    @property
    def is_default(self) -> bool:
        return self.source is Source.DEFAULT


# Keys that are alternatives of one another: asking for one shows the others' settings too.
_BROKER_SYNONYMS: Mapping[str, tuple[str, ...]] = {
    name: group
    for group in (
        ("log.roll.ms", "log.roll.hours"),
        ("log.roll.jitter.ms", "log.roll.jitter.hours"),
        ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    )
    for name in group
} | {"log.flush.interval.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms")}


def describe_topic(
    config: TopicConfig,
    names: Collection[str] | None = None,
    *,
    include_synonyms: bool = False,
    include_docs: bool = False,
) -> list[ConfigRow]:
    """Every topic key that is not internal and every override, or those of them that `names` has."""
    listed = [name for name, key in topic_keys.KEYS.items() if not key.internal]
    listed += [name for name in config.overrides if name not in listed]
    return [_topic_row(config, name, include_synonyms, include_docs) for name in listed if not names or name in names]


def _topic_row(config: TopicConfig, name: str, include_synonyms: bool, include_docs: bool) -> ConfigRow:
    key = topic_keys.KEYS.get(name)
    value = None if key is None else key.format(config[key])
    synonyms: list[SynonymRow] = []
    if name in config.overrides:
        synonyms.append(SynonymRow(name, value, Source.DYNAMIC_TOPIC))
    if key is not None and key.synonyms:
        synonyms += broker_synonyms(config.broker, key.synonyms[0].name)
    return _row(name, key, value, synonyms, include_synonyms, include_docs, read_only=False)


def describe_broker(
    config: BrokerConfig,
    names: Collection[str] | None = None,
    *,
    include_synonyms: bool = False,
    include_docs: bool = False,
) -> list[ConfigRow]:
    """Every broker key that is not internal and everything that is set, or those of them that `names` has."""
    listed = [name for name, key in broker_keys.KEYS.items() if not key.internal and name not in _RUN_TIME_ONLY]
    listed += sorted(config.set_names() - set(listed))
    rows = []
    for name in listed:
        if not names or name in names:
            synonyms = list(broker_synonyms(config, name))
            rows.append(_broker_row(config, name, synonyms, include_synonyms, include_docs))
    return rows


def describe_cluster_default(
    config: BrokerConfig,
    names: Collection[str] | None = None,
    *,
    include_synonyms: bool = False,
    include_docs: bool = False,
) -> list[ConfigRow]:
    """What is set for all brokers at run time: the answer for the broker whose name is empty."""
    rows = []
    for name in sorted(config.set_names()):
        synonyms = [row for row in broker_synonyms(config, name) if row.source is Source.DYNAMIC_DEFAULT_BROKER]
        if any(row.name == name for row in synonyms) and (not names or name in names):
            row = _broker_row(config, name, synonyms, include_synonyms, include_docs)
            # This broker may have a value of its own above it.
            rows.append(replace(row, value=synonyms[0].value))
    return rows


_RUN_TIME_ONLY = frozenset(
    {
        broker_keys.LEADER_REPLICATION_THROTTLED_RATE.name,
        broker_keys.FOLLOWER_REPLICATION_THROTTLED_RATE.name,
        broker_keys.REPLICA_ALTER_LOG_DIRS_IO_MAX_BYTES_PER_SECOND.name,
    }
)
"""Kafka does not list these until they are set."""


def _broker_row(
    config: BrokerConfig, name: str, synonyms: list[SynonymRow], include_synonyms: bool, include_docs: bool
) -> ConfigRow:
    key = known_key(name)
    value = None
    if key is not None and key.name == name:
        value = key.format(config[key])
    elif key is not None and not key.sensitive:
        # A listener's own value is shown as it was written.
        value = next((setting.text for _, setting in config.settings_of(name)), None)
    read_only = key is None or key.name != name or key.update is UpdateMode.READ_ONLY
    return _row(name, key, value, synonyms, include_synonyms, include_docs, read_only=read_only)


def broker_synonyms(config: BrokerConfig, name: str) -> Iterator[SynonymRow]:
    """Every layer that sets the key or one of its alternatives, the strongest first, then the defaults.

    As in Kafka the list begins at the key itself: an alternative that is set while the key is not, is not shown.
    """
    rows = _all_synonyms(config, _alternatives(name))
    for row in rows:
        if row.name == name:
            yield row
            yield from rows


def _all_synonyms(config: BrokerConfig, names: tuple[str, ...]) -> Iterator[SynonymRow]:
    by_source: dict[Source, list[SynonymRow]] = {}
    for name in names:
        key = known_key(name)
        for source, setting in config.settings_of(name):
            by_source.setdefault(source, []).append(SynonymRow(name, _shown(key, setting), source))
        if name in _RUN_TIME_ONLY:
            continue
        if key is not None and key.name == name and (default := format_value(key.default)) is not None:
            row = SynonymRow(name, None if key.sensitive else default, Source.DEFAULT)
            by_source.setdefault(Source.DEFAULT, []).append(row)
    for source in sorted(by_source):
        yield from by_source[source]


def _alternatives(name: str) -> tuple[str, ...]:
    key = known_key(name)
    if key is not None and key.name != name:
        return (name, key.name)
    return _BROKER_SYNONYMS.get(name, (name,))


def _shown(key: Key[Any] | None, setting: Setting) -> str | None:
    return None if key is None or key.sensitive else setting.text


def _row(
    name: str,
    key: Key[Any] | None,
    value: str | None,
    synonyms: list[SynonymRow],
    include_synonyms: bool,
    include_docs: bool,
    *,
    read_only: bool,
) -> ConfigRow:
    return ConfigRow(
        name=name,
        value=value,
        read_only=read_only,
        source=synonyms[0].source if synonyms else Source.DEFAULT,
        is_sensitive=key is None or key.sensitive,
        synonyms=tuple(synonyms) if include_synonyms else (),
        type=UNKNOWN_TYPE if key is None else int(key.type),
        documentation=documentation(key) if include_docs and key is not None else None,
    )


def documentation(key: Key[Any]) -> str:
    return f"{key.doc} No effect here: {key.effect}." if key.effect else key.doc
