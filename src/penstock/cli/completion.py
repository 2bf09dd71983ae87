"""Shell completion: the script for a shell, and live names of topics and groups.

A shell asks while somebody waits with a finger on the key, so a cluster that does not answer in `_LIMIT_S` completes
nothing, and no error is ever shown.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import click
from click.shell_completion import CompletionItem, get_completion_class

_LIMIT_S: Final = 1.5
_SHELLS: Final = ("bash", "zsh", "fish")

Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def complete_topics(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of topics of the cluster that the line so far means."""
    return _complete(ctx, param, incomplete, lambda admin: admin.list_topics(timeout_ms=_LIMIT_S * 1000))


def complete_groups(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of groups."""
    return _complete(ctx, param, incomplete, lambda admin: admin.list_groups(timeout_ms=_LIMIT_S * 1000))


def _complete(
    ctx: click.Context, param: click.Parameter, incomplete: str, ask: Callable[[Any], Any]
) -> list[CompletionItem]:
    from penstock.cli.connection_options import connection_from
    from penstock.cli.failures import EXPECTED

    given = {**ctx.params, "timeout": _LIMIT_S}
    try:
        with connection_from(given).admin() as admin:
            names = ask(admin)
    except (*EXPECTED, click.ClickException):
        return []
    already = ctx.params.get(param.name or "") or ()
    taken = set(already) if isinstance(already, (list, tuple)) else set()
    return [CompletionItem(name) for name in sorted(names) if name.startswith(incomplete) and name not in taken]


@click.command("completion", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("shell", type=click.Choice(_SHELLS))
def command(shell: str) -> None:
    """Print the completion script of a shell.

    Add it to your shell's start-up file, for example: eval "$(penstock completion bash)"
    """
    made = get_completion_class(shell)
    assert made is not None
    root = click.get_current_context().find_root().command
    click.echo(made(root, {}, "penstock", "_PENSTOCK_COMPLETE").source())
