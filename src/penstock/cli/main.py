"""Entry point of the `penstock` command."""

from __future__ import annotations

import importlib

import click

import penstock

_COMMANDS = {
    "serve": ("penstock.cli.serve", "Run a broker in the foreground."),
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

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, _COMMANDS[name][1]) for name in self.list_commands(ctx)])


@click.group(cls=LazyCommands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(penstock.__version__, prog_name="penstock")
def main() -> None:
    """Penstock: a Kafka-compatible streaming platform for Python."""
