"""kafka-topics: create, delete, describe, list and change topics.

The older ways of changing a topic's configuration (`--alter --config`, `--alter --delete-config`) work too, and print
what Kafka 2.8 printed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NoReturn

from penstock.cli.failures import Failed
from penstock.cli.kafka.connecting import open_admin
from penstock.cli.kafka.parsing import Option, Parsed, UsageError, flag, joined, key_values
from penstock.cli.kafka.tool import BOOTSTRAP, COMMAND_CONFIG, ZOOKEEPER, Tool, run_tool

if TYPE_CHECKING:
    from penstock.client.admin import Admin, ConfigEntry, PartitionDescription, TopicDescription

_ACTIONS = ("list", "describe", "create", "alter", "delete")
_FILTERS = (
    "under-replicated-partitions",
    "unavailable-partitions",
    "under-min-isr-partitions",
    "at-min-isr-partitions",
    "topics-with-overrides",
)
_COLLISION_WARNING = (
    "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') could collide. "
    "To avoid issues it is best to use either, but not both."
)


def _run(options: Parsed) -> None:
    action = options.one_of(
        _ACTIONS, "Command must include exactly one action: --list, --describe, --create, --alter or --delete"
    )
    _check(options, action)
    with open_admin(options) as admin:
        {"list": _list, "describe": _describe, "create": _create, "alter": _alter, "delete": _delete}[action](
            admin, options
        )


def _check(options: Parsed, action: str) -> None:
    if action in ("create", "alter", "delete"):
        options.require("topic")
    changes = ("config", "delete-config")
    if action == "alter" and not any(options.has(each) for each in ("partitions", *changes)):
        raise UsageError('Missing required argument "[partitions]"')
    for name in ("config", "delete-config", "partitions", "replica-assignment"):
        if action not in ("alter", "create"):
            options.exclude(name, action)
    options.exclude("delete-config", "create")
    options.exclude("replication-factor", *(each for each in _ACTIONS if each != "create"))
    if options.has("create"):
        options.exclude("replica-assignment", "partitions", "replication-factor")
    for number, name in enumerate(_FILTERS):
        if options.has(name) and action != "describe":
            raise UsageError(f'Option "[{name}]" can\'t be used with option "[{action}]"')
        options.exclude(name, *_FILTERS[number + 1 :])
    options.exclude("if-not-exists", *(each for each in _ACTIONS if each != "create"))
    options.exclude("if-exists", "list", "create")
    options.exclude("exclude-internal", "create", "alter", "delete")
    for name in ("partitions", "replication-factor"):
        count = options.number(name)
        if count is not None and count < 1:
            raise Failed(f"The {name.replace('-', ' ')} must be greater than 0")


def _list(admin: Admin, options: Parsed) -> None:
    for name in _matching(admin, options, must_exist=False):
        print(name)


def _matching(admin: Admin, options: Parsed, *, must_exist: bool = True) -> list[str]:
    """The topics whose whole names match the pattern of --topic, or all."""
    pattern = options.get("topic")
    listed = admin.list_topics(include_internal=not options.has("exclude-internal"))
    if pattern is None:
        return sorted(listed)
    found = sorted(filter(topic_matcher(pattern), listed))
    if not found and must_exist and not options.has("if-exists"):
        raise Failed(f"Topic '{pattern}' does not exist as expected")
    return found


def topic_matcher(pattern: str) -> Callable[[str], object]:
    """Whether a whole name matches; as in Kafka, a comma means "or"."""
    text = pattern.strip().replace(",", "|").replace(" ", "").strip("\"'")
    try:
        return re.compile(text).fullmatch
    except re.error as error:
        raise UsageError(f"'{pattern}' is neither a topic nor a regular expression: {error}") from None


def _create(admin: Admin, options: Parsed) -> None:
    from penstock.base.errors import ErrorCode, KafkaError
    from penstock.client.admin import NewTopic

    name = options.text("topic")
    assignment = options.get("replica-assignment")
    topic = NewTopic(
        name=name,
        num_partitions=options.number("partitions"),
        replication_factor=options.number("replication-factor"),
        assignments=None if assignment is None else dict(enumerate(replica_assignment(assignment))),
        configs=key_values(options.values("config"), "config"),
    )
    try:
        admin.create_topics([topic])
    except KafkaError as error:
        # Kafka's tool looks at the configuration before it warns, and so does without the warning here.
        if error.code is not ErrorCode.INVALID_CONFIG:
            _warn_of_collisions(name)
        if error.code is ErrorCode.TOPIC_ALREADY_EXISTS and options.has("if-not-exists"):
            return
        raise Failed(_broker_says(error, name)) from None
    _warn_of_collisions(name)
    print(f"Created topic {name}.")


def _warn_of_collisions(name: str) -> None:
    if "." in name or "_" in name:
        print(_COLLISION_WARNING)


def replica_assignment(text: str) -> list[list[int]]:
    """`1:2,2:1`: the brokers of each partition."""
    try:
        found = [[int(broker) for broker in partition.split(":")] for partition in text.split(",")]
    except ValueError:
        raise UsageError(
            f"--replica-assignment takes broker ids such as 1:2,2:1, and '{text}' is not of that form"
        ) from None
    for number, brokers in enumerate(found):
        if len(set(brokers)) < len(brokers):
            raise UsageError(f"Partition {number} of --replica-assignment names a broker twice: {text}")
        if len(brokers) != len(found[0]):
            raise UsageError(f"Partition {number} of --replica-assignment has another number of replicas: {text}")
    return found


def _alter(admin: Admin, options: Parsed) -> None:
    from penstock.base.errors import KafkaError
    from penstock.client.admin import NewPartitions

    older = options.has("zookeeper")
    names = _matching(admin, options)
    count = options.number("partitions")
    assignment = options.get("replica-assignment")
    for name in names:
        if options.has("config") or options.has("delete-config"):
            _alter_config(admin, options, name)
        if count is None:
            continue
        if older:
            print(
                "WARNING: If partitions are increased for a topic that has a key, the partition logic or ordering of "
                "the messages will be affected"
            )
        existing = len(admin.describe_topics([name])[name].partitions) if assignment is not None else 0
        try:
            new = None if assignment is None else replica_assignment(assignment)[existing:]
            admin.create_partitions({name: NewPartitions(total_count=count, assignments=new)})
        except KafkaError as error:
            raise Failed(_broker_says(error, name)) from None
        if older:
            print("Adding partitions succeeded!")


def _alter_config(admin: Admin, options: Parsed, name: str) -> None:
    from penstock.base.errors import KafkaError
    from penstock.client.admin import AlterConfigOp, ConfigResource

    print(
        "WARNING: Altering topic configuration from this script has been deprecated and may be removed in future "
        "releases.\n         Going forward, please use kafka-configs.sh for this functionality"
    )
    added = key_values(options.values("config"), "config")
    steps = [AlterConfigOp(name=key, value=value) for key, value in added.items()]
    steps += [AlterConfigOp.delete(key) for key in options.values("delete-config")]
    try:
        admin.incremental_alter_configs({ConfigResource.topic(name): steps})
    except KafkaError as error:
        raise Failed(_broker_says(error, name)) from None
    print(f"Updated config for topic {name}.")


def _delete(admin: Admin, options: Parsed) -> None:
    from penstock.base.errors import KafkaError

    names = _matching(admin, options)
    for name in names:
        try:
            admin.delete_topics([name])
        except KafkaError as error:
            raise Failed(_broker_says(error, name)) from None
        if options.has("zookeeper"):
            print(f"Topic {name} is marked for deletion.")
            print("Note: This will have no impact if delete.topic.enable is not set to true.")


def _broker_says(error: Exception, name: str) -> str:
    """The broker's words, which name the topic by themselves."""
    return str(getattr(error, "message", error)).removeprefix(f"topic {name}: ")


