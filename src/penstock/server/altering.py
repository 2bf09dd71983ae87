"""What AlterConfigs and IncrementalAlterConfigs share: this broker's rules, and failures told by resource."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from penstock.base.config.dynamic import check_dynamic_settings
from penstock.base.config.topic import validate_topic_overrides
from penstock.base.errors import ErrorCode, KafkaError
from penstock.controller.configs import ConfigChange, ConfigChangeResult, ConfigResourceType, ConfigRules
from penstock.metadata.image import CLUSTER_DEFAULT_CONFIG
from penstock.server.api import Context, Request
from penstock.server.loggers import alter_loggers

R = TypeVar("R")

log = logging.getLogger(__name__)


async def alter_configs(
    context: Context,
    request: Request,
    changes: Sequence[ConfigChange],
    response: Callable[..., R],
    *,
    validate_only: bool,
) -> list[R]:
    """Change what is asked for; `response` makes the message of each resource, in their order."""
    kept = [each for each in changes if not _is_logger(each)]
    results = iter(await _alter_metadata(context, kept, validate_only=validate_only))
    done = [
        _alter_loggers(context, each, validate_only=validate_only) if _is_logger(each) else next(results)
        for each in changes
    ]
    refused = [f"{each.resource_name!r}: {each.message}" for each in done if each.error is not ErrorCode.NONE]
    if refused:
        log.info("settings refused: %s", "; ".join(refused), extra=request.log_fields())
    return [
        response(
            error_code=each.error,
            error_message=each.message,
            resource_type=each.resource_type,
            resource_name=each.resource_name,
        )
        for each in done
    ]


def _is_logger(change: ConfigChange) -> bool:
    """Levels of loggers are this process's own and no metadata. The older API cannot change them, in Kafka too."""
    return change.resource_type == ConfigResourceType.BROKER_LOGGER and not change.replaces


async def _alter_metadata(
    context: Context, changes: Sequence[ConfigChange], *, validate_only: bool
) -> list[ConfigChangeResult]:
    try:
        return await context.controller.alter_configs(changes, config_rules(context), validate_only=validate_only)
    except KafkaError as error:
        # Clients look for their resources by name, also when the metadata cannot be written at all.
        return [_failed(each, error) for each in changes]


def _alter_loggers(context: Context, change: ConfigChange, *, validate_only: bool) -> ConfigChangeResult:
    try:
        check_broker_name(context, change.resource_name)
        alter_loggers(list(change.steps), validate_only=validate_only)
    except KafkaError as error:
        return _failed(change, error)
    return ConfigChangeResult(resource_type=change.resource_type, resource_name=change.resource_name)


def _failed(change: ConfigChange, error: KafkaError) -> ConfigChangeResult:
    return ConfigChangeResult(
        resource_type=change.resource_type,
        resource_name=change.resource_name,
        error=error.code,
        message=error.message,
    )


def check_broker_name(context: Context, name: str, *, or_empty: bool = False) -> None:
    """The resource must be this broker; an empty name, where it is allowed, stands for all brokers."""
    if name == str(context.node_id) or (or_empty and not name):
        return
    expected = f"{context.node_id} or empty string" if or_empty else str(context.node_id)
    raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unexpected broker id, expected {expected}, but received {name}")


def config_rules(context: Context) -> ConfigRules:
    def validate_broker(name: str, settings: Mapping[str, str]) -> None:
        per_broker = name != CLUSTER_DEFAULT_CONFIG
        layers = context.image.broker_configs
        check_dynamic_settings(
            context.config,
            broker=settings if per_broker else layers.get(str(context.node_id), {}),
            default=layers.get(CLUSTER_DEFAULT_CONFIG, {}) if per_broker else settings,
            per_broker=per_broker,
        )

    return ConfigRules(
        node_id=context.node_id,
        validate_topic=lambda overrides: validate_topic_overrides(overrides, context.config),
        validate_broker=validate_broker,
    )
