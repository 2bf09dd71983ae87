"""DescribeLogDirs (35), versions 1-5: the log directories of this broker, their logs with sizes, and their room.

No topics at all asks for every partition. Sizes of the file system come from version 4 on (KIP-827); version 5 also
says whether a directory takes new partitions. Partitions that are not here are left out.
"""

from __future__ import annotations

from penstock.base.errors import ErrorCode
from penstock.base.types import TopicPartition
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from penstock.security.authorizer import Operation, Requirement, ResourceType
from penstock.server.api import Api, Context, Request
from penstock.storage.log import Log
from penstock.storage.manager.describing import DirectoryDescription


async def handle(context: Context, request: Request, message: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    wanted = None
    if message.topics is not None:
        wanted = {TopicPartition(each.topic, index) for each in message.topics for index in each.partitions}
    return DescribeLogDirsResponse(
        throttle_time_ms=request.throttle_ms,
        results=[_result(described, wanted) for described in await context.logs.describe_directories()],
    )


def _result(described: DirectoryDescription, wanted: set[TopicPartition] | None) -> DescribeLogDirsResult:
    if described.offline:
        return DescribeLogDirsResult(log_dir=described.path, error_code=ErrorCode.KAFKA_STORAGE_ERROR)
    topics: dict[str, list[DescribeLogDirsPartition]] = {}
    for each in sorted(described.logs, key=lambda log: log.topic_partition):
        if wanted is None or each.topic_partition in wanted:
            topics.setdefault(each.topic_partition.topic, []).append(_partition(each))
    return DescribeLogDirsResult(
        log_dir=described.path,
        topics=[DescribeLogDirsTopic(name=name, partitions=partitions) for name, partitions in topics.items()],
        total_bytes=described.total_bytes,
        usable_bytes=described.usable_bytes,
    )


def _partition(log: Log) -> DescribeLogDirsPartition:
    return DescribeLogDirsPartition(
        partition_index=log.topic_partition.partition,
        partition_size=log.size_bytes,
        offset_lag=max(0, log.high_watermark - log.log_end_offset),
    )


API = Api(
    key=ApiKey.DESCRIBE_LOG_DIRS,
    versions=range(1, 6),
    requirements=(Requirement(Operation.DESCRIBE, ResourceType.CLUSTER),),
    handle=handle,
)
