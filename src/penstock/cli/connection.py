"""The settings of a command's clients, and the clients made from them: for `penstock` and Kafka's tools alike.

One set of settings serves the three kinds of clients: each takes the keys it knows, and a key that none knows is told.
Where the settings come from is the business of `connection_options` and of `kafka.connecting`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from penstock.cli.failures import warn

if TYPE_CHECKING:
    from penstock import Admin, Consumer, Producer
    from penstock.client.config import ClientKind

DEFAULT_SERVER: Final = "localhost:9092"
DEFAULT_TIMEOUT_S: Final = 20.0
SERVERS: Final = "bootstrap.servers"
_REQUEST_TIMEOUT_MAX_MS: Final = 30_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """Settings by Kafka's keys, from which clients are made."""

    settings: Mapping[str, object]
    timeout_s: float = DEFAULT_TIMEOUT_S
    verbose: bool = False
    option: str = "-b"
    """How this command lets people say where the cluster is."""
    _seen: set[str] = field(default_factory=set)
    """Keys that were complained of, and "reached" once a broker was."""

    @property
    def servers(self) -> str:
        return str(self.settings.get(SERVERS, DEFAULT_SERVER))

    def admin(self, **overrides: object) -> Admin:
        from penstock.client.admin.blocking import Admin
        from penstock.client.config import ClientKind

        return Admin(self._for(ClientKind.ADMIN, overrides))

    def producer(self, **overrides: object) -> Producer:
        from penstock.client.config import ClientKind
        from penstock.client.producer.blocking import Producer

        return Producer(self._for(ClientKind.PRODUCER, overrides))

    def consumer(self, **overrides: object) -> Consumer:
        from penstock.client.config import ClientKind
        from penstock.client.consumer.blocking import Consumer

        return Consumer(self._for(ClientKind.CONSUMER, overrides))

    def _for(self, kind: ClientKind, overrides: Mapping[str, object]) -> dict[str, object]:
        """The keys that this kind of client knows; overrides are keywords (`group_id`) and win."""
        from penstock.client.config import known_key

        quiet_logs(self.verbose)
        self._warn_of_unknown_keys()
        servers = overrides.get("bootstrap_servers") or self.servers
        # What it took to see whether somebody is there counts: a person set a limit to all of it.
        timeout_ms = max(int(self.timeout_s * 1000) - self._check_reachable(str(servers)), 1)
        settings: dict[str, object] = {
            "client.id": "penstock-cli",
            "default.api.timeout.ms": timeout_ms,
            "max.block.ms": timeout_ms,
        }
        settings = {key: value for key, value in settings.items() if known_key(kind, key)}
        settings |= {key: value for key, value in self.settings.items() if known_key(kind, key)}
        settings |= {key.replace("_", "."): value for key, value in overrides.items() if value is not None}
        settings.setdefault(SERVERS, DEFAULT_SERVER)
        # A single request may not take longer than the whole call.
        settings.setdefault("request.timeout.ms", min(_REQUEST_TIMEOUT_MAX_MS, timeout_ms))
        return settings

    def _warn_of_unknown_keys(self) -> None:
        from penstock.base.config.text import closest
        from penstock.client.config import KEYS, ClientKind, known_key

        for name in sorted(set(self.settings) - self._seen):
            if not any(known_key(kind, name) for kind in ClientKind):
                self._seen.add(name)
                meant = closest(name, {key for known in KEYS.values() for key in known})
                hint = f"; did you mean {meant}?" if meant else ""
                warn(f"{name} is not a key of any client and is ignored{hint}")

    def _check_reachable(self, servers: str) -> int:
        """Asked once; gives the milliseconds that it took, in tenths of a second."""
        if "reached" in self._seen:
            return 0
        self._seen.add("reached")
        from penstock.cli.reaching import check_reachable

        protocol = str(self.settings.get("security.protocol", "PLAINTEXT"))
        started = time.monotonic()
        check_reachable(servers, security_protocol=protocol, timeout_s=self.timeout_s, option=self.option)
        return int((time.monotonic() - started) * 10) * 100


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


def read_properties(file: str | Path) -> dict[str, str]:
    """A Java properties file; what is wrong in it is told with its line."""
    from penstock.base.config.declaration import ConfigErrors
    from penstock.base.config.properties import decode_properties, parse_properties

    properties, problems = parse_properties(decode_properties(Path(file).read_bytes()), str(file))
    if problems:
        raise ConfigErrors(problems)
    return {each.key: each.value for each in properties}
