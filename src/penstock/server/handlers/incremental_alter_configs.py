"""IncrementalAlterConfigs (44), versions 0-1: set, delete, append to and subtract from settings (KIP-339).

Topics, brokers and their loggers have settings here; client metrics and groups are refused. The answer comes
when what was changed counts.
"""

from __future__ import annotations

from penstock.base.errors import ErrorCode
from penstock.controller.configs import ConfigChange, ConfigStep
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from penstock.security.authorizer import Operation, Requirement, ResourceType
from penstock.server.altering import alter_configs
from penstock.server.api import Api, Context, Request


async def handle(
    context: Context, request: Request, message: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    changes = [
        ConfigChange(
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
            steps=[ConfigStep(each.name, each.config_operation, each.value) for each in resource.configs],
        )
        for resource in message.resources
    ]
    return IncrementalAlterConfigsResponse(
        throttle_time_ms=request.throttle_ms,
        responses=await alter_configs(
            context, request, changes, AlterConfigsResourceResponse, validate_only=message.validate_only
        ),
    )


def _error_response(code: ErrorCode) -> IncrementalAlterConfigsResponse:
    return IncrementalAlterConfigsResponse(responses=[AlterConfigsResourceResponse(error_code=code)])


API = Api(
    key=ApiKey.INCREMENTAL_ALTER_CONFIGS,
    versions=range(2),
    requirements=(Requirement(Operation.ALTER_CONFIGS, ResourceType.TOPIC),),
    handle=handle,
    error_response=_error_response,
)
