"""When a heartbeat is due, when the session or the user's poll is overdue. Seconds on the monotonic clock."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Intervals:
    heartbeat_s: float
    session_s: float
    poll_s: float
    retry_s: float


class HeartbeatTimer:
    def __init__(self, intervals: Intervals, now: float) -> None:
        self._intervals = intervals
        self._polled_at = now
        self.session_started(now)

    def session_started(self, now: float) -> None:
        """The member joined: the coordinator counts from here."""
        self._heard_at = now
        self._due_at = now + self._intervals.heartbeat_s

    def polled(self, now: float) -> None:
        self._polled_at = now

    def sent(self, now: float) -> None:
        self._due_at = now + self._intervals.heartbeat_s

    def heard(self, now: float) -> None:
        self._heard_at = now

    def failed(self, now: float) -> None:
        """No answer: sooner than usual again."""
        self._due_at = now + self._intervals.retry_s

    def session_lost(self, now: float) -> None:
        """The coordinator is looked for anew; it gets a whole session to answer."""
        self._heard_at = now

    def is_due(self, now: float) -> bool:
        return now >= self._due_at

    def is_session_over(self, now: float) -> bool:
        return now - self._heard_at > self._intervals.session_s

    def is_poll_overdue(self, now: float) -> bool:
        return now - self._polled_at > self._intervals.poll_s

    def next_at(self) -> float:
        return min(self._due_at, self._heard_at + self._intervals.session_s, self._polled_at + self._intervals.poll_s)
