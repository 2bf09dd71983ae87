"""`BrokerConfig`: the values one broker runs with, and where each comes from.

Values are layered, the later over the earlier: the declared defaults, the static settings (profile, file, environment,
flags), the dynamic cluster-wide ones and the dynamic ones of this broker. A config never changes: `with_dynamic` makes
another one. Text is parsed once, when the config is made, so `config[keys.NUM_PARTITIONS]` is one dictionary look-up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar, cast

from penstock.base.config import broker_keys as keys
from penstock.base.config.checks import check_values
from penstock.base.config.declaration import ConfigErrors, Key, Problem
from penstock.base.config.effective import log_directories
from penstock.base.config.listeners import Listener
from penstock.base.config.resolving import parse_settings
from penstock.base.config.sources import Setting, Source

T = TypeVar("T")

_DEFAULTS: dict[str, Any] = {name: key.default for name, key in keys.KEYS.items()}
_OTHER_NAMES = {keys.BROKER_ID.name: keys.NODE_ID.name, keys.NODE_ID.name: keys.BROKER_ID.name}
_DYNAMIC_ORIGINS = {Source.DYNAMIC_BROKER: "dynamic", Source.DYNAMIC_DEFAULT_BROKER: "dynamic default"}


class BrokerConfig:
    """Raises ConfigErrors, with every problem, when the settings make no usable configuration.

    `hostname` is advertised for listeners that name no host.
    """

    __slots__ = (
        "_hostname",
        "_layers",
        "_values",
        "advertised_listeners",
        "listeners",
        "log_dirs",
        "node_id",
        "warnings",
    )

    def __init__(
        self,
        settings: Mapping[str, Setting] | None = None,
        *,
        dynamic: Mapping[str, str] | None = None,
        dynamic_default: Mapping[str, str] | None = None,
        hostname: str = "localhost",
        problems: Sequence[Problem] = (),
    ) -> None:
        self._hostname = hostname
        self._layers: dict[Source, Mapping[str, Setting]] = {
            Source.DYNAMIC_BROKER: _as_settings(dynamic, Source.DYNAMIC_BROKER),
            Source.DYNAMIC_DEFAULT_BROKER: _as_settings(dynamic_default, Source.DYNAMIC_DEFAULT_BROKER),
            Source.STATIC_BROKER: dict(settings or {}),
        }
        parsed, bad_values = parse_settings(self._effective_settings())
        self._values = {**_DEFAULTS, **parsed}
        self._share_node_id(parsed)
        checked = check_values(self._values, self._effective_settings(), hostname)
        found = [*problems, *bad_values, *checked.problems]
        if found:
            raise ConfigErrors(found)
        self.node_id: int = self._values[keys.NODE_ID.name]
        self.log_dirs: tuple[str, ...] = log_directories(self)
        self.listeners: tuple[Listener, ...] = checked.listeners
        self.advertised_listeners: tuple[Listener, ...] = checked.advertised_listeners
        """One for each of `listeners`, in the same order; port 0 stays 0 until the listener is bound."""
        self.warnings: tuple[str, ...] = checked.warnings
        """What the owner should know: unknown keys, keys without effect, clipped values."""

    @classmethod
    def of(cls, values: Mapping[str, str] | None = None, **more: Any) -> BrokerConfig:
        """A config from plain texts, for tests and embedding."""
        settings = {name: Setting(text, "given") for name, text in (values or {}).items()}
        return cls(settings, **more)

    def __getitem__(self, key: Key[T]) -> T:
        return cast("T", self._values[key.name])

    def for_listener(self, listener: str, key: Key[T]) -> T:
        """The value that `listener.name.<listener>.<key>` gives to one listener, or the general one."""
        name = f"listener.name.{listener.lower()}.{key.name}"
        return cast("T", self._values.get(name, self._values[key.name]))

    def with_dynamic(
        self, *, broker: Mapping[str, str] | None = None, default: Mapping[str, str] | None = None
    ) -> BrokerConfig:
        """The same static settings under these dynamic ones (of this broker, and cluster-wide)."""
        return BrokerConfig(
            self._layers[Source.STATIC_BROKER], dynamic=broker, dynamic_default=default, hostname=self._hostname
        )

    def settings_of(self, name: str) -> Iterator[tuple[Source, Setting]]:
        """Every layer that sets the key, the one that counts first. The defaults are not among them."""
        for source, layer in self._layers.items():
            setting = layer.get(name) or layer.get(_OTHER_NAMES.get(name, name))
            if setting is not None:
                yield source, setting

    def source_of(self, key: Key[Any]) -> Source:
        return next((source for source, _ in self.settings_of(key.name)), Source.DEFAULT)

    def is_set(self, key: Key[Any]) -> bool:
        return any(key.name in layer for layer in self._layers.values())

    def set_names(self) -> set[str]:
        """Names that some layer sets, unknown ones included."""
        return {name for layer in self._layers.values() for name in layer}

    def _effective_settings(self) -> dict[str, Setting]:
        merged: dict[str, Setting] = {}
        for layer in reversed(self._layers.values()):
            merged.update(layer)
        return merged

    def _share_node_id(self, parsed: Mapping[str, Any]) -> None:
        """node.id and broker.id are two names of one value; that they agree is checked later."""
        if keys.NODE_ID.name not in parsed and keys.BROKER_ID.name in parsed:
            self._values[keys.NODE_ID.name] = parsed[keys.BROKER_ID.name]
        elif keys.BROKER_ID.name not in parsed:
            self._values[keys.BROKER_ID.name] = self._values[keys.NODE_ID.name]


def _as_settings(values: Mapping[str, str] | None, source: Source) -> Mapping[str, Setting]:
    return {name: Setting(text, _DYNAMIC_ORIGINS[source]) for name, text in (values or {}).items()}
