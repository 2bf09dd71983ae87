"""AlterReplicaLogDirs (34), versions 1-2: which log directory a replica shall live in (KIP-113).

Replicas do not move between directories yet: the directory where a replica is already is agreed to, another one of this
broker's is refused with INVALID_REQUEST.
"""

from __future__ import annotations

import posixpath

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.types import ZERO_UUID, TopicPartition
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from penstock.security.authorizer import Operation, Requirement, ResourceType
from penstock.server.api import Api, Context, Request
from penstock.storage.directories.names import NAME_LENGTH_MAX, DirectoryKind, suffixed_name


def handle(context: Context, request: Request, message: AlterReplicaLogDirsRequest) -> AlterReplicaLogDirsResponse:
    wanted = {
        TopicPartition(topic.name, index): directory.path
        for directory in message.dirs
        for topic in directory.topics
        for index in topic.partitions
    }
    answers: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    for place, path in wanted.items():
        result = AlterReplicaLogDirPartitionResult(
            partition_index=place.partition, error_code=_move(context, place, path)
        )
        answers.setdefault(place.topic, []).append(result)
    return AlterReplicaLogDirsResponse(
        throttle_time_ms=request.throttle_ms,
        results=[AlterReplicaLogDirTopicResult(topic_name=name, partitions=parts) for name, parts in answers.items()],
    )


def _move(context: Context, place: TopicPartition, path: str) -> ErrorCode:
    if len(suffixed_name(place, DirectoryKind.FUTURE, ZERO_UUID)) > NAME_LENGTH_MAX:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    if path in map(posixpath.abspath, context.logs.offline_directories):
        return ErrorCode.KAFKA_STORAGE_ERROR
    if path not in [posixpath.abspath(directory.path) for directory in context.logs.live_directories]:
        return ErrorCode.LOG_DIR_NOT_FOUND
    try:
        if context.logs.get(place) is None:
            return _missing(context, place)
    except KafkaError as error:
        return error.code
    here = posixpath.abspath(context.logs.directory_of(place).path)
    return ErrorCode.NONE if here == path else ErrorCode.INVALID_REQUEST


def _missing(context: Context, place: TopicPartition) -> ErrorCode:
    topic = context.image.topics.get(place.topic)
    known = topic is not None and 0 <= place.partition < len(topic.partitions)
    return ErrorCode.REPLICA_NOT_AVAILABLE if known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _error_response(code: ErrorCode) -> AlterReplicaLogDirsResponse:
    return AlterReplicaLogDirsResponse(
        results=[AlterReplicaLogDirTopicResult(partitions=[AlterReplicaLogDirPartitionResult(error_code=code)])]
    )


API = Api(
    key=ApiKey.ALTER_REPLICA_LOG_DIRS,
    versions=range(1, 3),
    requirements=(Requirement(Operation.ALTER, ResourceType.CLUSTER),),
    handle=handle,
    error_response=_error_response,
)
