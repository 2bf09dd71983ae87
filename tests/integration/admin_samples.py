"""Sample requests of the administration APIs, each about a topic of one partition on broker 1."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from penstock.base.errors import ErrorCode
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages import alter_configs as ac
from penstock.protocol.messages import alter_partition_reassignments as apr
from penstock.protocol.messages import alter_replica_log_dirs as arl
from penstock.protocol.messages import create_partitions as cp
from penstock.protocol.messages import delete_records as dr
from penstock.protocol.messages import describe_log_dirs as dld
from penstock.protocol.messages import elect_leaders as el
from penstock.protocol.messages import incremental_alter_configs as iac
from penstock.protocol.messages import list_config_resources as lcr
from penstock.protocol.messages import list_partition_reassignments as lpr
from penstock.protocol.messages import update_features as uf

SERVED: dict[ApiKey, range] = {
    ApiKey.DELETE_RECORDS: range(3),
    ApiKey.ALTER_CONFIGS: range(3),
    ApiKey.ALTER_REPLICA_LOG_DIRS: range(1, 3),
    ApiKey.DESCRIBE_LOG_DIRS: range(1, 6),
    ApiKey.CREATE_PARTITIONS: range(4),
    ApiKey.ELECT_LEADERS: range(3),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: range(2),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: range(2),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: range(1),
    ApiKey.UPDATE_FEATURES: range(3),
    ApiKey.LIST_CONFIG_RESOURCES: range(2),
}

EXPECTED: Mapping[ApiKey, ErrorCode] = {
    ApiKey.ELECT_LEADERS: ErrorCode.ELECTION_NOT_NEEDED,
    ApiKey.ALTER_REPLICA_LOG_DIRS: ErrorCode.LOG_DIR_NOT_FOUND,
}
"""The one error that the answer may carry."""


def _delete_records(topic: str, version: int) -> dr.DeleteRecordsRequest:
    wanted = dr.DeleteRecordsPartition(partition_index=0, offset=0)
    return dr.DeleteRecordsRequest(topics=[dr.DeleteRecordsTopic(name=topic, partitions=[wanted])], timeout_ms=5000)


def _alter_configs(topic: str, version: int) -> ac.AlterConfigsRequest:
    config = ac.AlterableConfig(name="retention.ms", value="3600000")
    return ac.AlterConfigsRequest(
        resources=[ac.AlterConfigsResource(resource_type=2, resource_name=topic, configs=[config])]
    )


def _describe_log_dirs(topic: str, version: int) -> dld.DescribeLogDirsRequest:
    return dld.DescribeLogDirsRequest(topics=[dld.DescribableLogDirTopic(topic=topic, partitions=[0])])


def _create_partitions(topic: str, version: int) -> cp.CreatePartitionsRequest:
    wanted = cp.CreatePartitionsTopic(name=topic, count=2, assignments=[cp.CreatePartitionsAssignment(broker_ids=[1])])
    return cp.CreatePartitionsRequest(topics=[wanted], timeout_ms=5000)


def _incremental_alter_configs(topic: str, version: int) -> iac.IncrementalAlterConfigsRequest:
    config = iac.AlterableConfig(name="retention.ms", config_operation=0, value="3600000")
    return iac.IncrementalAlterConfigsRequest(
        resources=[iac.AlterConfigsResource(resource_type=2, resource_name=topic, configs=[config])]
    )


def _alter_replica_log_dirs(topic: str, version: int) -> arl.AlterReplicaLogDirsRequest:
    wanted = arl.AlterReplicaLogDirTopic(name=topic, partitions=[0])
    return arl.AlterReplicaLogDirsRequest(dirs=[arl.AlterReplicaLogDir(path="/nowhere", topics=[wanted])])


def _elect_leaders(topic: str, version: int) -> el.ElectLeadersRequest:
    return el.ElectLeadersRequest(topic_partitions=[el.TopicPartitions(topic=topic, partitions=[0])], timeout_ms=5000)


def _alter_partition_reassignments(topic: str, version: int) -> apr.AlterPartitionReassignmentsRequest:
    partition = apr.ReassignablePartition(partition_index=0, replicas=[1])
    return apr.AlterPartitionReassignmentsRequest(topics=[apr.ReassignableTopic(name=topic, partitions=[partition])])


def _list_partition_reassignments(topic: str, version: int) -> lpr.ListPartitionReassignmentsRequest:
    wanted = lpr.ListPartitionReassignmentsTopics(name=topic, partition_indexes=[0])
    return lpr.ListPartitionReassignmentsRequest(topics=[wanted])


def _update_features(topic: str, version: int) -> uf.UpdateFeaturesRequest:
    update = uf.FeatureUpdateKey(feature="transaction.version", max_version_level=2)
    return uf.UpdateFeaturesRequest(feature_updates=[update])


def _list_config_resources(topic: str, version: int) -> lcr.ListConfigResourcesRequest:
    return lcr.ListConfigResourcesRequest(resource_types=[2] if version else [])


MAKERS: dict[ApiKey, Callable[[str, int], Any]] = {
    ApiKey.DELETE_RECORDS: _delete_records,
    ApiKey.ALTER_CONFIGS: _alter_configs,
    ApiKey.DESCRIBE_LOG_DIRS: _describe_log_dirs,
    ApiKey.CREATE_PARTITIONS: _create_partitions,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _incremental_alter_configs,
    ApiKey.ALTER_REPLICA_LOG_DIRS: _alter_replica_log_dirs,
    ApiKey.ELECT_LEADERS: _elect_leaders,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: _alter_partition_reassignments,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: _list_partition_reassignments,
    ApiKey.UPDATE_FEATURES: _update_features,
    ApiKey.LIST_CONFIG_RESOURCES: _list_config_resources,
}
