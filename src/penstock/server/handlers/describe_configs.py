"""DescribeConfigs (32), versions 1-4: every setting of a topic or of this broker, where it comes from, what overrides
it.

Brokers are named by their id; an empty name asks for the dynamic defaults of the whole cluster. A broker's loggers have
their levels (KIP-412). Groups and client metrics may be asked about, as in Kafka, and have no settings here.
Documentation comes from version 3 on.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.base.config.describe import ConfigRow, describe_broker, describe_cluster_default, describe_topic
from penstock.base.errors import ErrorCode, KafkaError
from penstock.controller.configs import ConfigResourceType
from penstock.controller.names import invalid_name_reason
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from penstock.security.authorizer import Operation, Requirement, ResourceType
from penstock.server.altering import check_broker_name
from penstock.server.api import Api, Context, Request
from penstock.server.loggers import describe_loggers

_WITHOUT_SETTINGS = (ConfigResourceType.GROUP, ConfigResourceType.CLIENT_METRICS)


def handle(context: Context, request: Request, message: DescribeConfigsRequest) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(
        throttle_time_ms=request.throttle_ms,
        results=[_describe(context, resource, message) for resource in message.resources],
    )


def _describe(
    context: Context, resource: DescribeConfigsResource, message: DescribeConfigsRequest
) -> DescribeConfigsResult:
    result = DescribeConfigsResult(resource_type=resource.resource_type, resource_name=resource.resource_name)
    try:
        rows = _rows(context, resource, message)
    except KafkaError as error:
        result.error_code, result.error_message = error.code, error.message
        return result
    result.configs = [_config(row) for row in rows]
    return result


def _rows(context: Context, resource: DescribeConfigsResource, message: DescribeConfigsRequest) -> Sequence[ConfigRow]:
    name = resource.resource_name
    # An empty list asks for nothing in Kafka's schema, but clients mean everything by it, and Kafka takes it so.
    names = resource.configuration_keys or None
    if resource.resource_type == ConfigResourceType.TOPIC:
        if (reason := invalid_name_reason(name)) is not None:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)
        if name not in context.image.topics:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Topic '{name}' does not exist.")
        return describe_topic(
            context.topic_config(name),
            names=names,
            include_synonyms=message.include_synonyms,
            include_docs=message.include_documentation,
        )
    if resource.resource_type == ConfigResourceType.BROKER:
        check_broker_name(context, name, or_empty=True)
        describe = describe_broker if name else describe_cluster_default
        return describe(
            context.config,
            names=names,
            include_synonyms=message.include_synonyms,
            include_docs=message.include_documentation,
        )
    if resource.resource_type == ConfigResourceType.BROKER_LOGGER:
        check_broker_name(context, name)
        return describe_loggers(names)
    if resource.resource_type in _WITHOUT_SETTINGS:
        return ()
    raise KafkaError(
        ErrorCode.INVALID_REQUEST,
        f"There is no resource type {resource.resource_type}: topics (2), brokers (4) and their loggers (8) have "
        "settings.",
    )


def _config(row: ConfigRow) -> DescribeConfigsResourceResult:
    return DescribeConfigsResourceResult(
        name=row.name,
        value=row.value,
        read_only=row.read_only,
        config_source=row.source,
        is_sensitive=row.is_sensitive,
        synonyms=[
            DescribeConfigsSynonym(name=name, value=value, source=source) for name, value, source in row.synonyms
        ],
        config_type=row.type,
        documentation=row.documentation,
    )


def _error_response(code: ErrorCode) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(results=[DescribeConfigsResult(error_code=code)])


API = Api(
    key=ApiKey.DESCRIBE_CONFIGS,
    versions=range(1, 5),
    requirements=(Requirement(Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC),),
    handle=handle,
    error_response=_error_response,
)
