"""Shell completion: the script for a shell, and live names of topics, partitions, groups and configuration keys.

A shell asks while somebody waits with a finger on the key, so a cluster that does not answer in `_LIMIT_S` completes
nothing, and no error is ever shown.
"""

from __future__ import annotations

import contextlib
import io
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


def complete_partitions(tail: str = "") -> Complete:
    """`topic:0` of each partition; `tail` is what has to follow it."""

    def ask(admin: Any) -> list[str]:
        names = admin.list_topics(timeout_ms=_LIMIT_S * 1000)
        found = admin.describe_topics(list(names), timeout_ms=_LIMIT_S * 1000) if names else {}
        return [f"{topic.name}:{each.partition}{tail}" for topic in found.values() for each in topic.partitions]

    return lambda ctx, param, incomplete: _complete(ctx, param, incomplete, ask)


def complete_resources(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of what a configuration is of; the kind stands before on the line."""

    def ask(admin: Any) -> list[str]:
        kind = ctx.params.get("kind")
        if kind == "topic":
            return list(admin.list_topics(timeout_ms=_LIMIT_S * 1000))
        if kind == "group":
            return list(admin.list_groups(timeout_ms=_LIMIT_S * 1000))
        if kind in ("broker", "broker-logger"):
            ids = [str(each.id) for each in admin.describe_cluster(timeout_ms=_LIMIT_S * 1000).nodes]
            return [*ids, "default"] if kind == "broker" else ids
        return []

    return _complete(ctx, param, incomplete, ask)


def complete_config_keys(tail: str = "") -> Complete:
    """Keys of the thing that the line names by kind and name; `tail` is what has to follow them."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        def ask(admin: Any) -> list[str]:
            from penstock.cli.configs import resource_of

            kind, name = ctx.params["kind"], ctx.params["name"]
            if kind == "broker" and name == "default":
                # What all brokers share is listed only once it is set; the keys are those of any of them.
                name = str(admin.describe_cluster(timeout_ms=_LIMIT_S * 1000).nodes[0].id)
            resource = resource_of(kind, name)
            found = admin.describe_configs([resource], timeout_ms=_LIMIT_S * 1000)[resource]
            return [f"{each}{tail}" for each in found]

        return _complete(ctx, param, incomplete, ask)

    return complete


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
        # A warning would end up in the middle of the line.
        with contextlib.redirect_stderr(io.StringIO()), connection_from(given).admin() as admin:
            names = ask(admin)
    except (*EXPECTED, click.ClickException):
        return []
    already = ctx.params.get(param.name or "") or ()
    taken = {_key(each) for each in already} if isinstance(already, (list, tuple)) else set()
    return [CompletionItem(name) for name in sorted(names) if name.startswith(incomplete) and _key(name) not in taken]


def _key(word: str) -> str:
    """What a word is about: `retention.ms=1` and `retention.ms=` are the same."""
    return word.partition("=")[0]


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
