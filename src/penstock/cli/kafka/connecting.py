"""The clients of a tool, from the options that all tools have.

Settings come from the properties file (`--command-config` and its older names), then from `key=value` options, then
from the address; the later wins, as with Kafka's tools.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from penstock.cli.connection import SERVERS, Connection, read_properties
from penstock.cli.kafka.parsing import Parsed, UsageError
from penstock.cli.reaching import SERVER_VARIABLE

if TYPE_CHECKING:
    from penstock.client.admin import Admin

NO_ADDRESS: Final = "--bootstrap-server must be specified"
_TIMEOUT_S: Final = 60.0
"""How long Kafka's clients let a call take."""


def settings(
    options: Parsed, *, files: Iterable[str] = ("command-config",), overrides: Mapping[str, str] | None = None
) -> dict[str, object]:
    """The settings of a client, with its `bootstrap.servers`."""
    found: dict[str, object] = {}
    for name in files:
        if options.has(name):
            found |= read_properties(options.text(name))
    found |= overrides or {}
    address = _address(options, found)
    if address is not None:
        found[SERVERS] = address
    if SERVERS not in found:
        raise UsageError(NO_ADDRESS)
    return found


def _address(options: Parsed, found: Mapping[str, object]) -> str | None:
    if options.has("bootstrap-server"):
        return options.text("bootstrap-server")
    if "zookeeper" in options.known and options.has("zookeeper"):
        from penstock.cli.kafka.zookeeper import find_brokers

        return find_brokers(options.text("zookeeper"), str(found.get("security.protocol", "PLAINTEXT")))
    if ":" in (listed := options.get("broker-list") or "" if "broker-list" in options.known else ""):
        # An older name of --bootstrap-server; other tools take ids of brokers by this option.
        return listed
    return None if SERVERS in found else os.environ.get(SERVER_VARIABLE) or None


def connect(found: Mapping[str, object]) -> Connection:
    """What makes clients of these settings."""
    return Connection(settings=found, timeout_s=_TIMEOUT_S, option="--bootstrap-server")


def open_admin(options: Parsed, *, files: Iterable[str] = ("command-config",)) -> Admin:
    """The administration client. Use `with`."""
    return connect(settings(options, files=files)).admin()
