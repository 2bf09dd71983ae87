"""`penstock reassign`: move replicas to other brokers, see the moves under way, cancel them."""

from __future__ import annotations

import click

from penstock.cli import parsing
from penstock.cli.completion import complete_partitions
from penstock.cli.confirm import confirm, yes_option
from penstock.cli.connection import Connection
from penstock.cli.connection_options import connection_options
from penstock.cli.nouns import HELP, Noun
from penstock.cli.output import Output, counted, output_option


@click.group("reassign", cls=Noun, context_settings=HELP)
def command() -> None:
    """Move replicas of partitions to other brokers."""


@command.command()
@click.argument(
    "moves",
    nargs=-1,
    required=True,
    metavar="TOPIC:PARTITION=BROKER,BROKER...",
    shell_complete=complete_partitions("="),
)
@yes_option
@output_option
@connection_options
def move(connection: Connection, output: Output, *, moves: tuple[str, ...], yes: bool) -> None:
    """Say on which brokers partitions shall be, the preferred leader first."""
    wanted = {
        parsing.partition(name): parsing.numbers(brokers, "brokers")
        for name, brokers in parsing.pairs(moves, "").items()
    }
    with connection.admin() as admin:
        found = admin.describe_topics(sorted({tp.topic for tp in wanted}))
        confirm(f"move {counted(len(wanted), 'partition')}", yes=yes)
        admin.alter_partition_reassignments(dict(wanted))
    before = {
        (topic.name, each.partition): list(each.replicas) for topic in found.values() for each in topic.partitions
    }
    rows = [
        {"topic": tp.topic, "partition": tp.partition, "from": before.get((tp.topic, tp.partition)), "to": brokers}
        for tp, brokers in sorted(wanted.items())
    ]
    output.rows(rows, ["topic", "partition", "from", "to"])


@command.command("list")
@output_option
@connection_options
def list_(connection: Connection, output: Output) -> None:
    """Show the moves under way."""
    with connection.admin() as admin:
        found = admin.list_partition_reassignments()
    rows = [
        {
            "topic": tp.topic,
            "partition": tp.partition,
            "replicas": list(each.replicas),
            "adding": list(each.adding),
            "removing": list(each.removing),
        }
        for tp, each in sorted(found.items())
    ]
    output.rows(rows, ["topic", "partition", "replicas", "adding", "removing"], empty="Nothing is being moved.")


@command.command()
@click.argument(
    "partitions", nargs=-1, required=True, metavar="TOPIC:PARTITION...", shell_complete=complete_partitions()
)
@yes_option
@output_option
@connection_options
def cancel(connection: Connection, output: Output, *, partitions: tuple[str, ...], yes: bool) -> None:
    """Leave replicas where they were."""
    wanted = [parsing.partition(each) for each in partitions]
    with connection.admin() as admin:
        confirm(f"cancel the move of {', '.join(map(str, wanted))}", yes=yes)
        admin.alter_partition_reassignments(dict.fromkeys(wanted))
    rows = [{"topic": tp.topic, "partition": tp.partition, "result": "cancelled"} for tp in wanted]
    output.changes(rows, lambda row: f"Cancelled the move of {row['topic']}:{row['partition']}.")
