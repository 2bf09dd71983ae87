"""Where one partition is read, and what must happen before it can be read on.

A partition begins without a position (`INITIALIZING`). It gets one by a seek, from a committed offset, or by asking the
broker for the beginning or the end (`AWAIT_RESET`). A position that knows the epoch of the record before it is checked
against every new leader (`AWAIT_VALIDATION`, KIP-320): a leader that lost records by an unclean election is found out
before its records are taken for those that were expected.

Pure: whoever does the asking (`fetching.offset_reset`, `fetching.validation`) looks for the states here, and reports
answers back; an answer that comes after a later seek finds another `generation` and is dropped.
"""

from __future__ import annotations

import enum
import re
from typing import Final, NamedTuple

from penstock.base.config.rules import BadValueError

NO_EPOCH: Final = -1
EARLIEST_TIMESTAMP: Final = -2
LATEST_TIMESTAMP: Final = -1

_DURATION = re.compile(
    r"P(?:(?P<days>\d+)D)?(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d{1,9})?)S)?)?"
)


class FetchStatus(enum.Enum):
    INITIALIZING = "has no position yet"
    FETCHING = "is being read"
    AWAIT_RESET = "waits for the offset that the reset policy means"
    AWAIT_VALIDATION = "waits for the leader to confirm that it has what was read"


TRANSITIONS: Final = {
    FetchStatus.INITIALIZING: frozenset(FetchStatus),
    FetchStatus.FETCHING: frozenset(FetchStatus) - {FetchStatus.INITIALIZING},
    FetchStatus.AWAIT_RESET: frozenset(FetchStatus) - {FetchStatus.INITIALIZING},
    FetchStatus.AWAIT_VALIDATION: frozenset(FetchStatus) - {FetchStatus.INITIALIZING},
}


class ResetPolicy(NamedTuple):
    """What `auto.offset.reset` means: a place to begin, or None where the user must choose."""

    kind: str
    duration_ms: int = 0

    def timestamp(self, now_ms: int) -> int | None:
        """What to ask ListOffsets for; None when there is nothing to ask (`none`)."""
        if self.kind == "by_duration":
            return now_ms - self.duration_ms
        return _TIMESTAMPS[self.kind]


_TIMESTAMPS: Final[dict[str, int | None]] = {
    "earliest": EARLIEST_TIMESTAMP,
    "latest": LATEST_TIMESTAMP,
    "none": None,
}
EARLIEST: Final = ResetPolicy("earliest")
LATEST: Final = ResetPolicy("latest")


def parse_reset_policy(text: str) -> ResetPolicy:
    """`earliest`, `latest`, `none` or `by_duration:PnDTnHnMn.nS` (KIP-1106)."""
    word = text.strip().lower()
    if word in _TIMESTAMPS:
        return ResetPolicy(word)
    kind, _, duration = text.strip().partition(":")
    match = _DURATION.fullmatch(duration) if kind.lower() == "by_duration" else None
    if match is None or not any(match.groups()):
        raise BadValueError(f"not earliest, latest, none or by_duration:<ISO 8601 duration such as PT6H>: {text!r}")
    parts = {name: float(value or 0) for name, value in match.groupdict().items()}
    hours = parts["days"] * 24 + parts["hours"]
    return ResetPolicy("by_duration", round(1000 * (hours * 3600 + parts["minutes"] * 60 + parts["seconds"])))


class FetchPosition(NamedTuple):
    offset: int
    offset_epoch: int = NO_EPOCH
    """Leader epoch of the record before `offset`; `NO_EPOCH` when it is not known, and then nothing is validated."""
    leader: int | None = None
    leader_epoch: int = NO_EPOCH
    """The leader this position was last checked against, or was never checked because there was nothing to check."""


