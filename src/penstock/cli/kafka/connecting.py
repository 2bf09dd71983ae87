"""The clients of a tool, from the options that all tools have.

Settings come from the properties file (`--command-config` and its older names), then from `key=value` options, then
from the address; the later wins, as with Kafka's tools.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli.kafka.parsing import Parsed, UsageError
from penstock.cli.kafka.tool import ToolFailed

if TYPE_CHECKING:
    from penstock.client.admin import Admin

NO_ADDRESS = "--bootstrap-server must be specified"


def read_properties(path: str) -> dict[str, str]:
    """A properties file; every problem in it is told with file and line."""
    from penstock.base.config.properties import parse_properties

    try:
        text = Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ToolFailed(f"{path} is not a text file: a properties file has lines of the form key=value") from None
    properties, problems = parse_properties(text, path)
    if problems:
        raise ToolFailed("; ".join(f"{each.origin}: {each.key}: {each.reason}" for each in problems))
    return {each.key: each.value for each in properties}


def settings(
    options: Parsed,
    *,
    files: Iterable[str] = ("command-config",),
    overrides: Mapping[str, str] | None = None,
    address_required: bool = True,
) -> dict[str, object]:
    """The settings of a client, with its `bootstrap.servers`."""
    found: dict[str, object] = {}
    for name in files:
        if options.has(name):
            found |= read_properties(options.text(name))
    found |= overrides or {}
    address = _address(options, found)
    if address is not None:
        found["bootstrap.servers"] = address
    if "bootstrap.servers" not in found and address_required:
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
    return os.environ.get("PENSTOCK_BOOTSTRAP_SERVER") or None


def open_admin(
    options: Parsed, *, files: Iterable[str] = ("command-config",), overrides: Mapping[str, str] | None = None
) -> Admin:
    """The administration client. Use `with`."""
    chosen = settings(options, files=files, overrides=overrides)
    from penstock.client.admin import Admin

    return Admin(chosen)
