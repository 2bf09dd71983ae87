"""`penstock groups`: list, describe with lag, reset offsets, delete."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from penstock.base.types import TopicPartition
from penstock.cli import parsing
from penstock.cli.completion import complete_groups, complete_topics
from penstock.cli.confirm import confirm, yes_option
from penstock.cli.connection import Connection
from penstock.cli.connection_options import connection_options
from penstock.cli.failures import fail
from penstock.cli.nouns import HELP, Noun
from penstock.cli.output import Column, Output, Row, counted, output_option, show_count

_GROUPS = click.argument("groups", nargs=-1, required=True, shell_complete=complete_groups)


@click.group("groups", cls=Noun, context_settings=HELP)
def command() -> None:
    """List, describe, reset and delete consumer groups."""


@command.command("list")
@click.option("--state", "states", multiple=True, help="Only groups in this state, such as stable; repeatable.")
@output_option
@connection_options
def list_(connection: Connection, output: Output, *, states: tuple[str, ...]) -> None:
    """Show all groups."""
    with connection.admin() as admin:
        found = admin.list_groups(states=states)
    rows = [
        {"group": each.group_id, "state": each.state.value, "type": each.type.value, "protocol": each.protocol_type}
        for each in found.values()
    ]
    output.rows(rows, [Column("group", style="bold"), "state", "type", "protocol"], empty="There are no groups.")


@command.command()
@_GROUPS
@output_option
@connection_options
def describe(connection: Connection, output: Output, *, groups: tuple[str, ...]) -> None:
    """Show groups with their members, offsets and lag."""
    names = list(dict.fromkeys(groups))
    with connection.admin() as admin:
        found = admin.describe_groups(names)
        committed = admin.list_group_offsets(names)
        partitions = {tp for each in committed.values() for tp in each}
        partitions |= {tp for each in found.values() for member in each.members for tp in member.assignment}
        ends = _ends(admin, partitions)
    documents = [_described(each, committed[each.group_id], ends) for each in found.values()]
    columns: list[Column | str] = [
        "topic",
        "partition",
        Column("offset", show=show_count),
        Column("end", show=show_count),
        Column("lag", show=show_count, style="bold"),
        "member",
        "client",
        "host",
    ]
    if output.format == "csv":
        output.rows(
            [{"group": each["group"], **row} for each in documents for row in each["partitions"]], ["group", *columns]
        )
    elif not output.is_table:
        output.document(documents)
    else:
        for number, each in enumerate(documents):
            if number:
                click.echo()
            head = ("group", "state", "type", "assignor", "coordinator", "lag")
            output.pairs({key: each[key] for key in head} | {"members": len(each["members"])})
            click.echo()
            output.rows(each["partitions"], columns, empty="The group has no offsets and reads nothing.")


def _ends(admin: Any, partitions: set[TopicPartition]) -> dict[TopicPartition, int]:
    """The ends of partitions; those of topics that are gone are left out."""
    from penstock import AdminErrors, KafkaError, OffsetSpec

    if not partitions:
        return {}
    existing = admin.list_topics(include_internal=True)
    wanted = {tp: OffsetSpec.LATEST for tp in partitions if tp.topic in existing}
    if not wanted:
        return {}
    try:
        listed = admin.list_offsets(wanted)
    except AdminErrors as errors:
        listed = errors.successes
    except KafkaError:
        listed = {}
    return {tp: each.offset for tp, each in listed.items()}


def _described(group: Any, committed: Mapping[TopicPartition, Any], ends: Mapping[TopicPartition, int]) -> Row:
    owners = {tp: member for member in group.members for tp in member.assignment}
    rows = []
    for tp in sorted({*committed, *owners}):
        offset = committed[tp].offset if committed.get(tp) is not None else None
        owner, end = owners.get(tp), ends.get(tp)
        rows.append(
            {
                "topic": tp.topic,
                "partition": tp.partition,
                "offset": offset,
                "end": end,
                "lag": None if offset is None or end is None else max(end - offset, 0),
                "member": None if owner is None else owner.member_id,
                "client": None if owner is None else owner.client_id,
                "host": None if owner is None else owner.host,
            }
        )
    return {
        "group": group.group_id,
        "state": group.state.value,
        "type": group.type.value,
        "assignor": group.assignor,
        "coordinator": f"{group.coordinator.host}:{group.coordinator.port}",
        "lag": sum(row["lag"] or 0 for row in rows),
        "members": [
            {
                "member": each.member_id,
                "instance": each.group_instance_id,
                "client": each.client_id,
                "host": each.host,
                "partitions": [str(tp) for tp in each.assignment],
            }
            for each in group.members
        ],
        "partitions": rows,
    }


@command.command("reset-offsets")
@click.argument("group", shell_complete=complete_groups)
@click.option(
    "-t",
    "--topic",
    "topics",
    multiple=True,
    metavar="TOPIC[:0,1]",
    shell_complete=complete_topics,
    help="What to reset; repeatable.",
)
@click.option("--all-topics", is_flag=True, help="Everything that the group has offsets of.")
@click.option("--to-earliest", is_flag=True, help="To the first record.")
@click.option("--to-latest", is_flag=True, help="Behind the last record.")
@click.option("--to-current", is_flag=True, help="To what is committed now.")
@click.option("--to-offset", type=click.IntRange(min=0), metavar="N")
@click.option("--to-time", metavar="TIME", help="To the first record of this time: 2026-11-16T22:00:00Z, ms, -15m.")
@click.option("--shift-by", type=int, metavar="N", help="N records on, or back if negative.")
@click.option("--execute", is_flag=True, help="Do it. Without this, only what would happen is shown.")
@output_option
@connection_options
def reset_offsets(
    connection: Connection,
    output: Output,
    *,
    group: str,
    topics: tuple[str, ...],
    all_topics: bool,
    execute: bool,
    **targets: Any,
) -> None:
    """Change the offsets at which a group goes on. It must have no members."""
    target = _target(targets)
    if bool(topics) == all_topics:
        raise click.UsageError("say what to reset: --topic TOPIC, or --all-topics")
    with connection.admin() as admin:
        if group not in admin.list_groups() and all_topics:
            fail(f"group {group}: there is no such group (`penstock groups list` shows the groups)")
        committed = admin.list_group_offsets([group])[group]
        chosen = sorted(committed) if all_topics else _partitions(admin, topics)
        if not chosen:
            fail(f"group {group} has no offsets: name topics with --topic")
        wanted = _wanted(admin, chosen, committed, *target)
        if execute:
            _check_empty(admin, group)
            admin.alter_group_offsets(group, wanted)
    rows = [
        {
            "topic": tp.topic,
            "partition": tp.partition,
            "old_offset": None if (known := committed.get(tp)) is None else known.offset,
            "new_offset": wanted[tp],
        }
        for tp in chosen
    ]
    output.rows(
        rows, ["topic", "partition", Column("old_offset", show=show_count), Column("new_offset", show=show_count)]
    )
    if not execute:
        click.echo("Nothing was changed: add --execute to do it.", err=True)


def _target(targets: Mapping[str, Any]) -> tuple[str, Any]:
    given = [(name, value) for name, value in targets.items() if value not in (None, False)]
    if len(given) != 1:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in targets)
        raise click.UsageError(f"say one place to go on at: {options}")
    return given[0]


def _partitions(admin: Any, topics: tuple[str, ...]) -> list[TopicPartition]:
    numbers: dict[str, list[int] | None] = {}
    for text in topics:
        name, separator, listed = text.partition(":")
        numbers[name] = parsing.numbers(listed, "partitions") if separator else None
    chosen: list[TopicPartition] = []
    for topic in admin.describe_topics(list(numbers)).values():
        existing = [each.partition for each in topic.partitions]
        for number in numbers[topic.name] or existing:
            if number not in existing:
                fail(f"topic {topic.name} has no partition {number}: it has {len(existing)}, from 0")
            chosen.append(TopicPartition(topic.name, number))
    return sorted(chosen)


def _check_empty(admin: Any, group: str) -> None:
    from penstock import ErrorCode, KafkaError

    try:
        described = admin.describe_groups([group])[group]
    except KafkaError as error:
        if error.code is ErrorCode.GROUP_ID_NOT_FOUND:
            return
        raise
    if described.members:
        members = counted(len(described.members), "member")
        fail(f"group {group} has {members}: stop what reads with it, then reset its offsets")


def _wanted(
    admin: Any, chosen: list[TopicPartition], committed: Mapping[TopicPartition, Any], kind: str, value: Any
) -> dict[TopicPartition, int]:
    """New offsets, each within its partition's log."""
    from penstock import OffsetSpec

    def offsets(spec: OffsetSpec) -> dict[TopicPartition, int]:
        return {tp: each.offset for tp, each in admin.list_offsets(dict.fromkeys(chosen, spec)).items()}

    first, last = offsets(OffsetSpec.EARLIEST), offsets(OffsetSpec.LATEST)
    if kind == "to_earliest":
        return first
    if kind == "to_latest":
        return last
    if kind == "to_time":
        found = offsets(OffsetSpec.at(parsing.timestamp_ms(value, parsing.now())))
        return {tp: offset if offset >= 0 else last[tp] for tp, offset in found.items()}
    wanted = {}
    for tp in chosen:
        if kind == "to_offset":
            offset = value
        elif committed.get(tp) is None:
            fail(f"the group has no offset of {tp}: say where to go with --to-earliest, --to-latest or --to-offset")
        else:
            offset = committed[tp].offset + (value if kind == "shift_by" else 0)
        wanted[tp] = min(max(offset, first[tp]), last[tp])
    return wanted


@command.command()
@_GROUPS
@yes_option
@output_option
@connection_options
def delete(connection: Connection, output: Output, *, groups: tuple[str, ...], yes: bool) -> None:
    """Delete groups with their offsets. They must have no members."""
    names = list(dict.fromkeys(groups))
    with connection.admin() as admin:
        admin.describe_groups(names)
        confirm(f"delete group {', '.join(names)} with all committed offsets", yes=yes)
        admin.delete_groups(names)
    output.changes(
        [{"group": name, "result": "deleted"} for name in names], lambda row: f"Deleted group {row['group']}."
    )