class PartitionState:
    """One assigned partition. Everything here changes on the loop only."""

    __slots__ = (
        "end_offset",
        "generation",
        "high_watermark",
        "last_stable_offset",
        "log_start_offset",
        "paused",
        "pending_revocation",
        "position",
        "preferred_replica",
        "preferred_until",
        "reset_policy",
        "retry_at",
        "status",
    )

    def __init__(self) -> None:
        self.status = FetchStatus.INITIALIZING
        self.position: FetchPosition | None = None
        self.generation = 0
        """Grows whenever the position changes other than by reading: what was fetched for an older one is dropped."""
        self.paused = False
        self.pending_revocation = False
        self.reset_policy: ResetPolicy | None = None
        self.retry_at = 0.0
        """Monotonic time before which no reset or validation is tried again."""
        self.high_watermark: int | None = None
        self.last_stable_offset: int | None = None
        self.log_start_offset: int | None = None
        self.end_offset: int | None = None
        """The end as ListOffsets told it, until fetches tell the high watermark."""
        self.preferred_replica: int | None = None
        self.preferred_until = 0.0

    @property
    def is_fetchable(self) -> bool:
        return self.status is FetchStatus.FETCHING and not self.paused and not self.pending_revocation

    @property
    def has_valid_position(self) -> bool:
        return self.status is FetchStatus.FETCHING

    def seek(self, position: FetchPosition) -> None:
        """Read on from here, without asking anybody."""
        self._go(FetchStatus.FETCHING)
        self.position = position
        self.reset_policy = None
        self.retry_at = 0.0
        self.generation += 1

    def seek_unvalidated(self, position: FetchPosition) -> None:
        """Read on from here once the leader has confirmed it, if there is an epoch to confirm."""
        self.seek(position)
        self._validate_if_possible(position)

    def request_reset(self, policy: ResetPolicy) -> None:
        self._go(FetchStatus.AWAIT_RESET)
        self.position = None
        self.reset_policy = policy
        self.retry_at = 0.0
        self.generation += 1

    def leader_is(self, leader: int | None, leader_epoch: int) -> bool:
        """The metadata names a leader: a position that was checked against another one must be validated again.

        Metadata never goes back to an older epoch of the same topic; a smaller one is another topic of that name.
        True when the position now waits for validation.
        """
        position = self.position
        if position is None or self.status is FetchStatus.AWAIT_RESET:
            return False
        if leader is None:
            return self.status is FetchStatus.AWAIT_VALIDATION
        if (leader, leader_epoch) != (position.leader, position.leader_epoch):
            moved = position._replace(leader=leader, leader_epoch=leader_epoch)
            self.position = moved
            self.clear_preferred_replica()
            self._validate_if_possible(moved)
        return self.status is FetchStatus.AWAIT_VALIDATION

    def skip_validation(self) -> None:
        """The broker cannot be asked (too old): trust the position."""
        self._go(FetchStatus.FETCHING)

    def validated(self, asked: FetchPosition) -> bool:
        """The leader has the epoch up to this position. False when the position changed since it was asked."""
        if self.status is not FetchStatus.AWAIT_VALIDATION or self.position != asked:
            return False
        self._go(FetchStatus.FETCHING)
        return True

    def advance(self, offset: int, offset_epoch: int) -> None:
        """Records before `offset` were handed out."""
        position = self.position
        assert position is not None
        self.position = FetchPosition(offset, offset_epoch, position.leader, position.leader_epoch)

    def delay_retry(self, now: float, delay_s: float) -> None:
        self.retry_at = now + delay_s

    # Followers (KIP-392).

    def prefer_replica(self, node: int, until: float) -> None:
        self.preferred_replica = node
        self.preferred_until = until

    def clear_preferred_replica(self) -> int | None:
        cleared, self.preferred_replica = self.preferred_replica, None
        return cleared

    def read_replica(self, now: float) -> int | None:
        """The follower to read from, until its lease is over."""
        if self.preferred_replica is not None and now >= self.preferred_until:
            self.preferred_replica = None
        return self.preferred_replica

    def lag(self, read_committed: bool) -> int | None:
        """Records between the position and the end, as far as fetches told; None when nothing was told yet."""
        if self.position is None:
            return None
        end = self.last_stable_offset if read_committed else self.high_watermark
        end = self.end_offset if end is None else end
        return None if end is None else max(end - self.position.offset, 0)

    # Inside.

    def _validate_if_possible(self, position: FetchPosition) -> None:
        if position.offset_epoch != NO_EPOCH and position.leader_epoch != NO_EPOCH:
            self._go(FetchStatus.AWAIT_VALIDATION)
            self.retry_at = 0.0
            self.generation += 1
        elif self.status is FetchStatus.AWAIT_VALIDATION:
            self._go(FetchStatus.FETCHING)

    def _go(self, status: FetchStatus) -> None:
        assert status in TRANSITIONS[self.status], f"{self.status} -> {status}"
        self.status = status
