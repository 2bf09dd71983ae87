"""kafka-get-offsets: the offsets of partitions, by kind or by time."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import NoReturn

from penstock.cli.failures import Failed
from penstock.cli.kafka.connecting import open_admin
from penstock.cli.kafka.parsing import Option, Parsed, UsageError, flag
from penstock.cli.kafka.tool import BOOTSTRAP, COMMAND_CONFIG, Tool, run_tool
from penstock.cli.kafka.topics import topic_matcher

_RULE = re.compile(r"([^:,]*)(?::(?:(\d*)|(?:(\d*)-(\d*))))?")
_TIMES = {
    "latest": -1,
    "earliest": -2,
    "max-timestamp": -3,
    "earliest-local": -4,
    "latest-tiered": -5,
    "earliest-pending-upload": -6,
}
Wanted = Callable[[str, int], bool]


def _run(options: Parsed) -> int:
    for name in ("topic", "partitions"):
        options.exclude("topic-partitions", name)
    when = timestamp_of(options.text("time"))
    wanted = (
        rules(options.text("topic-partitions"))
        if options.has("topic-partitions")
        else _by_topic(options.get("topic"), options.get("partitions"))
    )
    from penstock.base.types import TopicPartition
    from penstock.client.admin import AdminErrors, OffsetSpec

    with open_admin(options) as admin:
        listed = admin.list_topics(include_internal=not options.has("exclude-internal-topics"))
        names = [name for name in listed if wanted(name, -1)]
        described = admin.describe_topics(names) if names else {}
        partitions = [
            TopicPartition(name, each.partition)
            for name in names
            for each in described[name].partitions
            if wanted(name, each.partition)
        ]
        if not partitions:
            raise Failed("Could not match any topic-partitions with the specified filters")
        failed: AdminErrors | None = None
        try:
            found = admin.list_offsets(dict.fromkeys(partitions, OffsetSpec(when)))
        except AdminErrors as errors:
            found, failed = errors.successes, errors
    for tp in partitions:
        if tp in found and found[tp].offset >= 0:
            print(f"{tp.topic}:{tp.partition}:{found[tp].offset}")
    for tp, error in (failed.failures if failed else {}).items():
        print(f"Skip getting offsets for topic-partition {tp} due to error: {error.message}", file=sys.stderr)
    return 1 if failed else 0


def timestamp_of(text: str) -> int:
    if text in _TIMES:
        return _TIMES[text]
    try:
        return int(text)
    except ValueError:
        known = " / ".join(f"{number} or {name}" for name, number in _TIMES.items())
        raise Failed(
            f"Malformed time argument {text}. Please use {known}, or a specified long format timestamp"
        ) from None


def _by_topic(topic: str | None, partitions: str | None) -> Wanted:
    matches = topic_matcher(topic or ".*")
    try:
        numbers = None if partitions is None else {int(each) for each in partitions.split(",") if each.strip()}
    except ValueError:
        raise UsageError(f"--partitions takes numbers such as 0,2, and '{partitions}' is not of that form") from None
    return lambda name, partition: bool(matches(name)) and (partition < 0 or not numbers or partition in numbers)


def rules(text: str) -> Wanted:
    """`topic1:1,topic2:0-3,topic3,topic4:5-,topic5:-3`: each rule is a pattern of names and maybe of partitions."""
    found = [_rule(each) for each in text.split(",")]
    return lambda name, partition: any(rule(name, partition) for rule in found)


def _rule(text: str) -> Wanted:
    parts = _RULE.fullmatch(text.strip())
    if parts is None:
        raise Failed(f"Invalid rule specification: {text}")
    topic, exact, low, high = parts.groups()
    matches = topic_matcher(topic or ".*")

    def fits(partition: int) -> bool:
        if partition < 0:
            return True
        if exact:
            return partition == int(exact)
        return (not low or partition >= int(low)) and (not high or partition < int(high))

    return lambda name, partition: bool(matches(name)) and fits(partition)


TOOL = Tool(
    name="kafka-get-offsets",
    about="An interactive shell for getting topic-partition offsets.",
    failure_prefix="Error occurred: ",
    run=_run,
    options=(
        BOOTSTRAP,
        Option("broker-list", "Older name of --bootstrap-server.", metavar="server"),
        COMMAND_CONFIG,
        Option("topic", "The topics, as a regular expression; all without it.", metavar="pattern"),
        Option("partitions", "The partitions, as 0,2; all without it.", metavar="numbers"),
        Option("topic-partitions", "topic1:1,topic2:0-3,topic3,topic4:5-,topic5:-3", metavar="rules"),
        Option("time", "A timestamp, latest (-1), earliest (-2), max-timestamp (-3), earliest-local (-4), "
               "latest-tiered (-5) or earliest-pending-upload (-6).", metavar="time", default="latest"),
        flag("exclude-internal-topics", "Leave internal topics out."),
    ),
)  # fmt: skip


def main() -> NoReturn:
    run_tool(TOOL)


if __name__ == "__main__":
    main()
