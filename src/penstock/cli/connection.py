"""How every command finds its cluster, and the settings of its clients.

The later wins: localhost:9092; the profile `default` of the profile file; PENSTOCK_BOOTSTRAP_SERVER; the profile that
was named (`--profile`, PENSTOCK_PROFILE); `--command-config`; `-X key=value`; `-b`. A profile file is TOML, one table
for each profile, with Kafka's keys:

    [production]
    bootstrap.servers = "kafka1:9092,kafka2:9092"
    security.protocol = "SASL_SSL"

One set of settings serves the three kinds of clients: each takes the keys it knows, and a key that none knows is told.
"""

from __future__ import annotations

import functools
import os
import socket
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from penstock.cli.failures import fail, warn

if TYPE_CHECKING:
    from penstock import Admin, Consumer, Producer
    from penstock.client.config import ClientKind

F = TypeVar("F", bound=Callable[..., Any])

DEFAULT_SERVER: Final = "localhost:9092"
DEFAULT_TIMEOUT_S: Final = 20.0
SERVER_VARIABLE: Final = "PENSTOCK_BOOTSTRAP_SERVER"
_PROBE_TIMEOUT_S: Final = 5.0
_KAFKA_ANSWERS_S: Final = 1.0
_HTTP_ANSWERS_S: Final = 1.0
_API_VERSIONS: Final = bytes.fromhex("00000016 0012 0000 00000000 000c") + b"penstock-cli"
"""The request that every broker answers: its size, API 18, version 0, correlation id 0, the client's id."""
_SERVERS: Final = "bootstrap.servers"
_NAMES: Final = ("bootstrap_server", "command_config", "profile", "client_property", "timeout", "verbose")


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """Settings by Kafka's keys, from which clients are made."""

    settings: Mapping[str, str]
    timeout_s: float = DEFAULT_TIMEOUT_S
    verbose: bool = False
    _seen: set[str] = field(default_factory=set)
    """Keys that were complained of, and "reached" once a broker was."""

    @property
    def servers(self) -> str:
        return self.settings.get(_SERVERS, DEFAULT_SERVER)

    def admin(self, **overrides: object) -> Admin:
        from penstock.client.admin.blocking import Admin
        from penstock.client.config import ClientKind

        settings = self._for(ClientKind.ADMIN, overrides)
        return Admin(settings)

    def producer(self, **overrides: object) -> Producer:
        from penstock.client.config import ClientKind
        from penstock.client.producer.blocking import Producer

        limit_ms = int(self.timeout_s * 1000)
        defaults = {"max.block.ms": limit_ms}
        return Producer(defaults | self._for(ClientKind.PRODUCER, overrides))

    def consumer(self, **overrides: object) -> Consumer:
        from penstock.client.config import ClientKind
        from penstock.client.consumer.blocking import Consumer

        return Consumer(self._for(ClientKind.CONSUMER, overrides))

    def _for(self, kind: ClientKind, overrides: Mapping[str, object]) -> dict[str, object]:
        """The keys that this kind of client knows; overrides are keywords (`group_id`) and win."""
        from penstock.client.config import KEYS
        from penstock.client.config.config import _ALIASES

        quiet_logs(self.verbose)
        known = {*KEYS[kind], *_ALIASES}
        anywhere = {name for keys in KEYS.values() for name in keys} | set(_ALIASES)
        for name in sorted(set(self.settings) - anywhere - self._seen):
            self._seen.add(name)
            warn(f"{name} is not a key of any client and is ignored")
        timeout_ms = int(self.timeout_s * 1000)
        settings: dict[str, object] = {"default.api.timeout.ms": timeout_ms, "client.id": "penstock-cli"}
        settings = {key: value for key, value in settings.items() if key in known}
        settings |= {key: value for key, value in self.settings.items() if key in known}
        settings |= {key.replace("_", "."): value for key, value in overrides.items() if value is not None}
        settings.setdefault(_SERVERS, DEFAULT_SERVER)
        # A single request may not take longer than the whole call.
        settings.setdefault("request.timeout.ms", min(30_000, timeout_ms))
        self._check_reachable(str(settings[_SERVERS]))
        return settings

    def _check_reachable(self, servers: str) -> None:
        """Clients try for as long as they may; a person wants to know at once that nobody listens there."""
        if "reached" in self._seen:
            return
        self._seen.add("reached")
        from penstock.base.config.rules import BadValueError
        from penstock.client.config.addresses import parse_addresses

        try:
            addresses = parse_addresses(part for part in servers.split(",") if part.strip())
        except BadValueError as error:
            fail(f"{error.value or servers} is no address of a broker: {error.reason} (-b, or bootstrap.servers)")
        reasons = []
        for address in addresses:
            reason = _unreachable(address.host, address.port, min(_PROBE_TIMEOUT_S, self.timeout_s))
            if reason is None:
                self._check_protocol(address.host, address.port)
                return
            reasons.append(f"{address.host}:{address.port} {reason}")
        fail(
            f"no broker can be reached: {'; '.join(reasons)}. "
            f"Start one (`penstock serve`), or say where it is with -b HOST:PORT or {SERVER_VARIABLE}"
        )

    def _check_protocol(self, host: str, port: int) -> None:
        if self.settings.get("security.protocol", "PLAINTEXT").upper() == "PLAINTEXT" and speaks_http(host, port):
            fail(
                f"{host}:{port} is a web server, not a Kafka broker: check the port given with -b or {SERVER_VARIABLE}"
            )


