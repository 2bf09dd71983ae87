"""ListConfigResources (74), versions 0-1: the names of what has settings (KIP-1142).

Version 0 can only ask for client metrics, of which there are none here. Version 1 asks for kinds, an empty list for all
of them: topics, brokers and their loggers, and groups and client metrics, neither of which have settings here.
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.base.errors import ErrorCode, KafkaError
from penstock.controller.configs import ConfigResourceType
from penstock.metadata.image import ClusterImage
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from penstock.security.authorizer import Operation, Requirement, ResourceType
from penstock.server.api import Api, Context, Request

_KINDS = (
    ConfigResourceType.TOPIC,
    ConfigResourceType.BROKER,
    ConfigResourceType.BROKER_LOGGER,
    ConfigResourceType.CLIENT_METRICS,
    ConfigResourceType.GROUP,
)


def handle(context: Context, request: Request, message: ListConfigResourcesRequest) -> ListConfigResourcesResponse:
    kinds: Iterable[int] = (ConfigResourceType.CLIENT_METRICS,)
    if request.api_version >= 1:
        kinds = dict.fromkeys(message.resource_types) or _KINDS
    if any(kind not in _KINDS for kind in kinds):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "There is a kind of resource among these that is not known.")
    return ListConfigResourcesResponse(
        throttle_time_ms=request.throttle_ms,
        config_resources=[
            ConfigResource(resource_name=name, resource_type=kind)
            for kind in kinds
            for name in _names(context.image, kind)
        ],
    )


def _names(image: ClusterImage, kind: int) -> Iterable[str]:
    if kind == ConfigResourceType.TOPIC:
        return image.topics
    if kind in (ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER):
        return map(str, image.brokers)
    return ()


API = Api(
    key=ApiKey.LIST_CONFIG_RESOURCES,
    versions=range(2),
    requirements=(Requirement(Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER),),
    handle=handle,
)
