"""Log directories: how full they are, where replicas lie, and moving replicas from one to another."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from penstock.base.errors import KafkaError
from penstock.base.types import TopicPartition
from penstock.client.admin import checks
from penstock.client.admin.asking import Asker, by_topic, map_bounded
from penstock.client.admin.errors import InvalidInput, Outcome
from penstock.client.errors import ClientError, UnsupportedByBroker, error_for
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from penstock.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResult,
)


class TopicPartitionReplica(NamedTuple):
    """One replica of a partition: the one on this broker."""

    topic: str
    partition: int
    broker: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition} on broker {self.broker}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaInfo:
    """A replica in a log directory."""

    size: int
    """Bytes of all segments."""
    offset_lag: int
    """How far it is behind the high watermark, or a future replica behind the present one."""
    is_future: bool
    """Being filled, to replace the replica in another directory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirDescription:
    """A log directory of a broker, and the replicas in it."""

    path: str
    error: ClientError | None
    """Why the directory is of no use (offline), if it is not."""
    replicas: Mapping[TopicPartition, ReplicaInfo]
    total_bytes: int | None
    """Of the volume; None where the broker does not tell."""
    usable_bytes: int | None
    is_cordoned: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaLogDir:
    """Where a replica lies, and where it is going. The paths are None if the broker has no such replica."""

    current: str | None
    current_lag: int
    future: str | None = None
    future_lag: int = -1


async def describe_log_dirs(
    asker: Asker,
    brokers: Iterable[int] | None = None,
    *,
    partitions: Iterable[TopicPartition] | None = None,
    timeout_ms: float | None = None,
) -> dict[int, dict[str, LogDirDescription]]:
    """The log directories of brokers (of all, if none is named), with the replicas in them, by broker and path."""
    topics = None
    if partitions is not None:
        wanted = by_topic(checks.partitions(partitions))
        topics = [DescribableLogDirTopic(topic=name, partitions=numbers) for name, numbers in wanted.items()]
    chosen = None if brokers is None else checks.numbers(brokers, "brokers")
    if chosen is None:
        chosen = sorted(await asker.nodes(timeout_ms=timeout_ms))
    outcome: Outcome[int, dict[str, LogDirDescription]] = Outcome()

    async def one(node_id: int) -> None:
        try:
            answer = await asker.broker(
                node_id,
                ApiKey.DESCRIBE_LOG_DIRS,
                DescribeLogDirsRequest(topics=topics),
                timeout_ms=timeout_ms,
                check=lambda it: int(it.error_code),
            )
            outcome.done[node_id] = {each.log_dir: _described(each) for each in answer.results}
        except UnsupportedByBroker:
            raise
        except KafkaError as error:
            outcome.failed[node_id] = error

    await map_bounded(one, chosen)
    return dict(sorted(outcome.result().items()))


def _described(result: DescribeLogDirsResult) -> LogDirDescription:
    replicas = {
        TopicPartition(topic.name, each.partition_index): ReplicaInfo(
            size=each.partition_size, offset_lag=each.offset_lag, is_future=each.is_future_key
        )
        for topic in result.topics
        for each in topic.partitions
    }
    return LogDirDescription(
        path=result.log_dir,
        error=error_for(result.error_code) if result.error_code else None,
        replicas=replicas,
        total_bytes=result.total_bytes if result.total_bytes >= 0 else None,
        usable_bytes=result.usable_bytes if result.usable_bytes >= 0 else None,
        is_cordoned=result.is_cordoned,
    )


async def describe_replica_log_dirs(
    asker: Asker, replicas: Iterable[TopicPartitionReplica], *, timeout_ms: float | None = None
) -> dict[TopicPartitionReplica, ReplicaLogDir]:
    """Where replicas lie, and where those that are being moved will."""
    wanted = [_replica(each) for each in checks.items(replicas, "replicas")]
    partitions = {TopicPartition(each.topic, each.partition) for each in wanted}
    brokers = sorted({each.broker for each in wanted})
    described = await describe_log_dirs(asker, brokers, partitions=partitions, timeout_ms=timeout_ms)
    return {each: _placed(each, described[each.broker]) for each in wanted}


def _placed(replica: TopicPartitionReplica, directories: Mapping[str, LogDirDescription]) -> ReplicaLogDir:
    tp = TopicPartition(replica.topic, replica.partition)
    found = {
        each.replicas[tp].is_future: (path, each.replicas[tp].offset_lag)
        for path, each in directories.items()
        if tp in each.replicas
    }
    current, current_lag = found.get(False, (None, -1))
    future, future_lag = found.get(True, (None, -1))
    return ReplicaLogDir(current=current, current_lag=current_lag, future=future, future_lag=future_lag)


async def alter_replica_log_dirs(
    asker: Asker, paths: Mapping[TopicPartitionReplica, str], *, timeout_ms: float | None = None
) -> dict[TopicPartitionReplica, None]:
    """Move replicas to other directories of their brokers. This begins the move; describe them to see how far it is."""
    moves: dict[int, dict[str, list[TopicPartition]]] = defaultdict(lambda: defaultdict(list))
    for given, path in checks.mapping(paths, "directories by replica").items():
        replica = _replica(given)
        moves[replica.broker][checks.name(path, "directories")].append(TopicPartition(replica.topic, replica.partition))
    outcome: Outcome[TopicPartitionReplica, None] = Outcome()

    async def one(move: tuple[int, Mapping[str, list[TopicPartition]]]) -> None:
        node_id, by_path = move
        try:
            answer = await asker.broker(
                node_id, ApiKey.ALTER_REPLICA_LOG_DIRS, _moving(by_path), timeout_ms=timeout_ms
            )  # fmt: skip
        except UnsupportedByBroker:
            raise
        except KafkaError as error:
            moved = (tp for each in by_path.values() for tp in each)
            outcome.failed |= {TopicPartitionReplica(*tp, node_id): error for tp in moved}
            return
        _moved(node_id, answer, outcome)

    await map_bounded(one, moves.items())
    return outcome.result()


def _moving(by_path: Mapping[str, list[TopicPartition]]) -> AlterReplicaLogDirsRequest:
    return AlterReplicaLogDirsRequest(
        dirs=[
            AlterReplicaLogDir(
                path=path,
                topics=[AlterReplicaLogDirTopic(name=name, partitions=each) for name, each in by_topic(tps).items()],
            )
            for path, tps in by_path.items()
        ]
    )


def _moved(node_id: int, answer: Any, outcome: Outcome[TopicPartitionReplica, None]) -> None:
    for topic in answer.results:
        for each in topic.partitions:
            replica = TopicPartitionReplica(topic.topic_name, each.partition_index, node_id)
            outcome.add(replica, None, each.error_code, str(replica))


def _replica(value: object) -> TopicPartitionReplica:
    if isinstance(value, tuple) and len(value) == 3:
        tp = checks.partition(value[:2])
        return TopicPartitionReplica(*tp, checks.number(value[2], f"the broker of {tp}"))
    raise InvalidInput(f"a replica is TopicPartitionReplica('topic', 0, broker), not {checks.shown(value)}")
