"""Levels of the broker's loggers, changed while it runs."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.base.errors import ErrorCode
from penstock.controller.configs import AlterOperation, ConfigResourceType
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from penstock.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.integration.conftest import Connect, StartBroker
from tests.integration.driving import create_topic
from tests.support.raw_client import RawClient

LOGGER = "penstock.server.altering"
BROKER = "1"


def levels(client: RawClient, name: str = BROKER, keys: list[str] | None = None) -> Any:
    resource = DescribeConfigsResource(
        resource_type=ConfigResourceType.BROKER_LOGGER, resource_name=name, configuration_keys=keys
    )
    (result,) = client.call(ApiKey.DESCRIBE_CONFIGS, 4, DescribeConfigsRequest(resources=[resource])).results
    return result


def alter(
    client: RawClient, logger: str, value: str | None, operation: int = AlterOperation.SET, name: str = BROKER
) -> Any:
    change = AlterableConfig(name=logger, config_operation=operation, value=value)
    resource = AlterConfigsResource(
        resource_type=ConfigResourceType.BROKER_LOGGER, resource_name=name, configs=[change]
    )
    request = IncrementalAlterConfigsRequest(resources=[resource])
    (result,) = client.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request).responses
    return result


def test_a_level_counts_at_once_and_goes_back(start_broker: StartBroker, connect: Connect) -> None:
    broker = start_broker()
    with connect(broker.port) as client:
        shown = {each.name: each for each in levels(client).configs}
        assert (shown["root"].value, shown[LOGGER].value) == ("INFO", "INFO")
        assert (shown["root"].config_source, shown["root"].read_only) == (6, False)
        assert alter(client, "root", "ERROR").error_code == ErrorCode.NONE
        (one,) = levels(client, keys=[LOGGER]).configs
        assert one.value == "ERROR"
        before = broker.output()
        create_topic(client, "unheard")
        assert alter(client, "root", "INFO").error_code == ErrorCode.NONE
        create_topic(client, "heard")
        after = broker.output()[len(before) :]
        assert "unheard" not in after
        assert "heard" in after
        alter(client, LOGGER, "TRACE")
        assert levels(client, keys=[LOGGER]).configs[0].value == "TRACE"
        assert alter(client, LOGGER, None, AlterOperation.DELETE).error_code == ErrorCode.NONE
        assert levels(client, keys=[LOGGER]).configs[0].value == "INFO"


@pytest.mark.parametrize(
    ("logger", "value", "operation", "code", "words"),
    [
        ("no.such.logger", "INFO", AlterOperation.SET, ErrorCode.INVALID_CONFIG, "does not exist"),
        ("root", "LOUD", AlterOperation.SET, ErrorCode.INVALID_CONFIG, "Valid log levels are TRACE, DEBUG"),
        ("root", None, AlterOperation.DELETE, ErrorCode.INVALID_REQUEST, "root logger is not allowed"),
        ("root", "INFO", AlterOperation.APPEND, ErrorCode.INVALID_REQUEST, "APPEND operation is not allowed"),
    ],
)
def test_what_cannot_be_is_refused(
    client: RawClient, logger: str, value: str | None, operation: int, code: ErrorCode, words: str
) -> None:
    refused = alter(client, logger, value, operation)
    assert refused.error_code == code
    assert words in refused.error_message


def test_loggers_of_another_broker_are_not_here(client: RawClient) -> None:
    assert levels(client, "7").error_code == ErrorCode.INVALID_REQUEST
    assert alter(client, "root", "INFO", name="7").error_code == ErrorCode.INVALID_REQUEST
