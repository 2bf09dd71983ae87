"""The one quota step: every request is charged here, and told how long its client should be held back."""

from __future__ import annotations

from typing import Protocol


class Quotas(Protocol):
    def charge(self, principal: str, client_id: str | None, api_key: int, request_bytes: int) -> int:
        """Milliseconds to throttle; 0 when the client is within its quota."""


class Unlimited:
    """No quota is set, so nobody waits."""

    def charge(self, principal: str, client_id: str | None, api_key: int, request_bytes: int) -> int:
        return 0
