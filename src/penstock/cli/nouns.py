"""Nouns with several verbs: a click group whose help and errors look alike everywhere."""

from __future__ import annotations

import click

HELP = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class Noun(click.Group):
    """Verbs in the order in which they were declared."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        cmd.context_settings = {**HELP, **cmd.context_settings}
        super().add_command(cmd, name)
