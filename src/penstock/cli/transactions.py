"""`penstock transactions`: list, describe, find those that hang, and end them."""

from __future__ import annotations

from typing import Any

import click

from penstock.cli.confirm import confirm, yes_option
from penstock.cli.connection import Connection, connection_options
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
@output_option
@connection_options
def find_hanging(connection: Connection, output: Output, *, topic: str | None) -> None:
    """Show transactions that are open in a partition and that no coordinator knows any more."""
    with connection.admin() as admin:
        if topic is not None:
            found = list(admin.find_hanging_transactions(topic=topic))
        else:
            nodes = admin.describe_cluster().nodes
            found = [each for node in nodes for each in admin.find_hanging_transactions(broker=node.id)]
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
