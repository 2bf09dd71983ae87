"""`penstock transactions`: list, describe, find those that hang, and end them."""

from __future__ import annotations

from typing import Any

import click

from penstock.cli import parsing
from penstock.cli.confirm import confirm, yes_option
from penstock.cli.connection import Connection
from penstock.cli.connection_options import connection_options
from penstock.cli.nouns import HELP, Noun
from penstock.cli.output import Column, Output, Row, output_option, show_time

_IDS = click.argument("transactional_ids", nargs=-1, required=True)


@click.group("transactions", cls=Noun, context_settings=HELP)
def command() -> None:
    """List, describe and end transactions."""


@command.command("list")
@click.option("--state", "states", multiple=True, help="Only those in this state, such as ongoing; repeatable.")
@output_option
@connection_options
def list_(connection: Connection, output: Output, *, states: tuple[str, ...]) -> None:
    """Show the transactional ids of the cluster."""
    with connection.admin() as admin:
        found = admin.list_transactions(states=states)
    rows = [
        {
            "transactional_id": each.transactional_id,
            "state": each.state.value,
            "producer_id": each.producer_id,
            "coordinator": each.coordinator,
        }
        for each in found.values()
    ]
    columns: list[Column | str] = [Column("transactional_id", style="bold"), "state", "producer_id", "coordinator"]
    output.rows(rows, columns, empty="There are no transactional ids.")


@command.command()
@_IDS
@output_option
@connection_options
def describe(connection: Connection, output: Output, *, transactional_ids: tuple[str, ...]) -> None:
    """Show transactions with their partitions."""
    with connection.admin() as admin:
        found = admin.describe_transactions(list(dict.fromkeys(transactional_ids)))
    columns: list[Column | str] = [
        Column("transactional_id", style="bold"),
        "state",
        "producer_id",
        "producer_epoch",
        "coordinator",
        "timeout_ms",
        Column("started", show=show_time),
        "partitions",
    ]
    output.rows([_described(each) for each in found.values()], columns)


def _described(each: Any) -> Row:
    return {
        "transactional_id": each.transactional_id,
        "state": each.state.value,
        "producer_id": each.producer_id,
        "producer_epoch": each.producer_epoch,
        "coordinator": each.coordinator,
        "timeout_ms": each.timeout_ms,
        "started": each.start_time_ms,
        "partitions": [str(tp) for tp in sorted(each.partitions)],
    }


@command.command("find-hanging")
@click.option("-t", "--topic", help="Only partitions of this topic.")
@click.option(
    "--older-than",
    default="15m",
    show_default=True,
    metavar="DURATION",
    help="Only those that have written nothing for so long; no less than producers may take for a transaction.",
)
@output_option
@connection_options
def find_hanging(connection: Connection, output: Output, *, topic: str | None, older_than: str) -> None:
    """Show transactions that are open in a partition and that no coordinator knows any more."""
    limit_ms = int(parsing.duration_s(older_than) * 1000)
    with connection.admin() as admin:
        nodes = admin.describe_cluster().nodes if topic is None else ()
        places: list[dict[str, Any]] = [{"topic": topic}] if topic is not None else [{"broker": it.id} for it in nodes]
        found = [
            each
            for place in places
            for each in admin.find_hanging_transactions(**place, max_transaction_timeout_ms=limit_ms)
        ]
    rows = [
        {
            "topic": each.partition.topic,
            "partition": each.partition.partition,
            "producer_id": each.producer_id,
            "producer_epoch": each.producer_epoch,
            "start_offset": each.start_offset,
            "last_timestamp": each.last_timestamp,
            "duration_ms": each.duration_ms,
        }
        for each in found
    ]
    columns: list[Column | str] = [
        *("topic", "partition", "producer_id", "producer_epoch", "start_offset"),
        Column("last_timestamp", show=show_time),
        "duration_ms",
    ]
    output.rows(rows, columns, empty="No transaction hangs.")


@command.command()
@_IDS
@yes_option
@output_option
@connection_options
def fence(connection: Connection, output: Output, *, transactional_ids: tuple[str, ...], yes: bool) -> None:
    """Abort what is open under transactional ids; the producers that use them can write no more."""
    names = list(dict.fromkeys(transactional_ids))
    with connection.admin() as admin:
        admin.describe_transactions(names)
        confirm(f"abort the transactions of {', '.join(names)} and shut their producers out", yes=yes)
        admin.fence_producers(names)
    rows = [{"transactional_id": name, "result": "fenced"} for name in names]
    output.changes(rows, lambda row: f"Fenced {row['transactional_id']}.")


@command.command()
@click.argument("partition", metavar="TOPIC:PARTITION")
@click.option("--start-offset", type=click.IntRange(min=0), required=True, metavar="N", help="Where it begins.")
@yes_option
@output_option
@connection_options
def abort(connection: Connection, output: Output, *, partition: str, start_offset: int, yes: bool) -> None:
    """Abort one transaction in one partition, such as find-hanging shows: its records are never read as committed."""
    from penstock.client.admin import abort_of

    tp = parsing.partition(partition)
    with connection.admin() as admin:
        spec = abort_of(tp, admin.describe_producers([tp])[tp], start_offset)
        confirm(f"abort the transaction of producer {spec.producer_id} in {partition}", yes=yes)
        admin.abort_transaction(spec)
    row = {"topic": tp.topic, "partition": tp.partition, "producer_id": spec.producer_id, "result": "aborted"}
    output.changes([row], lambda row: f"Aborted the transaction of producer {row['producer_id']} in {partition}.")
