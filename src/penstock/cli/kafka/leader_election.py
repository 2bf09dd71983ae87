"""kafka-leader-election: let the preferred replica lead again, or any live one."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, NoReturn

from penstock.cli.kafka.connecting import open_admin
from penstock.cli.kafka.json_files import partition_entries, read_json
from penstock.cli.kafka.parsing import Option, Parsed, UsageError, flag
from penstock.cli.kafka.tool import BOOTSTRAP, COMMAND_CONFIG, Tool, run_tool

if TYPE_CHECKING:
    from penstock.base.types import TopicPartition

_WHICH = ("topic", "all-topic-partitions", "path-to-json-file")


def _run(options: Parsed) -> int:
    missing = [each for each in ("election-type",) if not options.has(each)]
    if missing:
        raise UsageError(f"Missing required option(s): {', '.join(missing)}")
    options.one_of(_WHICH, f"One and only one of the following options is required: {', '.join(_WHICH)}")
    kind = options.text("election-type").upper()
    if kind not in ("PREFERRED", "UNCLEAN"):
        raise UsageError(f"Cannot parse argument '{options.get('election-type')}' of option election-type")
    chosen = _chosen(options)
    from penstock.base.errors import KafkaError
    from penstock.client.admin import AdminErrors, ElectionType
    from penstock.client.errors import UnsupportedByBroker

    failed: dict[TopicPartition, KafkaError] = {}
    with open_admin(options, files=("admin.config", "command-config")) as admin:
        try:
            done = admin.elect_leaders(ElectionType[kind], chosen)
        except UnsupportedByBroker:
            raise
        except AdminErrors as errors:
            done, failed = errors.successes, errors.failures
        except KafkaError as error:
            if chosen is None or len(chosen) != 1:
                raise
            done, failed = {}, dict.fromkeys(chosen, error)
    elected = [tp for tp, each in done.items() if each.was_needed]
    if elected:
        print(f"Successfully completed leader election ({kind}) for partitions {_joined(elected)}")
    needless = [tp for tp, each in done.items() if not each.was_needed]
    # Asked for all partitions, Kafka tells of those that needed an election only.
    if needless and chosen is not None:
        print(f"Valid replica already elected for partitions {_joined(needless)}")
    for tp, failure in sorted(failed.items()):
        reason = failure.message.removeprefix(f"partition {tp}: ")
        print(f"Error completing leader election ({kind}) for partition: {tp}: {reason}")
    if failed:
        print(f"{len(failed)} replica(s) could not be elected", file=sys.stderr)
    return 1 if failed else 0


def _chosen(options: Parsed) -> list[TopicPartition] | None:
    from penstock.base.types import TopicPartition

    if options.has("all-topic-partitions"):
        return None
    if options.has("path-to-json-file"):
        path = options.text("path-to-json-file")
        return [TopicPartition(topic, partition) for topic, partition, _ in partition_entries(path, read_json(path))]
    partition = options.number("partition")
    if partition is None:
        raise UsageError("Missing required option(s): partition")
    return [TopicPartition(options.text("topic"), partition)]


def _joined(partitions: Iterable[TopicPartition]) -> str:
    return ", ".join(str(each) for each in sorted(partitions))


TOOL = Tool(
    name="kafka-leader-election",
    about=(
        "This tool attempts to elect a new leader for a set of topic partitions. The type of elections supported are "
        "preferred replicas and unclean replicas."
    ),
    run=_run,
    options=(
        BOOTSTRAP,
        COMMAND_CONFIG,
        Option("admin.config", "Older name of --command-config.", metavar="file"),
        Option("election-type", "preferred or unclean.", metavar="type"),
        Option("topic", "The topic of the partition.", metavar="topic"),
        Option("partition", "The partition.", metavar="number"),
        flag("all-topic-partitions", "All partitions that need it."),
        Option("path-to-json-file", 'The partitions: {"partitions": [{"topic": "foo", "partition": 1}]}',
               metavar="file"),
    ),
)  # fmt: skip


def main() -> NoReturn:
    run_tool(TOOL)


if __name__ == "__main__":
    main()
