"""Configurations of topics, brokers, loggers, groups and client metrics.

What concerns one broker (its own configuration, its loggers) is asked of that broker; the rest of any.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from penstock.base.errors import KafkaError
from penstock.client.admin import checks
from penstock.client.admin.asking import Asker, map_bounded
from penstock.client.admin.config_values import AlterConfigOp, ConfigEntry, ConfigResource, ConfigSynonym
from penstock.client.admin.enums import AlterConfigKind, ConfigResourceType, ConfigSource, ConfigType, numbered
from penstock.client.admin.errors import InvalidInput, Outcome, failure
from penstock.client.errors import UnsupportedByBroker
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages import alter_configs as replacing
from penstock.protocol.messages import incremental_alter_configs as changing
from penstock.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResult,
)
from penstock.protocol.messages.list_config_resources import ListConfigResourcesRequest

Changes = Mapping[str, str | None] | Iterable[AlterConfigOp]
"""Steps, or values by key, where None deletes a key (its default holds again)."""


async def describe_configs(
    asker: Asker,
    resources: Iterable[ConfigResource],
    *,
    keys: Iterable[str] | None = None,
    include_synonyms: bool = False,
    include_documentation: bool = False,
    timeout_ms: float | None = None,
) -> dict[ConfigResource, dict[str, ConfigEntry]]:
    """The configurations of resources: all keys, or those that are named, with where each value comes from."""
    chosen = None if keys is None else checks.names(keys, "keys")

    def build(each: list[ConfigResource]) -> DescribeConfigsRequest:
        return DescribeConfigsRequest(
            resources=[
                DescribeConfigsResource(resource_type=one.type, resource_name=one.name, configuration_keys=chosen)
                for one in each
            ],
            include_synonyms=include_synonyms,
            include_documentation=include_documentation,
        )

    outcome: Outcome[ConfigResource, dict[str, ConfigEntry]] = Outcome()
    for each in await _ask(asker, ApiKey.DESCRIBE_CONFIGS, _resources(resources), build, timeout_ms, outcome):
        for result in each.results:
            _add(outcome, result, {entry.name: entry for entry in _entries(result)})
    return outcome.result()


async def incremental_alter_configs(
    asker: Asker,
    changes: Mapping[ConfigResource, Changes],
    *,
    validate_only: bool = False,
    timeout_ms: float | None = None,
) -> dict[ConfigResource, None]:
    """Change some keys of configurations and leave the others as they are."""
    wanted = {each: _steps(each, steps) for each, steps in checks.mapping(changes, "changes by resource").items()}

    def build(each: list[ConfigResource]) -> changing.IncrementalAlterConfigsRequest:
        return changing.IncrementalAlterConfigsRequest(
            resources=[
                changing.AlterConfigsResource(resource_type=one.type, resource_name=one.name, configs=wanted[one])
                for one in each
            ],
            validate_only=validate_only,
        )

    return await _alter(asker, ApiKey.INCREMENTAL_ALTER_CONFIGS, _resources(wanted), build, timeout_ms)


async def alter_configs(
    asker: Asker,
    configs: Mapping[ConfigResource, Mapping[str, str]],
    *,
    validate_only: bool = False,
    timeout_ms: float | None = None,
) -> dict[ConfigResource, None]:
    """Replace whole configurations: keys that are not named go back to their defaults.

    `incremental_alter_configs` is nearly always what is meant.
    """
    wanted = checks.mapping(configs, "configurations by resource")
    for each, values in wanted.items():
        if not isinstance(values, Mapping):
            raise InvalidInput(
                f"the configuration of {each} is a mapping of keys to values, not {checks.shown(values)}"
            )

    def build(each: list[ConfigResource]) -> replacing.AlterConfigsRequest:
        return replacing.AlterConfigsRequest(
            resources=[
                replacing.AlterConfigsResource(
                    resource_type=one.type,
                    resource_name=one.name,
                    configs=[replacing.AlterableConfig(name=key, value=value) for key, value in wanted[one].items()],
                )
                for one in each
            ],
            validate_only=validate_only,
        )

    return await _alter(asker, ApiKey.ALTER_CONFIGS, _resources(wanted), build, timeout_ms)


async def list_config_resources(
    asker: Asker, types: Iterable[ConfigResourceType] = (), *, timeout_ms: float | None = None
) -> tuple[ConfigResource, ...]:
    """What has a configuration of its own, of these types, or of all."""
    wanted = [checks.member(each, ConfigResourceType, "a type of resources") for each in types]
    # Version 0 knows no types: it lists client metrics only.
    at_least = 0 if wanted == [ConfigResourceType.CLIENT_METRICS] else 1
    request = ListConfigResourcesRequest(resource_types=[int(each) for each in wanted])
    answer = await asker.any(ApiKey.LIST_CONFIG_RESOURCES, request, timeout_ms=timeout_ms, at_least=at_least)
    if answer.error_code:
        raise failure("listing resources that have configurations", answer.error_code)
    return tuple(
        ConfigResource(numbered(ConfigResourceType, each.resource_type), each.resource_name)
        for each in answer.config_resources
    )


async def _alter(
    asker: Asker, api_key: ApiKey, resources: list[ConfigResource], build: Any, timeout_ms: float | None
) -> dict[ConfigResource, None]:
    outcome: Outcome[ConfigResource, None] = Outcome()
    for each in await _ask(asker, api_key, resources, build, timeout_ms, outcome):
        for result in each.responses:
            _add(outcome, result, None)
    return outcome.result()


async def _ask(
    asker: Asker,
    api_key: ApiKey,
    resources: list[ConfigResource],
    build: Any,
    timeout_ms: float | None,
    outcome: Outcome[ConfigResource, Any],
) -> list[Any]:
    """The answers of all brokers that must be asked. A broker that cannot be asked fails its own resources only."""
    groups: dict[int | None, list[ConfigResource]] = defaultdict(list)
    for each in resources:
        groups[_broker_of(each)].append(each)
    only = len(groups) == 1

    async def one(group: tuple[int | None, list[ConfigResource]]) -> Any:
        node_id, chosen = group
        try:
            if node_id is None:
                return await asker.any(api_key, build(chosen), timeout_ms=timeout_ms)
            return await asker.broker(node_id, api_key, build(chosen), timeout_ms=timeout_ms)
        except UnsupportedByBroker:
            raise
        except KafkaError as error:
            if only and len(resources) == 1:
                raise
            outcome.failed |= dict.fromkeys(chosen, error)
            return None

    answers = await map_bounded(one, groups.items())
    return [each for each in answers if each is not None]


def _broker_of(resource: ConfigResource) -> int | None:
    """Which broker must be asked; None for any."""
    if resource.type not in (ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER) or not resource.name:
        return None
    if not resource.name.isdecimal():
        raise InvalidInput(f"brokers are named by their ids, and {resource.name!r} is none")
    return int(resource.name)


def _resources(values: object) -> list[ConfigResource]:
    if isinstance(values, ConfigResource):
        values = [values]
    found = checks.items(list(values) if isinstance(values, dict) else values, "resources")
    for each in found:
        checks.instance(each, ConfigResource, "a resource")
        if not each.name and each.type is not ConfigResourceType.BROKER:
            raise InvalidInput(f"a {each.type.name.lower()} has a name that is empty")
    return found


def _steps(resource: object, steps: object) -> list[changing.AlterableConfig]:
    if isinstance(steps, Mapping):
        steps = [
            AlterConfigOp.delete(key) if value is None else AlterConfigOp(name=key, value=str(value))
            for key, value in steps.items()
        ]
    found = []
    for each in checks.items(steps, f"changes of {resource}"):
        step = checks.instance(each, AlterConfigOp, f"a change of {resource}")
        if step.value is None and step.op is not AlterConfigKind.DELETE:
            raise InvalidInput(f"{resource}: {step.name} is to be changed, but to no value: use AlterConfigOp.delete")
        value = None if step.op is AlterConfigKind.DELETE else str(step.value)
        found.append(
            changing.AlterableConfig(name=checks.name(step.name, "keys"), config_operation=step.op, value=value)
        )
    return found


def _add(outcome: Outcome[ConfigResource, Any], result: Any, value: Any) -> None:
    resource = ConfigResource(numbered(ConfigResourceType, result.resource_type), result.resource_name)
    outcome.add(resource, value, result.error_code, str(resource), result.error_message)


def _entries(result: DescribeConfigsResult) -> Iterator[ConfigEntry]:
    for each in result.configs:
        yield ConfigEntry(
            name=each.name,
            value=each.value,
            source=numbered(ConfigSource, each.config_source),
            is_read_only=each.read_only,
            is_sensitive=each.is_sensitive,
            type=numbered(ConfigType, each.config_type),
            documentation=each.documentation,
            synonyms=_synonyms(each),
        )


def _synonyms(entry: DescribeConfigsResourceResult) -> tuple[ConfigSynonym, ...]:
    return tuple(
        ConfigSynonym(name=each.name, value=each.value, source=numbered(ConfigSource, each.source))
        for each in entry.synonyms
    )
