"""What happens to a member, and what is to be done about it: the values that go into the machine and come out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from penstock.base.errors import KafkaError

NO_GENERATION: Final = -1
NO_MEMBER: Final = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    member_id: str = NO_MEMBER
    generation_id: int = NO_GENERATION
    protocol: str | None = None

    @property
    def is_member(self) -> bool:
        return self.member_id != NO_MEMBER and self.generation_id != NO_GENERATION


# Events.


@dataclass(frozen=True, slots=True, kw_only=True)
class RejoinWanted:
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """Commits and listener are done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinStarted: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinAnswered:
    code: int = 0
    member_id: str = NO_MEMBER
    generation_id: int = NO_GENERATION
    protocol: str | None = None
    leader_id: str = NO_MEMBER
    is_assigned_already: bool = False
    """The coordinator has an assignment (a static leader came back): the leader is not to make one (KIP-814)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncAnswered:
    code: int = 0
    protocol: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFailed:
    """JoinGroup or SyncGroup got no answer, or the leader could not make an assignment."""

    error: KafkaError | None = None
    """To be raised by the next poll; without one the join is simply tried again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """The listener knows the new assignment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A heartbeat or a commit was answered with a code, for the identity it was sent with."""

    code: int
    identity: Identity


@dataclass(frozen=True, slots=True, kw_only=True)
class PollExpired: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionExpired: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveWanted:
    reason: str
    even_static: bool = False


Event = (
    RejoinWanted
    | Prepared
    | JoinStarted
    | JoinAnswered
    | SyncAnswered
    | RequestFailed
    | Completed
    | Refused
    | PollExpired
    | SessionExpired
    | LeaveWanted
)


# Effects.


@dataclass(frozen=True, slots=True, kw_only=True)
class SendJoin:
    identity: Identity
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SendSync:
    identity: Identity
    is_leader: bool
    is_assigned_already: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SendLeave:
    member_id: str
    reason: str
    was_joining: bool = False
    """A JoinGroup is still under way and holds its connection."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetCoordinator: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """Wait for the back-off before the next try."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wake:
    """There is something to do for a poll that may be waiting for records."""


Effect = SendJoin | SendSync | SendLeave | ForgetCoordinator | Pause | Wake
