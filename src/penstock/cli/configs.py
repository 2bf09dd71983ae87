"""`penstock configs`: describe, set, delete; of topics, brokers, groups, loggers and client metrics."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click

from penstock.cli import parsing
from penstock.cli.completion import complete_config_keys, complete_resources
from penstock.cli.connection import Connection
from penstock.cli.connection_options import connection_options
from penstock.cli.failures import fail, warn
from penstock.cli.nouns import HELP, Noun
from penstock.cli.output import Column, Output, Row, output_option

_KINDS = ("topic", "broker", "group", "broker-logger", "client-metrics")
_KIND = click.argument("kind", type=click.Choice(_KINDS))
_NAME = click.argument("name", shell_complete=complete_resources)


@click.group("configs", cls=Noun, context_settings=HELP)
def command() -> None:
    """Describe and change configurations.

    A thing is named by its kind and its name: `topic orders`, `broker 1`, `broker default` (of all brokers).
    """


def resource_of(kind: str, name: str) -> Any:
    """What Kafka calls the thing of this kind and name."""
    from penstock import ConfigResource, ConfigResourceType

    if kind in ("broker", "broker-logger") and name != "default" and not name.isdecimal():
        raise click.UsageError(f"{name!r} is no broker: brokers are named by their ids, and all of them by default")
    plain = "" if kind == "broker" and name == "default" else name
    return ConfigResource(ConfigResourceType[kind.upper().replace("-", "_")], plain)


@command.command()
@_KIND
@_NAME
@click.option(
    "-k", "--key", "keys", multiple=True, shell_complete=complete_config_keys(), help="Only this key; repeatable."
)
@click.option("--all", "everything", is_flag=True, help="Defaults too, not only what was set.")
@click.option("--docs", is_flag=True, help="What each key means, where the broker tells.")
@output_option
@connection_options
def describe(
    connection: Connection, output: Output, *, kind: str, name: str, keys: tuple[str, ...], everything: bool, docs: bool
) -> None:
    """Show the configuration of a thing, and where each value comes from."""
    resource = resource_of(kind, name)
    with connection.admin() as admin:
        found = admin.describe_configs([resource], keys=keys or None, include_documentation=docs)[resource]
    for key in keys:
        if key not in found:
            fail(f"{kind} {name} has no key {key}: `penstock configs describe {kind} {name} --all` shows them")
    rows = [_row(each, docs) for each in found.values() if everything or keys or each.source.name != "DEFAULT_CONFIG"]
    columns: list[Column | str] = [
        Column("key", style="bold"),
        "value",
        "source",
        "read_only",
        *(["documentation"] if docs else []),
    ]
    output.rows(rows, columns, empty="Nothing was set: --all shows the defaults.")


def _row(entry: Any, docs: bool) -> Row:
    return {
        "key": entry.name,
        "value": "(hidden)" if entry.is_sensitive else entry.value,
        "source": entry.source.name.lower().removesuffix("_config"),
        "read_only": entry.is_read_only,
        **({"documentation": entry.documentation} if docs else {}),
    }


@command.command("set")
@_KIND
@_NAME
@click.argument("pairs", nargs=-1, required=True, metavar="KEY=VALUE...", shell_complete=complete_config_keys("="))
@click.option("--append", is_flag=True, help="Add to lists instead of replacing them.")
@click.option("--subtract", is_flag=True, help="Take away from lists.")
@click.option("--dry-run", is_flag=True, help="Let the cluster check everything and change nothing.")
@output_option
@connection_options
def set_(
    connection: Connection,
    output: Output,
    *,
    kind: str,
    name: str,
    pairs: tuple[str, ...],
    append: bool,
    subtract: bool,
    dry_run: bool,
) -> None:
    """Set keys; the others stay as they are."""
    from penstock import AlterConfigKind, AlterConfigOp

    if append and subtract:
        raise click.UsageError("--append or --subtract, not both")
    step = AlterConfigKind.APPEND if append else AlterConfigKind.SUBTRACT if subtract else AlterConfigKind.SET
    values = parsing.pairs(pairs, "")
    steps = [AlterConfigOp(name=key, value=value, op=step) for key, value in values.items()]
    _alter(connection, resource_of(kind, name), steps, dry_run)
    if kind == "broker":
        _warn_of_unknown(values)
    rows = [
        {"kind": kind, "name": name, "key": key, "value": value, "applied": not dry_run}
        for key, value in values.items()
    ]
    output.changes(rows, lambda row: f"{_verb(row, 'set')} {row['key']}={row['value']} of {kind} {name}.")


@command.command()
@_KIND
@_NAME
@click.argument("keys", nargs=-1, required=True, shell_complete=complete_config_keys())
@click.option("--dry-run", is_flag=True, help="Let the cluster check everything and change nothing.")
@output_option
@connection_options
def delete(
    connection: Connection, output: Output, *, kind: str, name: str, keys: tuple[str, ...], dry_run: bool
) -> None:
    """Take values away, so that the defaults hold again."""
    from penstock import AlterConfigOp

    _alter(connection, resource_of(kind, name), [AlterConfigOp.delete(key) for key in keys], dry_run)
    rows = [{"kind": kind, "name": name, "key": key, "value": None, "applied": not dry_run} for key in keys]
    output.changes(rows, lambda row: f"{_verb(row, 'delete')} {row['key']} of {kind} {name}.")


def _alter(connection: Connection, resource: Any, steps: list[Any], dry_run: bool) -> None:
    with connection.admin() as admin:
        if resource.type.name == "TOPIC":
            admin.describe_topics([resource.name])
        admin.incremental_alter_configs({resource: steps}, validate_only=dry_run)


def _warn_of_unknown(names: Iterable[str]) -> None:
    """Brokers take any key of their own, since a plugin might want it; topics and groups refuse such by themselves."""
    from penstock.base.config.broker_keys import KEYS
    from penstock.base.config.resolving import known_key
    from penstock.base.config.retired import RETIRED
    from penstock.base.config.text import closest

    for name in names:
        if known_key(name) is None and name not in RETIRED:
            meant = closest(name, KEYS)
            hint = f"; did you mean {meant}?" if meant else ""
            warn(f"{name} is not a known key of brokers, which take any but heed only those they know{hint}")


def _verb(row: Row, verb: str) -> str:
    done = {"set": "Set", "delete": "Deleted"}[verb]
    return done if row["applied"] else f"Would {verb}"
