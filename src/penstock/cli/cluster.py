"""`penstock cluster`: its brokers, the APIs they serve, its features."""

from __future__ import annotations

import click

from penstock.cli.connection import Connection
from penstock.cli.connection_options import connection_options
from penstock.cli.nouns import HELP, Noun
from penstock.cli.output import Column, Output, output_option


@click.group("cluster", cls=Noun, context_settings=HELP)
def command() -> None:
    """Describe the cluster, its brokers and what they serve."""


@command.command()
@output_option
@connection_options
def describe(connection: Connection, output: Output) -> None:
    """Show the cluster and its brokers."""
    with connection.admin() as admin:
        found = admin.describe_cluster()
        topics = admin.list_topics()
    controller = None if found.controller is None else found.controller.id
    brokers = [
        {
            "broker": each.id,
            "address": f"{each.host}:{each.port}",
            "rack": each.rack,
            "controller": each.id == controller,
        }
        for each in found.nodes
    ]
    columns: list[Column | str] = ["broker", Column("address", style="bold"), "rack", "controller"]
    if output.format == "csv":
        output.rows(brokers, columns)
    elif not output.is_table:
        output.document(
            {"cluster_id": found.cluster_id, "controller": controller, "topics": len(topics), "brokers": brokers}
        )
    else:
        output.pairs({"cluster id": found.cluster_id, "topics": len(topics)})
        click.echo()
        output.rows(brokers, columns)


@command.command()
@click.argument("broker", type=click.IntRange(min=0), required=False)
@output_option
@connection_options
def apis(connection: Connection, output: Output, *, broker: int | None) -> None:
    """Show the APIs that a broker serves, by default the first, and their versions."""
    with connection.admin() as admin:
        chosen = admin.describe_cluster().nodes[0].id if broker is None else broker
        found = admin.describe_api_versions(chosen)
    rows = [
        {"api": each.name, "key": each.key, "lowest": each.lowest, "highest": each.highest, "used": each.usable}
        for each in found.values()
    ]
    output.rows(rows, [Column("api", style="bold"), "key", "lowest", "highest", Column("used", "spoken here")])


@command.command()
@output_option
@connection_options
def features(connection: Connection, output: Output) -> None:
    """Show the features of the cluster and the levels in use."""
    with connection.admin() as admin:
        found = admin.describe_features()
    rows = []
    for name, each in found.supported.items():
        final = found.finalized.get(name)
        rows.append(
            {
                "feature": name,
                "lowest": each.lowest,
                "highest": each.highest,
                "in_use": None if final is None else final.highest,
            }
        )
    output.rows(rows, ["feature", "lowest", "highest", "in_use"], empty="The brokers tell of no features.")
