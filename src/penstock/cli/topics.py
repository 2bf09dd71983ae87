"""`penstock topics`: list, describe, create, alter, delete."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click

from penstock.cli import parsing
from penstock.cli.completion import complete_topics
from penstock.cli.confirm import confirm, yes_option
from penstock.cli.connection import Connection
from penstock.cli.connection_options import connection_options
from penstock.cli.nouns import HELP, Noun
from penstock.cli.output import Column, Output, Row, counted, output_option, show_count

_NAMES = click.argument("topics", nargs=-1, required=True, shell_complete=complete_topics)


@click.group("topics", cls=Noun, context_settings=HELP)
def command() -> None:
    """List, describe, create, alter and delete topics."""


@command.command("list")
@click.option("--internal", is_flag=True, help="Internal topics too, such as __consumer_offsets.")
@click.option("--names", is_flag=True, help="Only the names, one on each line.")
@output_option
@connection_options
def list_(connection: Connection, output: Output, *, internal: bool, names: bool) -> None:
    """Show all topics."""
    with connection.admin() as admin:
        listed = admin.list_topics(include_internal=internal)
        if names:
            for name in listed:
                click.echo(name)
            return
        described = admin.describe_topics(list(listed)) if listed else {}
    rows = [_listed(each) for each in described.values()]
    output.rows(
        rows,
        [Column("topic", style="bold"), "partitions", "replicas", "under_replicated", "internal"],
        empty="There are no topics: `penstock topics create NAME` makes one.",
    )


def _listed(topic: Any) -> Row:
    return {
        "topic": topic.name,
        "partitions": len(topic.partitions),
        "replicas": topic.replication_factor,
        "under_replicated": sum(each.is_under_replicated for each in topic.partitions),
        "internal": topic.is_internal,
    }


@command.command()
@_NAMES
@click.option("--all-configs", is_flag=True, help="Every key, not only those that were set.")
@output_option
@connection_options
def describe(connection: Connection, output: Output, *, topics: tuple[str, ...], all_configs: bool) -> None:
    """Show topics with their partitions, offsets and configuration."""
    from penstock import ConfigResource, OffsetSpec, TopicPartition

    with connection.admin() as admin:
        found = admin.describe_topics(list(dict.fromkeys(topics)))
        # A partition without a leader has no offsets to tell, and must not keep the others from being shown.
        led = [
            TopicPartition(topic.name, each.partition)
            for topic in found.values()
            for each in topic.partitions
            if each.leader is not None
        ]
        first = admin.list_offsets(dict.fromkeys(led, OffsetSpec.EARLIEST)) if led else {}
        last = admin.list_offsets(dict.fromkeys(led, OffsetSpec.LATEST)) if led else {}
        configs = admin.describe_configs([ConfigResource.topic(str(name)) for name in found])
    documents = []
    for topic in found.values():
        keys = configs[ConfigResource.topic(topic.name)].values()
        shown = {each.name: each.value for each in keys if all_configs or _is_set(each)}
        documents.append(_described(topic, first, last, shown))
    _show_described(output, documents)


def _is_set(entry: Any) -> bool:
    return bool(entry.source.name == "DYNAMIC_TOPIC_CONFIG")


def _described(topic: Any, first: Any, last: Any, configs: dict[str, str | None]) -> Row:
    from penstock import TopicPartition
    from penstock.base.types import uuid_to_text

    partitions = []
    for each in topic.partitions:
        tp = TopicPartition(topic.name, each.partition)
        start = first[tp].offset if tp in first else None
        end = last[tp].offset if tp in last else None
        partitions.append(
            {
                "partition": each.partition,
                "leader": each.leader,
                "replicas": list(each.replicas),
                "isr": list(each.isr),
                "offline": list(each.offline),
                "first_offset": start,
                "next_offset": end,
                "records_at_most": None if start is None or end is None else end - start,
            }
        )
    return {
        "topic": topic.name,
        "topic_id": uuid_to_text(topic.topic_id),
        "internal": topic.is_internal,
        "configs": configs,
        "partitions": partitions,
    }


def _show_described(output: Output, documents: list[Row]) -> None:
    columns: list[Column | str] = [
        "partition",
        "leader",
        "replicas",
        Column("isr", "in sync"),
        "offline",
        Column("first_offset", show=show_count),
        Column("next_offset", show=show_count),
        Column("records_at_most", "records (at most)", show_count),
    ]
    if not output.is_table:
        flat = [{"topic": each["topic"], **row} for each in documents for row in each["partitions"]]
        if output.format == "csv":
            output.rows(flat, ["topic", *columns])
        else:
            output.document(documents)
        return
    for number, each in enumerate(documents):
        if number:
            click.echo()
        configs = ", ".join(f"{key}={value}" for key, value in each["configs"].items())
        output.pairs({"topic": each["topic"], "id": each["topic_id"], "configs set": configs})
        click.echo()
        output.rows(each["partitions"], columns)


@command.command()
@click.argument("topics", nargs=-1, required=True)
@click.option("-p", "--partitions", type=click.IntRange(min=1), help="How many. Default: num.partitions of the broker.")
@click.option("-r", "--replication-factor", type=click.IntRange(min=1, max=32767), help="How many copies of each.")
@click.option("-c", "--config", "configs", multiple=True, metavar="KEY=VALUE", help="A setting; repeatable.")
@click.option("--assignment", metavar="0:1,1:0", help="Brokers of each partition, the preferred leader first.")
@click.option("--if-not-exists", is_flag=True, help="A topic that exists already is no error.")
@click.option("--dry-run", is_flag=True, help="Let the cluster check everything and create nothing.")
@output_option
@connection_options
def create(
    connection: Connection,
    output: Output,
    *,
    topics: tuple[str, ...],
    partitions: int | None,
    replication_factor: int | None,
    configs: tuple[str, ...],
    assignment: str | None,
    if_not_exists: bool,
    dry_run: bool,
) -> None:
    """Create topics."""
    from penstock import NewTopic

    values = parsing.pairs(configs, "--config")
    placed = _assignment(assignment)
    if placed is not None and (partitions or replication_factor):
        raise click.UsageError("--assignment says how many partitions and replicas there are: leave the numbers out")
    with connection.admin() as admin:
        names = list(dict.fromkeys(topics))
        if if_not_exists:
            existing = admin.list_topics(include_internal=True)
            names = [name for name in names if name not in existing]
        wanted = [
            NewTopic(
                name=name,
                num_partitions=partitions,
                replication_factor=replication_factor,
                assignments=placed,
                configs=values,
            )
            for name in names
        ]
        created = admin.create_topics(wanted, validate_only=dry_run) if wanted else {}
    rows = [_created(name, created.get(name), dry_run) for name in dict.fromkeys(topics)]
    output.changes(rows, _created_sentence)


def _assignment(text: str | None) -> dict[int, list[int]] | None:
    if text is None:
        return None
    try:
        return {number: [int(each) for each in brokers.split(":")] for number, brokers in enumerate(text.split(","))}
    except ValueError:
        raise click.UsageError(
            f"--assignment {text}: write the brokers of each partition with colons between them, such as 0:1,1:0"
        ) from None


def _created(name: str, created: Any, dry_run: bool) -> Row:
    if created is None:
        return {"topic": name, "result": "exists"}
    return {
        "topic": name,
        "result": "valid" if dry_run else "created",
        "partitions": created.num_partitions if created.num_partitions >= 0 else None,
        "replicas": created.replication_factor if created.replication_factor >= 0 else None,
    }


def _created_sentence(row: Row) -> str:
    if row["result"] == "exists":
        return f"Topic {row['topic']} exists already."
    verb = "Would create" if row["result"] == "valid" else "Created"
    numbers = ""
    if row["partitions"]:
        numbers = f": {counted(row['partitions'], 'partition')}, {counted(row['replicas'] or 0, 'replica')}"
    return f"{verb} topic {row['topic']}{numbers}."


@command.command()
@_NAMES
@click.option("-p", "--partitions", type=click.IntRange(min=1), help="How many it is to have in all; never fewer.")
@click.option("-c", "--config", "configs", multiple=True, metavar="KEY=VALUE", help="Set a key; repeatable.")
@click.option("--delete-config", multiple=True, metavar="KEY", help="Back to the default; repeatable.")
@click.option("--dry-run", is_flag=True, help="Let the cluster check everything and change nothing.")
@output_option
@connection_options
def alter(
    connection: Connection,
    output: Output,
    *,
    topics: tuple[str, ...],
    partitions: int | None,
    configs: tuple[str, ...],
    delete_config: tuple[str, ...],
    dry_run: bool,
) -> None:
    """Give topics more partitions, or change their configuration."""
    from penstock import ConfigResource

    changes: dict[str, str | None] = {**parsing.pairs(configs, "--config"), **dict.fromkeys(delete_config)}
    if partitions is None and not changes:
        raise click.UsageError("there is nothing to change: give --partitions, --config or --delete-config")
    names = list(dict.fromkeys(topics))
    with connection.admin() as admin:
        # Brokers take a configuration for a topic that they do not have as a riddle: the name is checked first.
        admin.describe_topics(names)
        if partitions is not None:
            admin.create_partitions(dict.fromkeys(names, partitions), validate_only=dry_run)
        if changes:
            admin.incremental_alter_configs(
                {ConfigResource.topic(name): changes for name in names}, validate_only=dry_run
            )
    rows = [
        {"topic": name, "result": "valid" if dry_run else "altered", **_asked(partitions, changes)} for name in names
    ]
    output.changes(rows, _altered_sentence)


def _asked(partitions: int | None, changes: dict[str, str | None]) -> Row:
    return {**({"partitions": partitions} if partitions else {}), **({"configs": changes} if changes else {})}


def _altered_sentence(row: Row) -> str:
    parts = [counted(row["partitions"], "partition")] if "partitions" in row else []
    for key, value in row.get("configs", {}).items():
        parts.append(f"{key} back to its default" if value is None else f"{key}={value}")
    verb = "Would alter" if row["result"] == "valid" else "Altered"
    return f"{verb} topic {row['topic']}: {', '.join(parts)}."


@command.command()
@_NAMES
@click.option("--if-exists", is_flag=True, help="A topic that does not exist is no error.")
@yes_option
@output_option
@connection_options
def delete(connection: Connection, output: Output, *, topics: tuple[str, ...], if_exists: bool, yes: bool) -> None:
    """Delete topics with all their records."""
    names = list(dict.fromkeys(topics))
    with connection.admin() as admin:
        existing = admin.list_topics(include_internal=True)
        chosen = [name for name in names if name in existing] if if_exists else names
        if chosen:
            if not if_exists:
                admin.describe_topics(chosen)
            confirm(f"delete {_named(chosen)} with all records", yes=yes)
            admin.delete_topics(chosen)
    rows = [{"topic": name, "result": "deleted" if name in chosen else "missing"} for name in names]
    output.changes(rows, _deleted_sentence)


def _named(names: Iterable[str]) -> str:
    found = list(names)
    return f"topic {found[0]}" if len(found) == 1 else f"{len(found)} topics ({', '.join(found)})"


def _deleted_sentence(row: Row) -> str:
    return f"Deleted topic {row['topic']}." if row["result"] == "deleted" else f"There is no topic {row['topic']}."
