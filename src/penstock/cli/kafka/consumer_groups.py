"""kafka-consumer-groups: list, describe, delete groups, reset and delete their offsets."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, NoReturn

from penstock.cli.kafka.connecting import open_admin
from penstock.cli.kafka.parsing import Option, Parsed, Takes, UsageError, flag
from penstock.cli.kafka.tool import BOOTSTRAP, COMMAND_CONFIG, ZOOKEEPER, Tool, run_tool

if TYPE_CHECKING:
    from penstock.client.admin import Admin, GroupListing

_ACTIONS = ("list", "describe", "delete", "reset-offsets", "delete-offsets", "validate-regex")
_SCENARIOS = (
    "to-offset", "shift-by", "to-datetime", "by-duration", "to-earliest", "to-latest", "to-current", "from-file",
)  # fmt: skip
_STATES = ("Stable", "CompletingRebalance", "Empty", "Reconciling", "PreparingRebalance", "Assigning", "Dead")
_TYPES = ("Consumer", "Classic")
_NO_ACTION = (
    "WARN: No action will be performed as the --execute option is missing. You should add the --dry-run option "
    "explicitly if you are scripting this command and want to keep the current default behavior without prompting."
)


def _run(options: Parsed) -> int:
    action = options.one_of(
        _ACTIONS,
        "Command must include exactly one action: --list, --describe, --delete, --reset-offsets, --delete-offsets, "
        "--validate-regex",
    )
    _check(options, action)
    if action == "validate-regex":
        return _validate_regex(options.text("validate-regex"))
    with open_admin(options) as admin:
        if action == "list":
            return _list(admin, options)
        from penstock.cli.kafka import group_descriptions, group_offsets

        groups = _groups(admin, options)
        if action == "describe":
            return group_descriptions.describe(admin, groups, options, timeout_ms=options.number("timeout"))
        if action == "delete":
            return _delete(admin, groups)
        if action == "delete-offsets":
            return group_offsets.delete(admin, groups[0], options.values("topic"))
        return group_offsets.reset(admin, groups, options)


def _check(options: Parsed, action: str) -> None:
    if action in ("describe", "delete", "reset-offsets") and options.has("group") == options.has("all-groups"):
        raise UsageError(f"Option [{action}] takes one of these options: [group], [all-groups]")
    if action == "delete-offsets" and (len(options.values("group")) != 1 or not options.has("topic")):
        raise UsageError("Option [delete-offsets] takes the following options: [group], [topic]")
    if action == "reset-offsets":
        _check_reset(options)
    for name in ("members", "offsets", "verbose"):
        options.exclude(name, *(each for each in _ACTIONS if each != "describe"))
    if action == "describe" and sum(options.has(each) for each in ("members", "offsets", "state")) > 1:
        raise UsageError("Option [describe] takes at most one of these options: [members], [offsets], [state]")
    options.exclude("type", *(each for each in _ACTIONS if each != "list"))
    options.exclude("state", *(each for each in _ACTIONS if each not in ("list", "describe")))


def _check_reset(options: Parsed) -> None:
    options.exclude("dry-run", "execute")
    if not options.has("dry-run") and not options.has("execute"):
        print(_NO_ACTION + "\n", file=sys.stderr)
    if sum(options.has(each) for each in _SCENARIOS) != 1:
        names = ", ".join(f"[{each}]" for each in _SCENARIOS)
        raise UsageError(f"Option '[reset-offsets]' requires one of the following scenarios: [{names}]")
    if not options.has("from-file") and options.has("all-topics") == options.has("topic"):
        raise UsageError("One of the reset scopes should be defined: --all-topics, --topic.")


def _groups(admin: Admin, options: Parsed) -> list[str]:
    if options.has("all-groups"):
        return [each.group_id for each in _consumer_groups(admin, options)]
    return list(dict.fromkeys(options.values("group")))


def _consumer_groups(admin: Admin, options: Parsed) -> list[GroupListing]:
    """Groups of consumers, not those of share groups, Streams or Connect."""
    from penstock.client.admin import GroupType

    types = (GroupType.CLASSIC, GroupType.CONSUMER, GroupType.UNKNOWN)
    listed = admin.list_groups(timeout_ms=options.number("timeout"))
    return [each for each in listed.values() if each.type in types and each.protocol_type in ("", "consumer")]


def _list(admin: Admin, options: Parsed) -> int:
    groups = _consumer_groups(admin, options)
    with_state, with_type = options.has("state"), options.has("type")
    if with_state:
        states = _members(options.values("state"), _STATES, "state")
        groups = [each for each in groups if not states or each.state.value in states]
    if with_type:
        types = _members(options.values("type"), _TYPES, "type")
        groups = [each for each in groups if not types or each.type.value in types]
    if not with_state and not with_type:
        for each in groups:
            print(each.group_id)
        return 0
    width = max([15, *(len(each.group_id) for each in groups)]) + 10

    def line(group: str, kind: str, state: str) -> str:
        shown = [f"{kind:<20}"] * with_type + [f"{state:<20}"] * with_state
        return " ".join([f"{group:<{width}}", *shown])

    print(line("GROUP", "TYPE", "STATE"))
    for each in groups:
        print(line(each.group_id, each.type.value, each.state.value))
    return 0


def _members(texts: Iterable[str], allowed: tuple[str, ...], what: str) -> set[str]:
    """The words of `--state stable,empty`, whatever their case."""
    known = {each.lower(): each for each in allowed}
    words = [word.strip() for text in texts for word in text.split(",") if word.strip()]
    if any(word.lower() not in known for word in words):
        raise UsageError(f"Invalid {what} list '{','.join(words)}'. Valid {what}s are: {', '.join(allowed)}")
    return {known[word.lower()] for word in words}


def _delete(admin: Admin, groups: list[str]) -> int:
    from penstock.base.errors import KafkaError

    failed: dict[str, str] = {}
    for group in groups:
        try:
            admin.delete_groups([group])
        except KafkaError as error:
            failed[group] = error.message.removeprefix(f"group {group}: ")
    done = [f"'{each}'" for each in groups if each not in failed]
    if not failed:
        print(f"Deletion of requested consumer groups ({', '.join(done)}) was successful.")
        return 0
    print("\nError: Deletion of some consumer groups failed:")
    for group, reason in failed.items():
        print(f"* Group '{group}' could not be deleted due to: {reason}")
    if done:
        print(f"\nThese consumer groups were deleted successfully: {', '.join(done)}")
    return 1


def _validate_regex(pattern: str) -> int:
    try:
        re.compile(pattern)
    except re.error as error:
        print(f"The regular expression `{pattern}` is invalid: {error}.")
        return 1
    print(f"The regular expression `{pattern}` is valid.")
    return 0


TOOL = Tool(
    name="kafka-consumer-groups",
    about=(
        "This tool helps to list all consumer groups, describe a consumer group, delete consumer group info, or reset "
        "consumer group offsets."
    ),
    failure_prefix="\nError: Executing consumer group command failed due to ",
    failures_on_stdout=True,
    run=_run,
    options=(
        BOOTSTRAP,
        COMMAND_CONFIG,
        ZOOKEEPER,
        flag("list", "List the groups."),
        flag("describe", "Show the offsets and the lag of groups."),
        flag("delete", "Delete groups, with their offsets."),
        flag("delete-offsets", "Delete offsets of a group."),
        flag("reset-offsets", "Set the offsets of groups that have no members."),
        Option("validate-regex", "Whether a regular expression is one.", metavar="pattern"),
        Option("group", "The group; repeatable.", metavar="group", repeatable=True),
        flag("all-groups", "All groups."),
        Option("topic", "A topic, or topic:0,1,2 for some partitions of it; repeatable.", metavar="topic",
               repeatable=True),
        flag("all-topics", "All topics of which the group has offsets."),
        flag("members", "With --describe: the members."),
        flag("offsets", "With --describe: the offsets, which is the default."),
        Option("state", "With --describe: the state; with --list: of all, or only groups of these states.",
               metavar="states", takes=Takes.MAYBE, repeatable=True),
        Option("type", "With --list: the types, or only groups of these types.", metavar="types", takes=Takes.MAYBE,
               repeatable=True),
        flag("verbose", "With --describe: more columns."),
        flag("dry-run", "Show what would be set and do nothing."),
        flag("execute", "Set the offsets."),
        flag("export", "Show the offsets as CSV, for --from-file."),
        Option("to-offset", "Reset to an offset.", metavar="offset"),
        Option("shift-by", "Reset by so many records forward, or back if negative.", metavar="number"),
        Option("to-datetime", "Reset to a time, as YYYY-MM-DDThh:mm:ss.sss (UTC without a zone).", metavar="time"),
        Option("by-duration", "Reset to so long ago, as PnDTnHnMnS.", metavar="duration"),
        flag("to-earliest", "Reset to the first records."),
        flag("to-latest", "Reset to the end."),
        flag("to-current", "Reset to what is committed."),
        Option("from-file", "Reset to the offsets of a CSV file.", metavar="file"),
        Option("timeout", "How long to wait for the group.", metavar="ms", default="30000"),
        flag("new-consumer", "Of older command lines; there is no other consumer."),
    ),
)  # fmt: skip


def main() -> NoReturn:
    run_tool(TOOL)


if __name__ == "__main__":
    main()