def speaks_http(host: str, port: int) -> bool:
    """Whether a web server listens there. Such a server waits for the end of a line that Kafka's clients never send."""
    try:
        with socket.create_connection((host, port), _PROBE_TIMEOUT_S) as probe:
            probe.sendall(_API_VERSIONS)
            for wait_s, last_words in ((_KAFKA_ANSWERS_S, b"\r\n\r\n"), (_HTTP_ANSWERS_S, b"")):
                probe.settimeout(wait_s)
                try:
                    # A request without a version, such as ours must seem, is answered by some with a bare page.
                    return probe.recv(5).startswith((b"HTTP/", b"<"))
                except TimeoutError:
                    probe.sendall(last_words)
    except OSError:
        pass
    return False


def _unreachable(host: str, port: int, timeout_s: float) -> str | None:
    try:
        socket.create_connection((host, port), timeout_s).close()
    except socket.gaierror:
        return "is not known: the host name does not resolve"
    except TimeoutError:
        return f"does not answer within {timeout_s:g} s"
    except OSError as error:
        return f"refuses: {(error.strerror or str(error)).lower()}"
    return None


def quiet_logs(verbose: bool) -> None:
    """What clients log is for programs; a command says what matters by itself, or shows all of it."""
    import logging

    logger = logging.getLogger("penstock")
    if verbose and not logger.handlers:
        logging.basicConfig(level=logging.DEBUG, format="%(asctime)s %(levelname)s %(name)s %(message)s")
        logging.getLogger("asyncio").setLevel(logging.INFO)
    if not verbose:
        logger.propagate = False
        logger.addHandler(logging.NullHandler())


# Options.


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
    settings = dict(_profile("default", required=False))
    if server := environ.get(SERVER_VARIABLE):
        settings[_SERVERS] = server
    if name := given.get("profile") or environ.get("PENSTOCK_PROFILE"):
        settings |= _profile(name, required=True)
    if file := given.get("command_config") or environ.get("PENSTOCK_COMMAND_CONFIG"):
        settings |= read_properties(Path(file))
    settings |= dict(_pairs(given.get("client_property") or ()))
    if server := given.get("bootstrap_server"):
        settings[_SERVERS] = server
    return Connection(
        settings=settings,
        timeout_s=given.get("timeout") or DEFAULT_TIMEOUT_S,
        verbose=bool(given.get("verbose")),
    )


def _pairs(values: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for value in values:
        key, separator, text = value.partition("=")
        if not separator or not key.strip():
            raise click.UsageError(f"-X {value}: not of the form KEY=VALUE")
        yield key.strip(), text.strip()


def read_properties(file: Path) -> dict[str, str]:
    """A Java properties file; what is wrong in it is told with its line."""
    from penstock.base.config.declaration import ConfigErrors
    from penstock.base.config.properties import parse_properties

    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        fail(f"{file} is no properties file: it is not text in UTF-8")
    properties, problems = parse_properties(text, str(file))
    if problems:
        raise ConfigErrors(problems)
    return {each.key: each.value for each in properties}


# Profiles.


def profile_file() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(base) / "penstock" / "profiles.toml"


def _shown(file: Path) -> str:
    home = str(Path.home())
    return str(file).replace(home, "~", 1) if str(file).startswith(home) else str(file)


def _profile(name: str, *, required: bool) -> dict[str, str]:
    import tomllib

    file = profile_file()
    if not file.exists():
        if required:
            fail(f"there is no profile {name}: the file {file} does not exist")
        return {}
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        fail(f"{file} is not valid TOML: {error}")
    if name not in tables:
        if required:
            fail(f"there is no profile {name} in {file}: it has {', '.join(sorted(tables)) or 'none'}")
        return {}
    table = tables[name]
    if not isinstance(table, dict):
        fail(f"{file}: {name} is no table of settings: write [{name}], then key = value lines")
    return dict(_flat(table))


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """TOML reads dots in keys as nested tables; Kafka's keys are the paths through them."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        elif isinstance(value, bool):
            yield prefix + key, str(value).lower()
        elif isinstance(value, list):
            yield prefix + key, ",".join(map(str, value))
        else:
            yield prefix + key, str(value)
