"""What AlterConfigs and IncrementalAlterConfigs share: this broker's rules, and failures told by resource."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from penstock.base.config.dynamic import check_dynamic_settings
from penstock.base.config.topic import validate_topic_overrides
from penstock.base.errors import ErrorCode, KafkaError
from penstock.controller.configs import ConfigChange, ConfigChangeResult, ConfigRules
from penstock.metadata.image import CLUSTER_DEFAULT_CONFIG
from penstock.server.api import Context, Request

log = logging.getLogger(__name__)


async def alter_configs(
    context: Context, request: Request, changes: Sequence[ConfigChange], *, validate_only: bool
) -> list[ConfigChangeResult]:
    try:
        results = await context.controller.alter_configs(changes, config_rules(context), validate_only=validate_only)
    except KafkaError as error:
        # Clients look for their resources by name, also when the metadata cannot be written at all.
        return [
            ConfigChangeResult(
                resource_type=each.resource_type,
                resource_name=each.resource_name,
                error=error.code,
                message=error.message,
            )
            for each in changes
        ]
    refused = [f"{each.resource_name!r}: {each.message}" for each in results if each.error is not ErrorCode.NONE]
    if refused:
        log.info("settings refused: %s", "; ".join(refused), extra=request.log_fields())
    return results


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
