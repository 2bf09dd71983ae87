"""State that remembers how it was, as far back as the last committed record.

Every write to a `TimelineDict` belongs to the log offset that is being replayed (`timeline.now`).
There are two views: the newest, which operations work on, and the committed, which answers are read from. `commit(end)`
makes all writes below the offset `end` part of the committed view; `rollback(end)` undoes those at `end` and above.

All structures of a shard share one journal, so both cost as much as there are changes, whatever the number of
structures. A write below the committed end (the usual case while loading) is not journalled at all.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator
from typing import Any, Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
D = TypeVar("D")

NOT_REPLAYING: Final = -1


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"


_MISSING: Final = _Missing()


class Timeline:
    """The journal of one shard. `now` is set by the runtime around each replayed record."""

    __slots__ = ("_journal", "committed_end", "now")

    def __init__(self, committed_end: int = 0) -> None:
        self.now = NOT_REPLAYING
        self.committed_end = committed_end
        self._journal: deque[tuple[int, TimelineDict[Any, Any], Any, Any, Any]] = deque()

    @property
    def pending_count(self) -> int:
        """Writes that are not committed."""
        return len(self._journal)

    def commit(self, end: int) -> None:
        """Everything below `end` is committed."""
        if end <= self.committed_end:
            return
        self.committed_end = end
        journal = self._journal
        while journal and journal[0][0] < end:
            _, target, key, _, new = journal.popleft()
            target._commit_one(key, new)

    def rollback(self, end: int) -> None:
        """Undo every write at `end` or above; what is committed stays."""
        if end < self.committed_end:
            raise ValueError(f"offset {end} is committed: everything below {self.committed_end} is")
        journal = self._journal
        while journal and journal[-1][0] >= end:
            _, target, key, old, _ = journal.pop()
            target._undo_one(key, old)

    def check_invariants(self) -> None:
        offsets = [entry[0] for entry in self._journal]
        assert offsets == sorted(offsets), f"the journal is out of order: {offsets}"
        assert not offsets or offsets[0] >= self.committed_end, (offsets[0], self.committed_end)
        counts: dict[tuple[int, Any], int] = {}
        for _, target, key, _, _ in self._journal:
            counts[id(target), key] = counts.get((id(target), key), 0) + 1
        for target in {id(entry[1]): entry[1] for entry in self._journal}.values():
            for key, (count, _) in target._pending.items():
                assert counts.get((id(target), key)) == count, (key, count)


class TimelineDict(Generic[K, V]):
    """A dictionary with a newest and a committed view. Values must be immutable: they are shared by both."""

    __slots__ = ("_newest", "_pending", "_timeline")

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._newest: dict[K, V] = {}
        # Keys with uncommitted writes: how many, and the committed value below them.
        self._pending: dict[K, list[Any]] = {}

    # -- The newest view -------------------------------------------------------------------------------------------

    def get(self, key: K, default: D | None = None) -> V | D | None:
        return self._newest.get(key, default)

    def __getitem__(self, key: K) -> V:
        return self._newest[key]

    def __contains__(self, key: object) -> bool:
        return key in self._newest

    def __len__(self) -> int:
        return len(self._newest)

    def __iter__(self) -> Iterator[K]:
        return iter(self._newest)

    def items(self) -> Iterator[tuple[K, V]]:
        return iter(self._newest.items())

    def values(self) -> Iterator[V]:
        return iter(self._newest.values())

    # -- The committed view ----------------------------------------------------------------------------------------

    def get_committed(self, key: K, default: D | None = None) -> V | D | None:
        if self._pending and (pending := self._pending.get(key)) is not None:
            value = pending[1]
            return default if value is _MISSING else value
        return self._newest.get(key, default)

    def items_committed(self) -> Iterator[tuple[K, V]]:
        pending = self._pending
        if not pending:
            yield from self._newest.items()
            return
        for key, value in self._newest.items():
            if key not in pending:
                yield key, value
        for key, (_, value) in pending.items():
            if value is not _MISSING:
                yield key, value

    def values_committed(self) -> Iterator[V]:
        return (value for _, value in self.items_committed())

    def keys_committed(self) -> Iterator[K]:
        return (key for key, _ in self.items_committed())

    # -- Writing, only while a record is replayed --------------------------------------------------------------------

    def set(self, key: K, value: V) -> None:
        self._write(key, value)
        self._newest[key] = value

    def pop(self, key: K, default: D | None = None) -> V | D | None:
        """Remove the key; the value it had, or `default`."""
        if key not in self._newest:
            return default
        self._write(key, _MISSING)
        return self._newest.pop(key)

    def _write(self, key: K, new: Any) -> None:
        timeline = self._timeline
        now = timeline.now
        if now < timeline.committed_end:
            if now < 0:
                raise RuntimeError("state changes only while a record is replayed")
            return
        old: Any = self._newest.get(key, _MISSING)
        pending = self._pending.get(key)
        if pending is None:
            self._pending[key] = [1, old]
        else:
            pending[0] += 1
        timeline._journal.append((now, self, key, old, new))

    # -- For the timeline --------------------------------------------------------------------------------------------

    def _commit_one(self, key: K, new: Any) -> None:
        pending = self._pending[key]
        if pending[0] == 1:
            del self._pending[key]
        else:
            pending[0] -= 1
            pending[1] = new

    def _undo_one(self, key: K, old: Any) -> None:
        pending = self._pending[key]
        if pending[0] == 1:
            del self._pending[key]
        else:
            pending[0] -= 1
        if old is _MISSING:
            self._newest.pop(key, None)
        else:
            self._newest[key] = old
