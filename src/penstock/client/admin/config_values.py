"""What has a configuration, one key of it, and one step of a change."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.client.admin import checks
from penstock.client.admin.enums import AlterConfigKind, ConfigResourceType, ConfigSource, ConfigType


@dataclass(frozen=True, slots=True)
class ConfigResource:
    """Something that has a configuration. The empty name of type BROKER stands for all brokers' dynamic default."""

    type: ConfigResourceType
    name: str

    def __post_init__(self) -> None:
        # By its name too: ConfigResource("topic", "orders").
        object.__setattr__(self, "type", checks.member(self.type, ConfigResourceType, "the type of a resource"))

    @classmethod
    def topic(cls, name: str) -> ConfigResource:
        """The configuration of a topic."""
        return cls(ConfigResourceType.TOPIC, name)

    @classmethod
    def broker(cls, node_id: int | None = None) -> ConfigResource:
        """One broker, or the default of all when no id is given."""
        return cls(ConfigResourceType.BROKER, "" if node_id is None else str(node_id))

    @classmethod
    def broker_logger(cls, node_id: int) -> ConfigResource:
        """The log levels of one broker."""
        return cls(ConfigResourceType.BROKER_LOGGER, str(node_id))

    @classmethod
    def group(cls, name: str) -> ConfigResource:
        """The configuration of a consumer group."""
        return cls(ConfigResourceType.GROUP, name)

    def __str__(self) -> str:
        return f"{self.type.name.lower().replace('_', ' ')} {self.name or '(default of all)'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigSynonym:
    """A value that holds, or would hold if the ones before it did not."""

    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigEntry:
    """One key's value and where it comes from. Values of sensitive keys are never told."""

    name: str
    value: str | None
    source: ConfigSource = ConfigSource.UNKNOWN
    is_read_only: bool = False
    is_sensitive: bool = False
    type: ConfigType = ConfigType.UNKNOWN
    documentation: str | None = None
    synonyms: tuple[ConfigSynonym, ...] = ()

    @property
    def is_default(self) -> bool:
        """Whether nobody set it."""
        return self.source is ConfigSource.DEFAULT_CONFIG


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterConfigOp:
    """One step of an incremental change: `AlterConfigOp(name="retention.ms", value="1000")`."""

    name: str
    value: str | None = None
    op: AlterConfigKind = AlterConfigKind.SET

    @classmethod
    def delete(cls, name: str) -> AlterConfigOp:
        """Back to the default."""
        return cls(name=name, op=AlterConfigKind.DELETE)
