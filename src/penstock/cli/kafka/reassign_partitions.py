"""kafka-reassign-partitions: move replicas of partitions to other brokers, and see how far that is.

Throttles are dynamic configurations of brokers and topics, which are set when a move begins and taken back when it is
found to be complete.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from penstock.cli.failures import Failed
from penstock.cli.kafka.connecting import open_admin
from penstock.cli.kafka.json_files import partition_entries, read_json
from penstock.cli.kafka.parsing import Option, Parsed, Takes, UsageError, flag, joined
from penstock.cli.kafka.tool import BOOTSTRAP, COMMAND_CONFIG, ZOOKEEPER, Tool, run_tool

if TYPE_CHECKING:
    from penstock.base.types import TopicPartition
    from penstock.client.admin import Admin

_ACTIONS = ("generate", "execute", "verify", "cancel", "list")
_BROKER_THROTTLES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
_LOG_DIR_THROTTLE = "replica.alter.log.dirs.io.max.bytes.per.second"
_TOPIC_THROTTLES = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
Plan = dict["TopicPartition", tuple[int, ...]]
Directories = dict[tuple[str, int, int], str]


def _run(options: Parsed) -> int:
    action = options.one_of(
        _ACTIONS, "Command must include exactly one action: --generate, --execute, --verify, --cancel, --list"
    )
    if action == "generate":
        options.require("broker-list", "topics-to-move-json-file")
    elif action != "list":
        options.require("reassignment-json-file")
    with open_admin(options) as admin:
        if action == "list":
            return _list(admin)
        if action == "generate":
            return _generate(admin, options)
        plan, directories = read_plan(options.text("reassignment-json-file"))
        if action == "execute":
            return _execute(admin, plan, directories, options)
        if action == "verify":
            return _verify(admin, plan, directories, keep_throttles=options.has("preserve-throttles"))
        return _cancel(admin, plan, keep_throttles=options.has("preserve-throttles"))


def read_plan(path: str) -> tuple[Plan, Directories]:
    """What the file asks for: the brokers of each partition, and directories where they are not `any`."""
    from penstock.base.types import TopicPartition

    plan: Plan = {}
    directories: Directories = {}
    for topic, partition, entry in partition_entries(path, read_json(path)):
        replicas = entry.get("replicas")
        if not isinstance(replicas, list) or not replicas or not all(isinstance(each, int) for each in replicas):
            raise Failed(f"{path}: partition {topic}-{partition} has no list of replicas")
        if len(set(replicas)) < len(replicas):
            raise Failed(f"{path}: partition {topic}-{partition} names a broker twice: {replicas}")
        paths = entry.get("log_dirs", ["any"] * len(replicas))
        if not isinstance(paths, list) or len(paths) != len(replicas):
            raise Failed(f"{path}: partition {topic}-{partition} needs as many log_dirs as replicas")
        plan[TopicPartition(topic, partition)] = tuple(replicas)
        directories |= {
            (topic, partition, broker): where
            for broker, where in zip(replicas, paths, strict=True)
            if where != "any"
        }  # fmt: skip
    if not plan:
        raise Failed("Partition reassignment list cannot be empty")
    return plan, directories


def _list(admin: Admin) -> int:
    found = admin.list_partition_reassignments()
    if not found:
        print("No partition reassignments found.")
        return 0
    print("Current partition reassignments:")
    for tp, each in sorted(found.items()):
        line = f"{tp}: replicas: {joined(each.replicas)}."
        if each.adding:
            line += f" adding: {joined(each.adding)}."
        if each.removing:
            line += f" removing: {joined(each.removing)}."
        print(line)
    return 0


def plan_json(plan: Mapping[TopicPartition, Sequence[int]], directories: Directories) -> str:
    partitions = [
        {
            "topic": tp.topic,
            "partition": tp.partition,
            "replicas": list(replicas),
            "log_dirs": [directories.get((*tp, broker), "any") for broker in replicas],
        }
        for tp, replicas in sorted(plan.items())
    ]
    return json.dumps({"version": 1, "partitions": partitions}, separators=(",", ":"))


def _current(admin: Admin, topics: Iterable[str]) -> tuple[Plan, Directories]:
    """Where the replicas are now, with their directories as far as the brokers tell."""
    from penstock.base.errors import KafkaError
    from penstock.base.types import TopicPartition

    described = admin.describe_topics(sorted(set(topics)))
    plan = {
        TopicPartition(topic.name, each.partition): each.replicas
        for topic in described.values()
        for each in topic.partitions
    }
    directories: Directories = {}
    try:
        dirs = admin.describe_log_dirs(sorted({broker for each in plan.values() for broker in each}))
    except KafkaError:
        return plan, directories
    for broker, paths in dirs.items():
        for path, found in paths.items():
            directories |= {(*tp, broker): path for tp, each in found.replicas.items() if not each.is_future}
    return plan, directories


def _generate(admin: Admin, options: Parsed) -> int:
    path = options.text("topics-to-move-json-file")
    topics = [each.get("topic") for each in read_json(path).get("topics", []) if isinstance(each, dict)]
    if not topics or not all(isinstance(each, str) for each in topics):
        raise Failed(f'{path} names no topics: {{"topics": [{{"topic": "foo"}}], "version": 1}}')
    try:
        brokers = [int(each) for each in options.text("broker-list").split(",")]
    except ValueError:
        raise UsageError(f"--broker-list takes ids such as 0,1,2, and '{options.get('broker-list')}' is not") from None
    if len(set(brokers)) < len(brokers):
        raise Failed(f"Broker list contains duplicate entries: {joined(brokers)}")
    names = [each for each in topics if isinstance(each, str)]
    current, directories = _current(admin, names)
    factors = {tp.topic: len(replicas) for tp, replicas in current.items()}
    for name, factor in factors.items():
        if factor > len(brokers):
            raise Failed(f"Topic {name} has {factor} replicas, which {len(brokers)} broker(s) cannot hold")
    print(f"Current partition replica assignment\n{plan_json(current, directories)}\n")
    print("Proposed partition reassignment configuration")
    print(plan_json(spread(current, brokers, random.randrange(len(brokers))), {}))
    return 0


def spread(current: Mapping[TopicPartition, Sequence[int]], brokers: Sequence[int], start: int) -> Plan:
    """Round about the brokers: leaders one after the other, the other replicas on the brokers that follow."""
    found: Plan = {}
    for tp, replicas in sorted(current.items()):
        first = start + tp.partition
        found[tp] = tuple(brokers[(first + number) % len(brokers)] for number in range(len(replicas)))
    return found


def _execute(admin: Admin, plan: Plan, directories: Directories, options: Parsed) -> int:
    known = {node.id for node in admin.describe_cluster().nodes}
    unknown = sorted({broker for each in plan.values() for broker in each} - known)
    if unknown:
        raise Failed(f"Unknown broker id {joined(unknown)}: there are {joined(sorted(known))}")
    if not options.has("additional") and admin.list_partition_reassignments():
        raise Failed(
            "Cannot execute because there is an existing partition assignment. Use --additional to override this and "
            "create a new partition assignment in addition to the existing one. The --additional flag can also be used "
            "to change the throttle by resubmitting the current reassignment."
        )
    current, places = _current(admin, {tp.topic for tp in plan})
    missing = sorted(str(tp) for tp in plan if tp not in current)
    if missing:
        raise Failed(f"The partitions {', '.join(missing)} do not exist")
    before = {tp: current[tp] for tp in plan}
    print(f"Current partition replica assignment\n\n{plan_json(before, places)}\n")
    print("Save this to use as the --reassignment-json-file option during rollback")
    _throttle(admin, before, plan, directories, options)
    admin.alter_partition_reassignments(
        plan, allow_replication_factor_change=not options.has("disallow-replication-factor-change")
    )
    noun = "reassignment" if len(plan) == 1 else "reassignments"
    print(f"Successfully started partition {noun} for {joined(sorted(plan))}")
    if directories:
        from penstock.client.admin import TopicPartitionReplica

        admin.alter_replica_log_dirs({TopicPartitionReplica(*key): path for key, path in directories.items()})
        names = ",".join(f"{topic}-{partition}-{broker}" for topic, partition, broker in sorted(directories))
        print(f"Successfully started log directory move(s) for: {names}")
    return 0


def _throttle(admin: Admin, before: Plan, plan: Plan, directories: Directories, options: Parsed) -> None:
    from penstock.client.admin import ConfigResource

    rate, directory_rate = options.number("throttle"), options.number("replica-alter-log-dirs-throttle")
    brokers = sorted({broker for each in (*before.values(), *plan.values()) for broker in each})
    changes: dict[ConfigResource, dict[str, str | None]] = {}
    if rate is not None and rate >= 0:
        print(
            "Warning: You must run --verify periodically, until the reassignment completes, to ensure the throttle is "
            "removed."
        )
        for broker in brokers:
            changes[ConfigResource.broker(broker)] = dict.fromkeys(_BROKER_THROTTLES, str(rate))
        for topic in {tp.topic for tp in plan}:
            leaders = [f"{tp.partition}:{each}" for tp in plan if tp.topic == topic for each in before[tp]]
            followers = [
                f"{tp.partition}:{each}"
                for tp in plan
                if tp.topic == topic
                for each in plan[tp]
                if each not in before[tp]
            ]
            texts = (",".join(leaders), ",".join(followers))
            changes[ConfigResource.topic(topic)] = dict(zip(_TOPIC_THROTTLES, texts, strict=True))
    if directory_rate is not None and directory_rate >= 0:
        for broker in sorted({broker for _, _, broker in directories}):
            changes.setdefault(ConfigResource.broker(broker), {})[_LOG_DIR_THROTTLE] = str(directory_rate)
    if changes:
        admin.incremental_alter_configs(changes)
    if rate is not None and rate >= 0:
        print(f"The inter-broker throttle limit was set to {rate} B/s")
    if directory_rate is not None and directory_rate >= 0:
        print(f"The replica-alter-dir throttle limit was set to {directory_rate} B/s")


def _clear_throttles(admin: Admin, plan: Plan) -> None:
    from penstock.client.admin import ConfigResource

    brokers = sorted(node.id for node in admin.describe_cluster().nodes)
    topics = sorted({tp.topic for tp in plan})
    print(f"Clearing broker-level throttles on broker{'s' * (len(brokers) != 1)} {joined(brokers)}")
    keys = (*_BROKER_THROTTLES, _LOG_DIR_THROTTLE)
    admin.incremental_alter_configs({ConfigResource.broker(each): dict.fromkeys(keys) for each in brokers})
    print(f"Clearing topic-level throttles on topic{'s' * (len(topics) != 1)} {','.join(topics)}")
    admin.incremental_alter_configs({ConfigResource.topic(each): dict.fromkeys(_TOPIC_THROTTLES) for each in topics})


def _verify(admin: Admin, plan: Plan, directories: Directories, *, keep_throttles: bool) -> int:
    under_way = admin.list_partition_reassignments()
    current, places = _current(admin, {tp.topic for tp in plan})
    print("Status of partition reassignment:")
    for tp, replicas in sorted(plan.items()):
        print(partition_status(tp, replicas, current.get(tp), moving=tp in under_way))
    for key, wanted in sorted(directories.items()):
        name = f"{key[0]}-{key[1]}-{key[2]}"
        done = places.get(key) == wanted
        print(f"Reassignment of replica {name} " + ("completed successfully." if done else "is still in progress."))
    if not any(tp in under_way for tp in plan) and not keep_throttles:
        print()
        _clear_throttles(admin, plan)
    return 0


def partition_status(tp: TopicPartition, wanted: Sequence[int], now: Sequence[int] | None, *, moving: bool) -> str:
    if moving:
        return f"Reassignment of partition {tp} is still in progress."
    if now is None:
        return f"There is no active reassignment of partition {tp}, and the partition does not exist."
    if tuple(now) == tuple(wanted):
        return f"Reassignment of partition {tp} is completed."
    return (
        f"There is no active reassignment of partition {tp}, but replica set is {joined(now)} rather than "
        f"{joined(wanted)}."
    )


def _cancel(admin: Admin, plan: Plan, *, keep_throttles: bool) -> int:
    under_way = admin.list_partition_reassignments()
    active: dict[Any, None] = {tp: None for tp in sorted(plan) if tp in under_way}
    if active:
        admin.alter_partition_reassignments(active)
        print(f"Successfully cancelled partition reassignment{'s' * (len(active) != 1)} for: {joined(active)}")
    else:
        print("None of the specified partition reassignments are active.")
    print("None of the specified partition moves are active.")
    if not keep_throttles:
        _clear_throttles(admin, plan)
    return 0


TOOL = Tool(
    name="kafka-reassign-partitions",
    about="This tool helps to move topic partitions between replicas.",
    failure_prefix="Error: ",
    failures_on_stdout=True,
    run=_run,
    options=(
        BOOTSTRAP,
        Option("bootstrap-controller", "", metavar="server", takes=Takes.MAYBE,
               refused="ask a broker, with --bootstrap-server"),
        COMMAND_CONFIG,
        ZOOKEEPER,
        flag("generate", "Propose where the partitions of topics could go; nothing is moved."),
        flag("execute", "Begin the moves of the file."),
        flag("verify", "How far the moves of the file are; takes throttles back when they are done."),
        flag("cancel", "End the moves of the file that are under way."),
        flag("list", "List the moves under way."),
        Option("reassignment-json-file", 'The moves: {"partitions": [{"topic": "foo", "partition": 1, "replicas": '
               '[1,2,3], "log_dirs": ["any","any","any"]}], "version": 1}', metavar="file"),
        Option("topics-to-move-json-file", 'With --generate: {"topics": [{"topic": "foo"}], "version": 1}',
               metavar="file"),
        Option("broker-list", "With --generate: the ids of brokers, as 0,1,2.", metavar="ids"),
        flag("disable-rack-aware", "With --generate; the proposal does not look at racks in any case."),
        Option("throttle", "Bytes per second between brokers.", metavar="rate", default="-1"),
        Option("replica-alter-log-dirs-throttle", "Bytes per second between directories.", metavar="rate",
               default="-1"),
        Option("timeout", "How long to wait for moves between directories to begin.", metavar="ms", default="10000"),
        flag("additional", "Also while other moves are under way."),
        flag("preserve-throttles", "Leave throttles as they are."),
        flag("disallow-replication-factor-change", "Refuse moves that change the number of replicas."),
    ),
)  # fmt: skip


def main() -> NoReturn:
    run_tool(TOOL)


if __name__ == "__main__":
    main()
