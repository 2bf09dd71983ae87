"""Destructive commands ask first, unless they were told not to; where nobody can answer, they refuse."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from penstock.cli.failures import fail

F = TypeVar("F", bound=Callable[..., Any])


def yes_option(function: F) -> F:
    """`-y`/`--yes`, as the parameter `yes`."""
    return click.option("-y", "--yes", is_flag=True, help="Do it without asking.")(function)


def confirm(action: str, *, yes: bool) -> None:
    """`action` is what will happen, such as "delete topic orders (12 partitions)"; returns if it shall."""
    if yes:
        return
    if not sys.stdin.isatty():
        fail(f"will not {action} without a confirmation, and nobody is here to ask: add --yes")
    if not _asked(f"Really {action}?"):
        fail("nothing was changed")


def _asked(question: str) -> bool:
    """The answer; Ctrl-C ends the command as it does anywhere else, and the end of the input is a no."""
    try:
        return click.confirm(question, err=True)
    except click.Abort as abort:
        click.echo(err=True)
        if isinstance(abort.__context__, EOFError):
            return False
        raise KeyboardInterrupt from None
