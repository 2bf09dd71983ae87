"""How every `penstock` command finds its cluster: its common options, the environment and the profile file.

The later wins: localhost:9092; the profile `default` of the profile file; PENSTOCK_BOOTSTRAP_SERVER; the profile that
was named (`--profile`, PENSTOCK_PROFILE); `--command-config`; `-X key=value`; `-b`. A profile file is TOML, one table
for each profile, with Kafka's keys:

    [production]
    bootstrap.servers = "kafka1:9092,kafka2:9092"
    security.protocol = "SASL_SSL"
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from penstock.cli import parsing
from penstock.cli.connection import DEFAULT_TIMEOUT_S, SERVERS, Connection, read_properties
from penstock.cli.failures import Failed, fail, warn
from penstock.cli.reaching import SERVER_VARIABLE

F = TypeVar("F", bound=Callable[..., Any])

_OUTSIDE: Final = "outside-any-table"
_NAMES: Final = ("bootstrap_server", "command_config", "profile", "client_property", "timeout", "verbose")


def connection_options(function: F) -> F:
    """`-b`, `--command-config`, `--profile`, `-X`, `--timeout`, `--verbose`: together the parameter `connection`."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        given = {name: kwargs.pop(name) for name in _NAMES}
        return function(*args, connection=connection_from(given), **kwargs)

    options = (
        click.option("-b", "--bootstrap-server", metavar="HOST:PORT,...", help="Brokers to ask first."),
        click.option("--command-config", metavar="FILE", help="Properties file with settings of clients."),
        click.option("--profile", metavar="NAME", help=f"Settings of this name in {_shown(profile_file())}."),
        click.option(
            "-X", "client_property", multiple=True, metavar="KEY=VALUE", help="One setting of clients; repeatable."
        ),
        click.option(
            "--timeout",
            type=click.FloatRange(min=0.1),
            default=DEFAULT_TIMEOUT_S,
            show_default=True,
            metavar="SECONDS",
            help="How long the cluster may take to answer.",
        ),
        click.option("--verbose", is_flag=True, help="Show what the client does, on stderr."),
    )
    for option in reversed(options):
        wrapper = option(wrapper)
    return wrapper  # type: ignore[return-value]


def connection_from(given: Mapping[str, Any], environ: Mapping[str, str] | None = None) -> Connection:
    """The settings that options and environment mean together."""
    environ = os.environ if environ is None else environ
    name = given.get("profile") or environ.get("PENSTOCK_PROFILE")
    settings = _default_profile(is_needed=bool(name) or not given.get("bootstrap_server"))
    if server := environ.get(SERVER_VARIABLE):
        settings[SERVERS] = server
    if name:
        settings |= _profile(name, required=True)
    if file := given.get("command_config") or environ.get("PENSTOCK_COMMAND_CONFIG"):
        settings |= read_properties(Path(file))
    settings |= parsing.pairs(given.get("client_property") or (), "-X")
    if server := given.get("bootstrap_server"):
        settings[SERVERS] = server
    return Connection(
        settings=settings,
        timeout_s=given.get("timeout") or DEFAULT_TIMEOUT_S,
        verbose=bool(given.get("verbose")),
    )


# Profiles.


def profile_file() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(base) / "penstock" / "profiles.toml"


def _shown(file: Path) -> str:
    home = str(Path.home())
    return str(file).replace(home, "~", 1) if str(file).startswith(home) else str(file)


def _default_profile(*, is_needed: bool) -> dict[str, str]:
    """Nobody asked for it by name, so it is in nobody's way who says by hand where the cluster is."""
    try:
        return _profile("default", required=False)
    except Failed as error:
        if is_needed:
            raise
        warn(f"{error}; no profile is used")
        return {}


def _profile(name: str, *, required: bool) -> dict[str, str]:
    import tomllib

    file = profile_file()
    if not file.exists():
        if required:
            fail(f"there is no profile {name}: the file {file} does not exist")
        return {}
    try:
        text = file.read_text(encoding="utf-8")
        tables = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        fail(f"{file} is not valid TOML: {error}")
    # The dots of a key make tables too, so what stands above the first table is seen only below one of its own.
    for key, _ in _flat(tomllib.loads(f"[{_OUTSIDE}]\n{text}")[_OUTSIDE]):
        fail(f"{file}: {key} stands outside a table: write [default], or the name of a profile, above it")
    if name not in tables:
        if required:
            fail(f"there is no profile {name} in {file}: it has {', '.join(sorted(tables)) or 'none'}")
        return {}
    table = tables[name]
    if not isinstance(table, dict):
        fail(f"{file}: {name} is no table of settings: write [{name}], then key = value lines")
    return {key: _setting_text(file, name, key, value) for key, value in _flat(table)}


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """TOML reads dots in keys as nested tables; Kafka's keys are the paths through them."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _setting_text(file: Path, profile: str, key: str, value: Any) -> str:
    """Text goes to the client as it is. A number or a boolean is taken where the key is one, and only there."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return ",".join(value)
    if not isinstance(value, (bool, int, float)) or _is_text(key):
        shown = ",".join(map(str, value)) if isinstance(value, list) else value
        fail(f'{file}: {key} of profile {profile} has to be text: write it in quotes, such as {key} = "{shown}"')
    return str(value).lower() if isinstance(value, bool) else str(value)


def _is_text(key: str) -> bool:
    from penstock.base.config.declaration import ValueType
    from penstock.client.config import ClientKind, known_key

    texts = (ValueType.STRING, ValueType.LIST, ValueType.CLASS, ValueType.PASSWORD)
    return any(known is not None and known.type in texts for known in (known_key(kind, key) for kind in ClientKind))
