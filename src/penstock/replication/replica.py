"""What a leader knows of one follower, learnt from the follower's fetches."""

from __future__ import annotations

UNKNOWN = -1


class Replica:
    """A follower is caught up when it has asked for the leader's end, as it was at that fetch or the one before."""

    __slots__ = (
        "broker_epoch",
        "broker_id",
        "last_caught_up_ms",
        "last_fetch_leader_end",
        "last_fetch_ms",
        "log_end_offset",
        "log_start_offset",
    )

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self.broker_epoch = UNKNOWN
        self.log_end_offset = UNKNOWN
        self.log_start_offset = UNKNOWN
        self.last_caught_up_ms = 0
        self.last_fetch_ms = 0
        self.last_fetch_leader_end = 0

    def reset(self, *, now_ms: int, in_sync: bool) -> None:
        """Under a new leader epoch nothing is known; a member of the ISR gets the whole lag time to be heard of."""
        self.log_end_offset = UNKNOWN
        self.log_start_offset = UNKNOWN
        self.last_caught_up_ms = now_ms if in_sync else 0
        self.last_fetch_ms = 0
        self.last_fetch_leader_end = UNKNOWN
        self.broker_epoch = UNKNOWN

    def fetched(self, offset: int, *, log_start_offset: int, now_ms: int, leader_end: int, broker_epoch: int) -> None:
        if offset >= leader_end:
            self.last_caught_up_ms = max(self.last_caught_up_ms, now_ms)
        elif offset >= self.last_fetch_leader_end:
            self.last_caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        self.log_end_offset = offset
        self.log_start_offset = log_start_offset
        self.last_fetch_leader_end = max(leader_end, self.last_fetch_leader_end)
        self.last_fetch_ms = now_ms
        self.broker_epoch = broker_epoch

    def is_caught_up(self, *, leader_end: int, now_ms: int, lag_time_max_ms: int) -> bool:
        return self.log_end_offset == leader_end or now_ms - self.last_caught_up_ms <= lag_time_max_ms
