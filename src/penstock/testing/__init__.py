"""A real broker inside the test process, and faults on demand.

`EphemeralBroker` is a context manager for unittest, notebooks and anything else; `plugin.py` makes pytest fixtures of
it. The broker is the shipped one on the shipped storage: it runs in a thread with a loop of its own, on a free port,
and any client connects to it over TCP. Nothing here is imported by the product; faults enter through two seams the
product has anyway, the files port and the dispatch function that a session is given.

Names are loaded when they are first used, because pytest imports this package in every project that has Penstock
installed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.testing.broker import EphemeralBroker, EphemeralBrokerError
    from penstock.testing.faults import Faults
    from penstock.testing.rules import Fault

__all__ = ["EphemeralBroker", "EphemeralBrokerError", "Fault", "Faults"]

_HOMES = {
    "EphemeralBroker": "penstock.testing.broker",
    "EphemeralBrokerError": "penstock.testing.broker",
    "Fault": "penstock.testing.rules",
    "Faults": "penstock.testing.faults",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
