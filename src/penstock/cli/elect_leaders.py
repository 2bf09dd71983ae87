"""`penstock elect-leaders`: let the preferred replicas lead again."""

from __future__ import annotations

import click

from penstock.cli import parsing
from penstock.cli.completion import complete_partitions
from penstock.cli.confirm import confirm, yes_option
from penstock.cli.connection import Connection
from penstock.cli.connection_options import connection_options
from penstock.cli.nouns import HELP
from penstock.cli.output import Output, Row, output_option


@click.command("elect-leaders", context_settings=HELP)
@click.argument("partitions", nargs=-1, metavar="[TOPIC:PARTITION]...", shell_complete=complete_partitions())
@click.option("--all", "everything", is_flag=True, help="All partitions of the cluster.")
@click.option("--unclean", is_flag=True, help="Any live replica where none is in sync. Records may be lost.")
@yes_option
@output_option
@connection_options
def command(
    connection: Connection, output: Output, *, partitions: tuple[str, ...], everything: bool, unclean: bool, yes: bool
) -> None:
    """Let the preferred replicas lead again."""
    from penstock import ElectionType

    if bool(partitions) == everything:
        raise click.UsageError("say which partitions: TOPIC:PARTITION, or --all")
    wanted = None if everything else [parsing.partition(each) for each in partitions]
    if unclean:
        confirm("elect leaders that are not in sync, which may lose records,", yes=yes)
    kind = ElectionType.UNCLEAN if unclean else ElectionType.PREFERRED
    with connection.admin() as admin:
        found = admin.elect_leaders(kind, wanted)
    rows = [
        {"topic": tp.topic, "partition": tp.partition, "elected": each.was_needed} for tp, each in sorted(found.items())
    ]
    output.changes(rows, _sentence, columns=("topic", "partition", "elected"))
    if output.is_table and not rows:
        click.echo("No election was needed.")


def _sentence(row: Row) -> str:
    where = f"{row['topic']}:{row['partition']}"
    return f"Elected a leader of {where}." if row["elected"] else f"The right replica leads {where} already."