def _describe(admin: Admin, options: Parsed) -> None:
    from penstock.client.admin import AdminErrors, ConfigResource

    page_size = options.number("partition-size-limit-per-response") or 2000
    topics = _chosen(admin, options, page_size)
    if not topics:
        return
    try:
        configs = admin.describe_configs([ConfigResource.topic(each.name) for each in topics])
    except AdminErrors as errors:
        configs = errors.successes
    under_way = _reassigned(admin)
    for topic in topics:
        entries = configs.get(ConfigResource.topic(topic.name), {})
        _show(topic, entries, options, under_way)


def _chosen(admin: Admin, options: Parsed, page_size: int) -> list[TopicDescription]:
    from penstock.base.errors import ErrorCode, KafkaError
    from penstock.base.types import uuid_from_text

    if options.has("topic-id") and not options.has("topic"):
        text = options.text("topic-id")
        try:
            return list(admin.describe_topics([uuid_from_text(text)], page_size=page_size).values())
        except KafkaError as error:
            if error.code in (ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
                if options.has("if-exists"):
                    return []
                raise Failed(f"TopicId '{text}' does not exist as expected") from None
            raise
        except ValueError:
            raise Failed(f"'{text}' is not the id of a topic: these have 22 letters") from None
    names = _matching(admin, options)
    described = admin.describe_topics(names, page_size=page_size) if names else {}
    return [described[name] for name in names]


def _reassigned(admin: Admin) -> dict[tuple[str, int], tuple[Sequence[int], Sequence[int]]]:
    """What is being added and removed; nothing where the broker does not tell or the user may not see it."""
    from penstock.base.errors import KafkaError

    try:
        found = admin.list_partition_reassignments()
    except KafkaError:
        return {}
    return {(tp.topic, tp.partition): (each.adding, each.removing) for tp, each in found.items()}


def _show(
    topic: TopicDescription,
    entries: dict[str, ConfigEntry],
    options: Parsed,
    under_way: dict[tuple[str, int], tuple[Sequence[int], Sequence[int]]],
) -> None:
    overrides = [f"{each.name}={each.value}" for each in entries.values() if _is_override(each)]
    chosen = next((each for each in _FILTERS if options.has(each)), None)
    if chosen == "topics-with-overrides" and not overrides:
        return
    if chosen in (None, "topics-with-overrides"):
        print(_headline(topic, overrides, under_way))
    if chosen == "topics-with-overrides":
        return
    minimum = int(entries["min.insync.replicas"].value or 1) if "min.insync.replicas" in entries else 1
    for each in topic.partitions:
        moving = under_way.get((topic.name, each.partition))
        if _is_shown(each, chosen, minimum, len(moving[0]) if moving else 0):
            print(_partition_line(topic.name, each, moving))


def _is_override(entry: ConfigEntry) -> bool:
    from penstock.client.admin import ConfigSource

    return entry.source is not ConfigSource.DEFAULT_CONFIG


def _is_shown(partition: PartitionDescription, chosen: str | None, minimum: int, adding: int) -> bool:
    in_sync, assigned = len(partition.isr), len(partition.replicas) - adding
    return {
        None: True,
        "under-replicated-partitions": in_sync < assigned,
        "unavailable-partitions": partition.leader is None,
        "under-min-isr-partitions": in_sync < minimum,
        "at-min-isr-partitions": in_sync == minimum,
    }[chosen]


def _headline(
    topic: TopicDescription,
    overrides: list[str],
    under_way: dict[tuple[str, int], tuple[Sequence[int], Sequence[int]]],
) -> str:
    from penstock.base.types import uuid_to_text

    first = under_way.get((topic.name, 0))
    factor = topic.replication_factor - (len(first[0]) if first else 0)
    return (
        f"Topic: {topic.name}\tTopicId: {uuid_to_text(topic.topic_id)}\tPartitionCount: {len(topic.partitions)}"
        f"\tReplicationFactor: {factor}\tConfigs: {','.join(overrides)}"
    )


def _partition_line(
    name: str, partition: PartitionDescription, moving: tuple[Sequence[int], Sequence[int]] | None
) -> str:
    leader = "none" if partition.leader is None else partition.leader
    line = (
        f"\tTopic: {name}\tPartition: {partition.partition}\tLeader: {leader}"
        f"\tReplicas: {joined(partition.replicas)}\tIsr: {joined(partition.isr)}"
        f"\tElr: {_maybe(partition.eligible_leader_replicas)}\tLastKnownElr: {_maybe(partition.last_known_elr)}"
    )
    if moving is not None:
        line += f"\tAdding Replicas: {joined(moving[0])}\tRemoving Replicas: {joined(moving[1])}"
    return line


def _maybe(ids: Iterable[int] | None) -> str:
    return "N/A" if ids is None else joined(ids)


TOOL = Tool(
    name="kafka-topics",
    about="This tool helps to create, delete, describe, or change a topic.",
    failure_prefix="Error while executing topic command : ",
    failures_on_stdout=True,
    run=_run,
    options=(
        BOOTSTRAP,
        COMMAND_CONFIG,
        ZOOKEEPER,
        flag("list", "List all topics, or those that --topic matches."),
        flag("create", "Create a topic."),
        flag("delete", "Delete the topics that --topic matches."),
        flag("alter", "Give the topics that --topic matches more partitions (or, as before, other configurations)."),
        flag("describe", "Show the topics that --topic matches, or all, with their partitions."),
        Option("topic", "The topic; a regular expression except with --create.", metavar="topic"),
        Option("topic-id", "The id of the topic to describe.", metavar="id"),
        Option(
            "config", "A configuration of the topic; repeatable.", metavar="name=value", repeatable=True
        ),
        Option(
            "delete-config",
            "With --alter, a configuration to take back; repeatable. Newer: kafka-configs.",
            metavar="name",
            repeatable=True,
        ),
        Option("partitions", "How many partitions the topic is to have in all.", metavar="number"),
        Option("replication-factor", "How many replicas each partition is to have.", metavar="number"),
        Option("replica-assignment", "Brokers of each partition, as 1:2,2:1.", metavar="brokers"),
        flag("under-replicated-partitions", "With --describe: only partitions that lack replicas in sync."),
        flag("unavailable-partitions", "With --describe: only partitions without a leader."),
        flag("under-min-isr-partitions", "With --describe: only partitions below min.insync.replicas."),
        flag("at-min-isr-partitions", "With --describe: only partitions that are just at min.insync.replicas."),
        flag("topics-with-overrides", "With --describe: only topics with configurations of their own."),
        flag("if-exists", "No failure if the topic does not exist."),
        flag("if-not-exists", "With --create: no failure if the topic exists."),
        flag("exclude-internal", "Leave internal topics out when listing or describing."),
        flag("force", "Of older command lines; there is nothing to confirm."),
        Option("partition-size-limit-per-response", "How many partitions to ask for at a time.", metavar="number"),
    ),
)  # fmt: skip


def main() -> NoReturn:
    run_tool(TOOL)


if __name__ == "__main__":
    main()
