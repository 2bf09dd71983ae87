"""The configuration of a member, as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from penstock.client.config import ClientConfig, common_keys, consumer_keys
from penstock.client.consumer.group.timing import Intervals
from penstock.client.errors import InvalidState

_JOIN_GRACE_MS: Final = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    group_id: str
    instance_id: str | None
    rack: str | None
    session_timeout_ms: int
    rebalance_timeout_ms: int
    request_timeout_ms: int
    leaves_out_internal: bool
    intervals: Intervals

    @classmethod
    def of(cls, config: ClientConfig) -> GroupSettings:
        group_id = config[consumer_keys.GROUP_ID]
        if not group_id:
            raise InvalidState("To subscribe is to join a group: set group.id, or assign partitions.")
        session_ms, poll_ms = config[consumer_keys.SESSION_TIMEOUT_MS], config[consumer_keys.MAX_POLL_INTERVAL_MS]
        return cls(
            group_id=group_id,
            instance_id=config[consumer_keys.GROUP_INSTANCE_ID],
            rack=config[common_keys.CLIENT_RACK] or None,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=poll_ms,
            request_timeout_ms=config[common_keys.REQUEST_TIMEOUT_MS],
            leaves_out_internal=config[consumer_keys.EXCLUDE_INTERNAL_TOPICS],
            intervals=Intervals(
                heartbeat_s=config[consumer_keys.HEARTBEAT_INTERVAL_MS] / 1000,
                session_s=session_ms / 1000,
                poll_s=poll_ms / 1000,
                retry_s=config[common_keys.RETRY_BACKOFF_MS] / 1000,
            ),
        )

    @property
    def join_timeout_ms(self) -> int:
        """The coordinator answers when all members came, or their rebalance time is over."""
        return max(self.request_timeout_ms, self.rebalance_timeout_ms + _JOIN_GRACE_MS)
