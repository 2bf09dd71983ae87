"""What the leaders of partitions are asked: each for those that it leads.

The leaders of partitions that have moved are looked up again; every other answer is the caller's. A partition or topic
that nobody knows may have been made a moment ago, so it is looked for again, but only for `UNKNOWN_GRACE_MS`: a name
that is wrong should not cost a minute.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.types import TopicPartition
from penstock.client.admin.asking import Asker, map_bounded
from penstock.client.admin.errors import Outcome, failure
from penstock.client.core.types import ClusterSnapshot
from penstock.client.core.waiting import Retry
from penstock.client.errors import KafkaTimeout, is_retriable
from penstock.network.versions import VERSION_MAX
from penstock.protocol.apis import APIS, ApiKey
from penstock.protocol.messages.metadata import MetadataResponseTopic

V = TypeVar("V")

UNKNOWN_GRACE_MS: Final = 1500.0

_MOVED: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.OFFSET_NOT_AVAILABLE,
    }
)
_UNKNOWN: Final = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})

Read = Callable[[Any], Iterable[tuple[TopicPartition, int, str | None, V]]]
"""Lines of an answer: partition, error code, error message, value."""


async def ask_leaders(
    asker: Asker,
    api_key: ApiKey,
    partitions: Iterable[TopicPartition],
    build: Callable[[list[TopicPartition]], object],
    read: Read[V],
    *,
    timeout_ms: float | None = None,
    at_least: int = 0,
    at_most: int = VERSION_MAX,
) -> Outcome[TopicPartition, V]:
    """Ask the leaders of partitions, each for those it leads. What is not done in time has failed by that."""
    outcome: Outcome[TopicPartition, V] = Outcome()
    pending = list(partitions)
    try:
        async for attempt in asker.core.retry(timeout_ms=timeout_ms, what=APIS[api_key].name):
            by_leader, retried = await _by_leader(asker, pending, attempt)

            async def ask(led: tuple[int, list[TopicPartition]], attempt: Retry = attempt) -> Any:
                return await _ask_leader(asker, led[0], api_key, build(led[1]), attempt, at_least, at_most)

            answers = await map_bounded(ask, by_leader.items())
            for led, answer in zip(by_leader.values(), answers, strict=True):
                if isinstance(answer, KafkaError):
                    retried |= dict.fromkeys(led, answer)
                else:
                    retried |= _take(answer, led, read, outcome)
            pending = _settle(asker, retried, attempt, outcome, timeout_ms)
            if not pending:
                break
    except KafkaTimeout as late:
        if not outcome.done:
            raise
        outcome.failed |= dict.fromkeys(pending, late)
    return outcome


async def _ask_leader(asker: Asker, node: int, api_key: ApiKey, message: object, attempt: Retry, *range_: int) -> Any:
    """The answer, or the failure if another try may cure it."""
    try:
        return await asker.send(node, api_key, message, attempt, *range_)
    except KafkaError as error:
        if not is_retriable(error):
            raise
        return error


async def _by_leader(
    asker: Asker, partitions: list[TopicPartition], attempt: Retry
) -> tuple[dict[int, list[TopicPartition]], dict[TopicPartition, KafkaError]]:
    topics = sorted({each.topic for each in partitions})
    answer = await asker.metadata(topics, timeout_ms=attempt.remaining_ms)
    found = {each.name: each for each in answer.topics}
    by_leader: dict[int, list[TopicPartition]] = defaultdict(list)
    without: dict[TopicPartition, KafkaError] = {}
    for tp in partitions:
        leader, code = leader_of(found.get(tp.topic), tp.partition)
        if code:
            without[tp] = failure(f"partition {tp}", code)
        else:
            by_leader[leader].append(tp)
    await _know(asker, by_leader, attempt)
    return by_leader, without


async def _know(asker: Asker, node_ids: Iterable[int], attempt: Retry) -> ClusterSnapshot:
    """Connections are made by the core's own metadata, which may be older than this answer."""
    snapshot = asker.core.metadata.snapshot
    if all(each in snapshot.nodes for each in node_ids):
        return snapshot
    return await asker.core.metadata.update(attempt.remaining_ms)


def _settle(
    asker: Asker,
    retried: dict[TopicPartition, KafkaError],
    attempt: Retry,
    outcome: Outcome[TopicPartition, Any],
    timeout_ms: float | None,
) -> list[TopicPartition]:
    """Which partitions to ask for again; those that were unknown for too long have failed."""
    elapsed_ms = asker.limit_ms(timeout_ms) - attempt.remaining_ms
    pending = []
    for tp, error in retried.items():
        if error.code in _UNKNOWN and elapsed_ms >= UNKNOWN_GRACE_MS:
            outcome.failed[tp] = error
        elif is_retriable(error):
            attempt.failed(error)
            pending.append(tp)
        else:
            outcome.failed[tp] = error
    return pending


def leader_of(topic: MetadataResponseTopic | None, partition: int) -> tuple[int, int]:
    """(node id, error code) of a partition in an answer; the node is -1 where there is none."""
    if topic is None:
        return -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if topic.error_code:
        return -1, topic.error_code
    for each in topic.partitions:
        if each.partition_index == partition:
            return each.leader_id, ErrorCode.NONE if each.leader_id >= 0 else ErrorCode.LEADER_NOT_AVAILABLE
    return -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _take(
    answer: Any, led: list[TopicPartition], read: Read[V], outcome: Outcome[TopicPartition, V]
) -> dict[TopicPartition, KafkaError]:
    """Note an answer's lines; what to ask again is given back."""
    again: dict[TopicPartition, KafkaError] = {}
    for tp, code, message, value in read(answer):
        if code in _MOVED or code in _UNKNOWN:
            again[tp] = failure(f"partition {tp}", code, message)
        else:
            outcome.add(tp, value, code, f"partition {tp}", message)
    outcome.missing({tp: f"partition {tp}" for tp in led if tp not in again})
    return again
