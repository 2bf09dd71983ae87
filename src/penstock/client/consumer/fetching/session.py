"""The consumer's half of a fetch session (KIP-227): ask for everything once, then only for what changed.

The broker that keeps a session answers with an id; the next fetches count epochs 1, 2, 3... and name the partitions
whose offset changed, those that are new, and those to forget. Whatever goes wrong, a full fetch with epoch 0 begins
again. A broker that keeps no session answers with id 0, and every fetch is a full one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple
from uuid import UUID

from penstock.base.errors import ErrorCode
from penstock.base.types import TopicPartition

NO_SESSION: Final = 0
INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
_EPOCH_MAX: Final = 2**31 - 1


class FetchTarget(NamedTuple):
    """What is wanted of one partition."""

    topic_id: UUID
    offset: int
    leader_epoch: int
    max_bytes: int


class SessionFetch(NamedTuple):
    """One fetch as it goes out."""

    session_id: int
    epoch: int
    send: Mapping[TopicPartition, FetchTarget]
    forget: Mapping[TopicPartition, UUID]
    uses_ids: bool

    @property
    def is_full(self) -> bool:
        return self.epoch in (INITIAL_EPOCH, FINAL_EPOCH)


class FetchSession:
    """What one broker remembers. `plan` before every fetch, `answered` or `failed` after it."""

    __slots__ = ("_epoch", "_id", "_known", "_uses_ids")

    def __init__(self) -> None:
        self._id = NO_SESSION
        self._epoch = INITIAL_EPOCH
        self._known: dict[TopicPartition, FetchTarget] = {}
        self._uses_ids = True

    @property
    def id(self) -> int:
        return self._id

    @property
    def partitions(self) -> Mapping[TopicPartition, FetchTarget]:
        return self._known

    def plan(self, wanted: Mapping[TopicPartition, FetchTarget], *, uses_ids: bool) -> SessionFetch:
        """The next fetch, for exactly these partitions."""
        if self._epoch != INITIAL_EPOCH and uses_ids != self._uses_ids:
            # A session never mixes names and ids: this one is given up and the broker may begin another.
            self._epoch = INITIAL_EPOCH
        self._uses_ids = uses_ids
        known, self._known = self._known, dict(wanted)
        if self._epoch == INITIAL_EPOCH:
            return SessionFetch(self._id, INITIAL_EPOCH, wanted, {}, uses_ids)
        changed = {each: target for each, target in wanted.items() if known.get(each) != target}
        gone = {
            each: target.topic_id
            for each, target in known.items()
            if each not in wanted or wanted[each].topic_id != target.topic_id
        }
        return SessionFetch(self._id, self._epoch, changed, gone, uses_ids)

    def answered(self, sent: SessionFetch, error_code: int, session_id: int) -> bool:
        """Take the answer's word for the session. True when the partitions in it count."""
        if error_code != ErrorCode.NONE:
            if error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
                self._id = NO_SESSION
            self._epoch = INITIAL_EPOCH
            return False
        self._id = session_id
        if session_id == NO_SESSION:
            self._epoch = INITIAL_EPOCH
        elif sent.is_full:
            self._epoch = 1
        else:
            self._epoch = 1 if sent.epoch == _EPOCH_MAX else sent.epoch + 1
        return True

    def failed(self) -> None:
        """No answer: whether the broker counted the epoch is not known, so begin again (and end the old session)."""
        self._epoch = INITIAL_EPOCH

    def closing(self) -> SessionFetch | None:
        """The fetch that tells the broker to forget the session, if it keeps one."""
        if self._id == NO_SESSION:
            return None
        return SessionFetch(self._id, FINAL_EPOCH, {}, {}, self._uses_ids)
