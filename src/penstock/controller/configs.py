"""Settings of topics and brokers that change while the cluster runs, decided with Kafka's codes and words.

A resource changes as a whole or not at all; one that is refused does not stop the others. Which settings a topic or a
broker may have is known to the configuration, so those checks come as `ConfigRules`. What a plan returns is complete: a
request that only asks for validation is the same plan with its deltas thrown away.

Changes are either steps from what is set (IncrementalAlterConfigs, KIP-339) or the whole of what shall be set
(AlterConfigs), in which case everything that is not named goes back to its default.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

from penstock.base.config import broker_keys, topic_keys
from penstock.base.config.declaration import Key, ValueType, format_value
from penstock.base.errors import ErrorCode, KafkaError
from penstock.controller.names import invalid_name_reason
from penstock.metadata.deltas import BrokerConfigChanged, Delta, TopicConfigChanged
from penstock.metadata.image import CLUSTER_DEFAULT_CONFIG, ClusterImage


class ConfigResourceType(IntEnum):
    """Kafka's kinds of things that have settings, by their wire codes."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class AlterOperation(IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigStep(NamedTuple):
    """`operation` is the number from the wire, known or not."""

    name: str
    operation: int
    value: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigChange:
    """What one resource is to become. `replaces`: what no step names is deleted."""

    resource_type: int
    resource_name: str
    steps: Sequence[ConfigStep]
    replaces: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigChangeResult:
    resource_type: int
    resource_name: str
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigRules:
    """Both validators get all settings that the resource would have, and raise KafkaError when it may not.

    The broker's gets the name first, which is empty for the settings of all brokers.
    """

    node_id: int
    validate_topic: Callable[[Mapping[str, str]], None]
    validate_broker: Callable[[str, Mapping[str, str]], None]


def plan_alter_configs(
    image: ClusterImage, request: Sequence[ConfigChange], rules: ConfigRules
) -> tuple[list[Delta], list[ConfigChangeResult]]:
    """One result for each change, in their order."""
    counts = Counter((change.resource_type, change.resource_name) for change in request)
    deltas: list[Delta] = []
    results = []
    for change in request:
        kind, name = change.resource_type, change.resource_name
        try:
            if counts[kind, name] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
            _check_steps(change)
            deltas += _plan_resource(image, change, rules)
        except KafkaError as error:
            refused = ConfigChangeResult(
                resource_type=kind, resource_name=name, error=error.code, message=error.message
            )
            results.append(refused)
        else:
            results.append(ConfigChangeResult(resource_type=kind, resource_name=name))
    return deltas, results


def _check_steps(change: ConfigChange) -> None:
    names = [step.name for step in change.steps]
    if len(set(names)) < len(names):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    nulls = [step.name for step in change.steps if step.value is None and step.operation != AlterOperation.DELETE]
    if nulls:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {', '.join(nulls)}")


def _plan_resource(image: ClusterImage, change: ConfigChange, rules: ConfigRules) -> list[Delta]:
    if change.resource_type == ConfigResourceType.TOPIC:
        return _plan_topic(image, change, rules)
    if change.resource_type == ConfigResourceType.BROKER:
        return _plan_broker(image, change, rules)
    raise KafkaError(
        ErrorCode.INVALID_REQUEST,
        f"{_kind(change.resource_type)} have no settings here; topics, brokers and their loggers have.",
    )


def _kind(number: int) -> str:
    if number in list(ConfigResourceType) and number != ConfigResourceType.UNKNOWN:
        return ConfigResourceType(number).name.replace("_", " ").capitalize().removesuffix("s") + "s"
    return f"Resources of type {number}"


def _plan_topic(image: ClusterImage, change: ConfigChange, rules: ConfigRules) -> list[Delta]:
    name = change.resource_name
    topic = image.topics.get(name)
    present = {} if topic is None else topic.configs
    wanted = _apply(present, change, topic_keys.KEYS)
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
    if (reason := invalid_name_reason(name)) is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)
    rules.validate_topic(wanted)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
    changes = _difference(present, wanted)
    return [TopicConfigChanged(topic_id=topic.id, changes=changes)] if changes else []


def _plan_broker(image: ClusterImage, change: ConfigChange, rules: ConfigRules) -> list[Delta]:
    name = _broker_name(change.resource_name, rules.node_id)
    present = image.broker_configs.get(name, {})
    wanted = _apply(present, change, broker_keys.KEYS)
    rules.validate_broker(name, wanted)
    changes = _difference(present, wanted)
    return [BrokerConfigChanged(name=name, changes=changes)] if changes else []


def _broker_name(name: str, node_id: int) -> str:
    if name == CLUSTER_DEFAULT_CONFIG:
        return name
    try:
        number = int(name)
    except ValueError:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}") from None
    if number != node_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unexpected broker id, expected {node_id}, but received {name}")
    return str(number)


def _apply(present: Mapping[str, str], change: ConfigChange, keys: Mapping[str, Key[Any]]) -> dict[str, str]:
    """All settings after the change."""
    wanted = {} if change.replaces else dict(present)
    for name, operation, value in change.steps:
        if operation == AlterOperation.DELETE:
            wanted.pop(name, None)
        elif operation == AlterOperation.SET:
            wanted[name] = value or ""
        elif operation in (AlterOperation.APPEND, AlterOperation.SUBTRACT):
            parts = _parts(present.get(name), name, keys, operation)
            wanted[name] = ",".join(_with(parts, value or "", operation))
        else:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown operations type {operation}")
    return wanted


def _parts(value: str | None, name: str, keys: Mapping[str, Key[Any]], operation: int) -> list[str]:
    """The words of a list, which are those of its default while it is not set."""
    key = keys.get(name)
    if key is None or key.type is not ValueType.LIST:
        word = AlterOperation(operation).name
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Can't {word} to key {name} because its type is not LIST.")
    text = value if value is not None else format_value(key.default)
    return [part for part in (text or "").split(",") if part]


def _with(parts: list[str], value: str, operation: int) -> list[str]:
    words = value.split(",")
    if operation == AlterOperation.SUBTRACT:
        return [part for part in parts if part not in words]
    return [*parts, *dict.fromkeys(word for word in words if word not in parts)]


def _difference(present: Mapping[str, str], wanted: Mapping[str, str]) -> dict[str, str | None]:
    changes: dict[str, str | None] = {name: None for name in present if name not in wanted}
    changes.update({name: value for name, value in wanted.items() if present.get(name) != value})
    return changes
