"""DescribeCluster (60), versions 0-2: brokers as the asking listener reaches them, controller and cluster id.

Endpoint type 2 asks for the controllers of a KRaft quorum, which this listener does not serve. No broker is ever
fenced here, so version 2's wish to see fenced ones changes nothing.
"""

from __future__ import annotations

from penstock.base.errors import ErrorCode
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from penstock.security.authorizer import OPERATIONS_NOT_ASKED, Operation, Requirement, ResourceType
from penstock.server.api import Api, Context, Request
from penstock.server.topic_view import endpoints_of

_BROKERS, _CONTROLLERS = 1, 2


def handle(context: Context, request: Request, message: DescribeClusterRequest) -> DescribeClusterResponse:
    if message.endpoint_type != _BROKERS:
        mismatched = message.endpoint_type == _CONTROLLERS
        return DescribeClusterResponse(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE if mismatched else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            error_message=f"There are no endpoints of type {message.endpoint_type} here; ask for brokers (type 1).",
        )
    image = context.image
    operations = OPERATIONS_NOT_ASKED
    if message.include_cluster_authorized_operations:
        operations = context.authorizer.authorized_operations(
            request.session.principal, ResourceType.CLUSTER, "kafka-cluster"
        )
    return DescribeClusterResponse(
        throttle_time_ms=request.throttle_ms,
        cluster_id=image.cluster_id or "",
        controller_id=image.controller_id,
        brokers=[
            DescribeClusterBroker(broker_id=broker_id, host=host, port=port, rack=rack)
            for broker_id, host, port, rack in endpoints_of(image, request.session.listener_name)
        ],
        cluster_authorized_operations=operations,
    )


API = Api(
    key=ApiKey.DESCRIBE_CLUSTER,
    versions=range(3),
    requirements=(Requirement(Operation.DESCRIBE, ResourceType.CLUSTER),),
    handle=handle,
)
