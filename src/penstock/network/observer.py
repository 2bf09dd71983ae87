"""What a pool tells whoever measures it. Every method does nothing here: override those that are wanted.

They are called inside the work they describe, once per request or connection, so they count and return; one that
raises breaks that work.
"""

from __future__ import annotations

from penstock.network.errors import NetworkError


class NetworkObserver:
    """`node` is the channel's name, such as `node 2`."""

    def connected(self, node: str, seconds: float) -> None:
        """A connection is ready; the handshake took so long."""

    def connect_failed(self, node: str, error: NetworkError) -> None: ...

    def closed(self, node: str, reason: NetworkError) -> None:
        """A connection that had been ready is over."""

    def authenticated_again(self, node: str, seconds: float) -> None:
        """A session was prolonged (KIP-368)."""

    def sent(self, node: str, api_key: int, size: int) -> None: ...

    def answered(self, node: str, api_key: int, seconds: float, size: int) -> None: ...

    def throttled(self, node: str, throttle_time_ms: int) -> None:
        """The broker asked for a pause, which is kept."""
