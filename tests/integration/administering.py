"""Administration in few words, for the integration tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.protocol.apis import ApiKey
from penstock.protocol.messages import create_partitions as cp
from penstock.protocol.messages import delete_records as dr
from penstock.protocol.messages import describe_configs as dc
from penstock.protocol.messages import describe_log_dirs as dld
from penstock.protocol.messages import incremental_alter_configs as iac
from tests.support.raw_client import RawClient

SET, DELETE = 0, 1
TOPIC, BROKER = 2, 4


def add_partitions(client: RawClient, topic: str, count: int) -> int:
    wanted = cp.CreatePartitionsTopic(name=topic, count=count, assignments=None)
    answer = client.call(ApiKey.CREATE_PARTITIONS, 3, cp.CreatePartitionsRequest(topics=[wanted], timeout_ms=5000))
    code: int = answer.results[0].error_code
    return code


def alter(client: RawClient, kind: int, name: str, settings: Mapping[str, str | None]) -> int:
    """Set, or delete where the value is None; the error code."""
    rows = [
        iac.AlterableConfig(name=key, config_operation=DELETE if value is None else SET, value=value)
        for key, value in settings.items()
    ]
    resource = iac.AlterConfigsResource(resource_type=kind, resource_name=name, configs=rows)
    request = iac.IncrementalAlterConfigsRequest(resources=[resource])
    code: int = client.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request).responses[0].error_code
    return code


def setting(client: RawClient, kind: int, name: str, key: str) -> tuple[str | None, int]:
    """Value and source."""
    resource = dc.DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=[key])
    (result,) = client.call(ApiKey.DESCRIBE_CONFIGS, 4, dc.DescribeConfigsRequest(resources=[resource])).results
    (row,) = result.configs
    return row.value, row.config_source


def delete_records(client: RawClient, topic: str, offset: int, *, partition: int = 0) -> Any:
    wanted = dr.DeleteRecordsPartition(partition_index=partition, offset=offset)
    request = dr.DeleteRecordsRequest(topics=[dr.DeleteRecordsTopic(name=topic, partitions=[wanted])], timeout_ms=5000)
    return client.call(ApiKey.DELETE_RECORDS, 2, request).topics[0].partitions[0]


def log_directories(client: RawClient) -> list[Any]:
    results: list[Any] = client.call(ApiKey.DESCRIBE_LOG_DIRS, 5, dld.DescribeLogDirsRequest(topics=None)).results
    return results
