"""How many connections a broker takes: in all, and from one address (`max.connections`, `max.connections.per.ip`).

One object counts for all listeners of a broker. The limits may be changed while it runs; connections that are over a
lowered limit stay.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

NO_LIMIT: Final = 2**31 - 1


class ConnectionQuotas:
    __slots__ = ("_by_address", "connections_max", "per_ip_max", "per_ip_overrides", "total")

    def __init__(
        self,
        *,
        connections_max: int = NO_LIMIT,
        per_ip_max: int = NO_LIMIT,
        per_ip_overrides: Mapping[str, int] | None = None,
    ) -> None:
        self.connections_max = connections_max
        self.per_ip_max = per_ip_max
        self.per_ip_overrides = dict(per_ip_overrides or {})
        self.total = 0
        self._by_address: Counter[str] = Counter()

    def admit(self, address: str) -> str | None:
        """Count one more connection, or say which limit forbids it."""
        if self.total >= self.connections_max:
            return f"max.connections={self.connections_max} is reached"
        limit = self.per_ip_overrides.get(address, self.per_ip_max)
        if self._by_address[address] >= limit:
            return f"max.connections.per.ip={limit} is reached for {address}"
        self.total += 1
        self._by_address[address] += 1
        return None

    def forget(self, address: str) -> None:
        self.total -= 1
        self._by_address[address] -= 1
        if not self._by_address[address]:
            del self._by_address[address]
