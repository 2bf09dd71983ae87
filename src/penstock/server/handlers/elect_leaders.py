"""ElectLeaders (43), versions 0-2: the preferred leader, or from version 1 on any leader (unclean).

No topics at all asks for every partition; then only those are answered that needed an election. Version 0 has no place
for an error of the whole request.
"""

from __future__ import annotations

from penstock.base.errors import ErrorCode
from penstock.controller.elections import ElectionResult, ElectionType
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
    TopicPartitions,
)
from penstock.security.authorizer import Operation, Requirement, ResourceType
from penstock.server.api import Api, Context, Request


async def handle(context: Context, request: Request, message: ElectLeadersRequest) -> ElectLeadersResponse:
    if message.election_type not in list(ElectionType):
        return _refused(request, message.topic_partitions or [])
    kind = ElectionType(message.election_type)
    wanted = None if message.topic_partitions is None else _wanted(message.topic_partitions)
    topics = context.image.topics if wanted is None else wanted
    results = await context.controller.elect_leaders(kind, wanted)
    by_topic: dict[str, list[ElectionResult]] = {topic: [] for topic in topics}
    for result in results:
        by_topic.setdefault(result.election.topic, []).append(result)
    return ElectLeadersResponse(
        throttle_time_ms=request.throttle_ms,
        replica_election_results=[
            ReplicaElectionResult(topic=topic, partition_result=[_partition(each) for each in elected])
            for topic, elected in by_topic.items()
        ],
    )


def _refused(request: Request, topics: list[TopicPartitions]) -> ElectLeadersResponse:
    """The election type is not known: said for every partition, as Kafka does."""
    results = [
        ReplicaElectionResult(
            topic=each.topic,
            partition_result=[
                PartitionResult(partition_id=index, error_code=ErrorCode.INVALID_REQUEST) for index in each.partitions
            ],
        )
        for each in topics
    ]
    return ElectLeadersResponse(
        throttle_time_ms=request.throttle_ms,
        error_code=ErrorCode.INVALID_REQUEST,
        replica_election_results=results,
    )


def _wanted(topics: list[TopicPartitions]) -> dict[str, list[int]]:
    wanted: dict[str, list[int]] = {}
    for each in topics:
        wanted.setdefault(each.topic, []).extend(each.partitions)
    return wanted


def _partition(result: ElectionResult) -> PartitionResult:
    return PartitionResult(
        partition_id=result.election.partition, error_code=result.error, error_message=result.message
    )


def _error_response(code: ErrorCode) -> ElectLeadersResponse:
    return ElectLeadersResponse(error_code=code)


API = Api(
    key=ApiKey.ELECT_LEADERS,
    versions=range(3),
    requirements=(Requirement(Operation.ALTER, ResourceType.CLUSTER),),
    handle=handle,
    error_response=_error_response,
)
