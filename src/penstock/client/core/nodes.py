"""Which node to ask, and where it is.

Four kinds of node ids go to the connection pool: brokers by their own ids (0 and up), the servers of
`bootstrap.servers` by negative ones (their ids are not known yet), and two kinds for second connections to a broker,
because whatever is sent behind a long poll waits for it. Coordinators of groups have ids near the largest integer: a
consumer's heartbeats and commits have a connection of their own. `aside_node_id` is for short questions while a fetch
waits at the broker; such a connection is made only then, and closed when it was idle for long, as any other.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Sequence
from typing import Final, Protocol

from penstock.client.core.types import ClusterSnapshot
from penstock.network.address import Address

_COORDINATOR_BASE: Final = 2**31 - 1
_ASIDE_BASE: Final = 2**32


def coordinator_node_id(node_id: int) -> int:
    return _COORDINATOR_BASE - node_id


def aside_node_id(node_id: int) -> int:
    return _ASIDE_BASE + node_id


def broker_id(node_id: int) -> int:
    """The broker's own id behind a pool's id (negative for a bootstrap server)."""
    if node_id >= _ASIDE_BASE:
        return node_id - _ASIDE_BASE
    return _COORDINATOR_BASE - node_id if node_id > _COORDINATOR_BASE // 2 else node_id


class Loads(Protocol):
    """What is known of the ways to nodes; a node never talked to is idle and not blocked."""

    def load(self, node_id: int) -> int: ...

    def is_blocked(self, node_id: int) -> bool: ...

    def is_connected(self, node_id: int) -> bool: ...


class Nodes:
    """Addresses by node id, and the order in which to ask when any node will do."""

    def __init__(
        self, bootstrap: Sequence[Address], snapshot: Callable[[], ClusterSnapshot], rng: random.Random
    ) -> None:
        self._bootstrap = {-1 - index: address for index, address in enumerate(bootstrap)}
        self._snapshot = snapshot
        self._rng = rng
        self._told: dict[int, Address] = {}
        """Of brokers that were named by another answer than metadata."""
        self._use_bootstrap = False

    @property
    def bootstrap_ids(self) -> tuple[int, ...]:
        return tuple(self._bootstrap)

    def address(self, node_id: int) -> Address | None:
        if node_id < 0:
            return self._bootstrap.get(node_id)
        wanted = broker_id(node_id)
        node = self._snapshot().nodes.get(wanted)
        return Address(node.host, node.port) if node is not None else self._told.get(wanted)

    def told(self, node_id: int, host: str, port: int) -> None:
        """Remember an address that metadata may not have yet."""
        self._told[node_id] = Address(host, port)

    def rebootstrap(self) -> None:
        """Ask the bootstrap servers until there is new metadata (KIP-899)."""
        self._use_bootstrap = True

    def learned(self) -> None:
        """There is new metadata."""
        self._use_bootstrap = False
        self._told.clear()

    @property
    def is_bootstrapping(self) -> bool:
        return self._use_bootstrap or not self._snapshot().nodes

    def candidates(self) -> tuple[int, ...]:
        return self.bootstrap_ids if self.is_bootstrapping else tuple(self._snapshot().nodes)

    def by_load(self, loads: Loads, *, without: Collection[int] = ()) -> list[int]:
        """Nodes to ask, the best first: connected with little to do, then not connected; never a blocked one."""
        nodes = [each for each in self.candidates() if each not in without and not loads.is_blocked(each)]
        self._rng.shuffle(nodes)
        nodes.sort(key=lambda each: (not loads.is_connected(each), loads.load(each)))
        return nodes
