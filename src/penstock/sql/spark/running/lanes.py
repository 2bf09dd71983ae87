"""Works of many queries on a few threads: those of one query in turn, those of different queries side by side.

A work is a start or an end. Each kind has threads of its own, so an end never waits for the starts of other queries,
and no more starts happen at once than there are threads for them. Starts that nobody began yet can be dropped.

    waiting   behind earlier works of its key, behind the works named in `after`, or for a free thread of its kind
    running   on a thread of its kind; no other work of its key runs
    done      run, failed (told to `on_error`), or dropped
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Literal

Kind = Literal["start", "end"]


class Work:
    """One thing to be done for a key."""

    def __init__(self, kind: Kind, run: Callable[[], None], after: Iterable[Work]) -> None:
        self.kind = kind
        self.run = run
        self.done = False
        self._after = [each for each in after if not each.done]

    @property
    def is_free(self) -> bool:
        """Whether everything it waits for is done. It can only wait for works that were there before it."""
        return all(each.done for each in self._after)


class Lanes:
    def __init__(self, threads: Mapping[Kind, int], on_error: Callable[[Exception], None], name: str) -> None:
        self._on_error = on_error
        self._lanes: dict[str, deque[Work]] = {}
        """The first of a lane may be running; a lane without works is not kept. Oldest lanes first."""
        self._running: set[str] = set()
        self._closed = False
        self._changed = threading.Condition()
        self._threads = [
            threading.Thread(target=self._serve, args=(kind,), name=f"{name}-{kind}-{number}", daemon=True)
            for kind, count in threads.items()
            for number in range(1, count + 1)
        ]
        for thread in self._threads:
            thread.start()

    def put(self, kind: Kind, key: str, run: Callable[[], None], after: Iterable[Work] = ()) -> Work:
        """Returns at once. What comes after the close is not done."""
        with self._changed:
            work = Work(kind, run, after)
            work.done = self._closed
            if not self._closed:
                self._lanes.setdefault(key, deque()).append(work)
                self._changed.notify_all()
            return work

    def gate(self) -> Work:
        """Something works can wait for that is not theirs to do; shut until `open`."""
        return Work("end", lambda: None, ())

    def open(self, gate: Work) -> None:
        with self._changed:
            gate.done = True
            self._changed.notify_all()

    def drop_starts(self, key: str | None = None) -> None:
        """Those of this key, or all, that have not begun."""
        with self._changed:
            for each in [key] if key is not None else list(self._lanes):
                lane = self._lanes.get(each, deque())
                for work in list(lane)[each in self._running :]:
                    if work.kind == "start":
                        work.done = True
                        lane.remove(work)
                self._forget_if_empty(each)
            self._changed.notify_all()

    def is_idle(self, key: str) -> bool:
        return key not in self._lanes

    def pending(self, kind: Kind, prefix: str = "") -> list[Work]:
        """What is waiting or running, on lanes whose keys begin so."""
        with self._changed:
            lanes = [lane for key, lane in self._lanes.items() if key.startswith(prefix)]
            return [work for lane in lanes for work in lane if work.kind == kind]

    def wait_ended(self, keys: Collection[str], timeout_s: float) -> bool:
        """Whether no end of these keys is waiting or running any more."""
        with self._changed:
            return self._changed.wait_for(lambda: not any(self._is_ending(key) for key in keys), timeout_s)

    def close(self, timeout_s: float) -> bool:
        """Drop the starts, take no more works, and wait for those there are; whether they were done in time."""
        deadline = time.monotonic() + timeout_s
        self.drop_starts()
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            done = self._changed.wait_for(lambda: not self._lanes, timeout_s)
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        return done

    def _is_ending(self, key: str) -> bool:
        return any(work.kind == "end" for work in self._lanes.get(key, ()))

    def _serve(self, kind: Kind) -> None:
        while (taken := self._take(kind)) is not None:
            key, work = taken
            try:
                work.run()
            except Exception as error:  # noqa: BLE001 - one query's trouble must not end a thread that serves all
                self._on_error(error)
            finally:
                self._finish(key, work)

    def _take(self, kind: Kind) -> tuple[str, Work] | None:
        with self._changed:
            while (found := self._next(kind)) is None:
                if self._closed and not self._lanes:
                    return None
                self._changed.wait()
            self._running.add(found[0])
            return found

    def _next(self, kind: Kind) -> tuple[str, Work] | None:
        for key, lane in self._lanes.items():
            work = lane[0]
            if work.kind == kind and key not in self._running and work.is_free:
                return key, work
        return None

    def _finish(self, key: str, work: Work) -> None:
        with self._changed:
            work.done = True
            self._running.discard(key)
            self._lanes[key].popleft()
            self._forget_if_empty(key)
            self._changed.notify_all()

    def _forget_if_empty(self, key: str) -> None:
        if key in self._lanes and not self._lanes[key]:
            del self._lanes[key]
