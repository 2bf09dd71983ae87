"""AlterConfigs (33), versions 0-2: all settings of a resource at once; those that are not named go back to defaults.

The older sister of IncrementalAlterConfigs, with the same checks and the same effects.
"""

from __future__ import annotations

from penstock.base.errors import ErrorCode
from penstock.controller.configs import AlterOperation, ConfigChange, ConfigStep
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from penstock.security.authorizer import Operation, Requirement, ResourceType
from penstock.server.altering import alter_configs
from penstock.server.api import Api, Context, Request


async def handle(context: Context, request: Request, message: AlterConfigsRequest) -> AlterConfigsResponse:
    changes = [
        ConfigChange(
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
            steps=[ConfigStep(each.name, AlterOperation.SET, each.value) for each in resource.configs],
            replaces=True,
        )
        for resource in message.resources
    ]
    return AlterConfigsResponse(
        throttle_time_ms=request.throttle_ms,
        responses=await alter_configs(
            context, request, changes, AlterConfigsResourceResponse, validate_only=message.validate_only
        ),
    )


def _error_response(code: ErrorCode) -> AlterConfigsResponse:
    return AlterConfigsResponse(responses=[AlterConfigsResourceResponse(error_code=code)])


API = Api(
    key=ApiKey.ALTER_CONFIGS,
    versions=range(3),
    requirements=(Requirement(Operation.ALTER_CONFIGS, ResourceType.TOPIC),),
    handle=handle,
    error_response=_error_response,
)
