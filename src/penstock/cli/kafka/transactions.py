"""kafka-transactions: what transactions there are, who writes them, and the end of those that hang."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn

from penstock.cli.failures import Failed
from penstock.cli.kafka.commands import Command, chosen, synopsis
from penstock.cli.kafka.connecting import open_admin
from penstock.cli.kafka.parsing import Option, Parsed, UsageError, joined
from penstock.cli.kafka.tool import BOOTSTRAP, COMMAND_CONFIG, Tool, run_tool

if TYPE_CHECKING:
    from penstock.base.types import TopicPartition
    from penstock.client.admin import Admin

_DEFAULT_MAX_TIMEOUT_MINUTES = 15


def _run(options: Parsed) -> None:
    run = chosen(options, _COMMANDS)
    with open_admin(options) as admin:
        run(admin, options)


def table(rows: Sequence[Sequence[object]]) -> None:
    """Columns as Kafka prints them: filled up, with a tab after each."""
    texts = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[number]) for row in texts) for number in range(len(texts[0]))]
    for row in texts:
        print("".join(f"{cell:<{width}}\t" for cell, width in zip(row, widths, strict=True)))


def _list(admin: Admin, options: Parsed) -> None:
    found = admin.list_transactions(
        running_longer_than_ms=options.number("duration-filter"),
        transactional_id_pattern=options.get("transactional-id-pattern"),
    )
    rows: list[Sequence[object]] = [("TransactionalId", "Coordinator", "ProducerId", "TransactionState")]
    rows += [(each.transactional_id, each.coordinator, each.producer_id, each.state.value) for each in found.values()]
    table(rows)


def _describe(admin: Admin, options: Parsed) -> None:
    from penstock.base.errors import ErrorCode, KafkaError

    name = options.text("transactional-id")
    try:
        found = admin.describe_transactions([name])[name]
    except KafkaError as error:
        if error.code is not ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            raise
        raise Failed(
            f"Failed to describe transaction state of transactional-id `{name}`: the id could not be found. "
            "`kafka-transactions list` shows those there are."
        ) from None
    # Of a transaction that is over, too: the coordinator remembers when it began.
    start: object = "None" if found.start_time_ms is None else found.start_time_ms
    duration: object = "None" if found.start_time_ms is None else _now_ms() - found.start_time_ms
    head = (
        "CoordinatorId", "TransactionalId", "ProducerId", "ProducerEpoch", "TransactionState", "TransactionTimeoutMs",
        "CurrentTransactionStartTimeMs", "TransactionDurationMs", "TopicPartitions",
    )  # fmt: skip
    partitions = joined(sorted(found.partitions))
    row = (
        found.coordinator, name, found.producer_id, found.producer_epoch, found.state.value, found.timeout_ms, start,
        duration, partitions,
    )  # fmt: skip
    table([head, row])


def _now_ms() -> int:
    import time

    return int(time.time() * 1000)


def _partition(options: Parsed) -> TopicPartition:
    from penstock.base.types import TopicPartition

    partition = options.number("partition")
    if not options.has("topic") or partition is None:
        raise UsageError("--topic and --partition are required")
    return TopicPartition(options.text("topic"), partition)


def _describe_producers(admin: Admin, options: Parsed) -> None:
    tp = _partition(options)
    found = admin.describe_producers([tp], broker=options.number("broker-id"))[tp]
    rows: list[Sequence[object]] = [
        (
            "ProducerId", "ProducerEpoch", "LatestCoordinatorEpoch", "LastSequence", "LastTimestamp",
            "CurrentTransactionStartOffset",
        )
    ]  # fmt: skip
    for each in found:
        epoch = -1 if each.coordinator_epoch is None else each.coordinator_epoch
        start = "None" if each.transaction_start_offset is None else each.transaction_start_offset
        rows.append((each.producer_id, each.producer_epoch, epoch, each.last_sequence, each.last_timestamp, start))
    table(rows)


def _abort(admin: Admin, options: Parsed) -> None:
    from penstock.client.admin import AbortTransaction, InvalidInput, abort_of

    tp = _partition(options)
    start = options.number("start-offset")
    if start is not None:
        try:
            spec = abort_of(tp, admin.describe_producers([tp])[tp], start)
        except InvalidInput:
            raise Failed(f"Could not find any open transactions starting at offset {start} on partition {tp}") from None
    else:
        producer, epoch = options.number("producer-id"), options.number("producer-epoch")
        coordinator = options.number("coordinator-epoch")
        if producer is None or epoch is None or coordinator is None:
            raise UsageError(
                "The transaction to abort must be identified either with --start-offset, or with --producer-id, "
                "--producer-epoch and --coordinator-epoch"
            )
        # A coordinator that has not written to the partition yet counts as epoch 0.
        spec = AbortTransaction(
            partition=tp, producer_id=producer, producer_epoch=epoch, coordinator_epoch=max(coordinator, 0)
        )
    admin.abort_transaction(spec)


def _find_hanging(admin: Admin, options: Parsed) -> None:
    broker, topic = options.number("broker-id"), options.get("topic")
    if broker is None and topic is None:
        raise UsageError("The --topic argument is required when --broker-id is not specified")
    minutes = options.number("max-transaction-timeout")
    minutes = _DEFAULT_MAX_TIMEOUT_MINUTES if minutes is None else minutes
    found = admin.find_hanging_transactions(
        broker=broker,
        topic=topic,
        partition=options.number("partition"),
        max_transaction_timeout_ms=minutes * 60_000,
    )
    rows: list[Sequence[object]] = [
        (
            "Topic", "Partition", "ProducerId", "ProducerEpoch", "CoordinatorEpoch", "StartOffset", "LastTimestamp",
            "Duration(min)",
        )
    ]  # fmt: skip
    for each in found:
        epoch = -1 if each.coordinator_epoch is None else each.coordinator_epoch
        rows.append(
            (
                *each.partition, each.producer_id, each.producer_epoch, epoch, each.start_offset, each.last_timestamp,
                each.duration_ms // 60_000,
            )
        )  # fmt: skip
    table(rows)


def _force_terminate(admin: Admin, options: Parsed) -> None:
    name = options.text("transactionalId")
    admin.fence_producers([name])
    print(f"The transaction of {name} is aborted; its producer can write no more.", file=sys.stderr)


_COMMANDS: Mapping[str, Command[Callable[[Admin, Parsed], None]]] = {
    "list": Command(_list, ("duration-filter", "transactional-id-pattern")),
    "describe": Command(_describe, ("transactional-id",)),
    "describe-producers": Command(_describe_producers, ("broker-id", "topic", "partition")),
    "abort": Command(
        _abort,
        ("topic", "partition", "start-offset", "producer-id", "producer-epoch", "coordinator-epoch"),
    ),
    "find-hanging": Command(_find_hanging, ("broker-id", "max-transaction-timeout", "topic", "partition")),
    "forceTerminateTransaction": Command(_force_terminate, ("transactionalId",)),
}

TOOL = Tool(
    name="kafka-transactions",
    about=(
        "This tool is used to analyze the transactional state of producers in the cluster. It can be used to detect "
        "and recover from hanging transactions."
    ),
    words=synopsis(_COMMANDS),
    run=_run,
    options=(
        BOOTSTRAP,
        COMMAND_CONFIG,
        Option("duration-filter", "list: only transactions open for longer than this.", metavar="ms"),
        Option("transactional-id-pattern", "list: only ids that match this regular expression.", metavar="pattern"),
        Option("transactional-id", "describe: the transactional id.", metavar="id"),
        Option("transactionalId", "forceTerminateTransaction: the transactional id.", metavar="id"),
        Option("broker-id", "describe-producers, find-hanging: the broker to ask.", metavar="id"),
        Option("topic", "describe-producers, abort, find-hanging: the topic.", metavar="topic"),
        Option("partition", "describe-producers, abort, find-hanging: the partition.", metavar="number"),
        Option("start-offset", "abort: the first offset of the transaction.", metavar="offset"),
        Option("producer-id", "abort: the producer, on brokers before 3.0.", metavar="id"),
        Option("producer-epoch", "abort: its epoch, on brokers before 3.0.", metavar="number"),
        Option("coordinator-epoch", "abort: the coordinator's epoch, on brokers before 3.0.", metavar="number"),
        Option("max-transaction-timeout", "find-hanging: how long a transaction may take.", metavar="minutes"),
    ),
)


def main() -> NoReturn:
    run_tool(TOOL)


if __name__ == "__main__":
    main()
