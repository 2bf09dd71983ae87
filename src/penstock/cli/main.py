"""Entry point of the `penstock` command."""

from __future__ import annotations

import importlib
from typing import Any

import click

import penstock

_COMMANDS = {
    "cluster": ("penstock.cli.cluster", "Describe the cluster, its brokers and what they serve."),
    "completion": ("penstock.cli.completion", "Print the completion script of a shell."),
    "configs": ("penstock.cli.configs", "Describe and change configurations."),
    "consume": ("penstock.cli.consume", "Read records of topics."),
    "elect-leaders": ("penstock.cli.elect_leaders", "Let the preferred replicas lead again."),
    "groups": ("penstock.cli.groups", "List, describe, reset and delete consumer groups."),
    "log": ("penstock.cli.log", "Look into the files of a broker's log."),
    "perf": ("penstock.cli.perf", "Measure how fast records are written and read."),
    "produce": ("penstock.cli.produce", "Write records to a topic."),
    "reassign": ("penstock.cli.reassign", "Move replicas of partitions to other brokers."),
    "records": ("penstock.cli.records", "Delete records from the start of partitions."),
    "serve": ("penstock.cli.serve", "Run a broker in the foreground."),
    "sql": ("penstock.cli.sql", "A shell for streaming SQL."),
    "sql-server": ("penstock.cli.sql_server", "Run a server for streaming SQL in the foreground."),
    "topics": ("penstock.cli.topics", "List, describe, create, alter and delete topics."),
    "transactions": ("penstock.cli.transactions", "List, describe and end transactions."),
    "up": ("penstock.cli.up", "Run a broker and a SQL server in the foreground, with one log."),
}


class LazyCommands(click.Group):
    """Commands by name, imported when they are used; the list of commands needs only this table."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, _ = _COMMANDS[cmd_name]
        command = importlib.import_module(module).command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and args[0] not in _COMMANDS and not args[0].startswith("-"):
            from penstock.base.config.text import closest

            meant = closest(args[0], _COMMANDS)
            hint = f" Did you mean {meant}?" if meant else ""
            ctx.fail(f"There is no command {args[0]!r}.{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, _COMMANDS[name][1]) for name in self.list_commands(ctx)])

    def invoke(self, ctx: click.Context) -> Any:
        from penstock.cli.failures import reported

        with reported():
            return super().invoke(ctx)


@click.group(cls=LazyCommands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(penstock.__version__, prog_name="penstock")
def main() -> None:
    """Penstock: a Kafka-compatible streaming platform for Python."""
