"""Commands and events of a member program: JSON objects, one per line, on standard input and output.

Commands
    {"op": "join", "member", "bootstrap", "group", "topic", "assignor", "instance", "session_ms", "isolation"}
    {"op": "leave", "member"}     a clean end of one member, as the client does it (a static member stays in its group)

Events, each with the member's name and the time in milliseconds
    owned       all partitions that the member owns from now on, and the generation where the client tells it (else -1)
    records     offsets by partition, printed before the client can commit them
    left        the member ended cleanly
    failed      an error that the client gave to its user

The end of standard input ends the program without any farewell.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

HEARTBEAT_MS = 300
COMMIT_MS = 300
POLL_MS = 100
FETCH_WAIT_MS = 200

_output = threading.Lock()


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """What a member is to be."""

    member: str
    bootstrap: str
    group: str
    topic: str
    assignor: str
    session_ms: int
    isolation: str = "read_uncommitted"
    instance: str | None = None


class Member(Protocol):
    def leave(self) -> None:
        """Asks the member to end cleanly; it prints ``left`` when it has."""


def _emit(event: str, member: str, **fields: object) -> None:
    line = json.dumps({"event": event, "member": member, "time": int(time.time() * 1000), **fields})
    with _output:
        print(line, flush=True)


class Reporter:
    """The events of one member; knows what it owns, as clients mostly tell only what changed."""

    def __init__(self, member: str) -> None:
        self._member = member
        self._owned: set[int] = set()

    def gained(self, partitions: Iterable[int], generation: int = -1) -> None:
        self._owned |= set(partitions)
        self._print_owned(generation)

    def gave_up(self, partitions: Iterable[int], generation: int = -1) -> None:
        self._owned -= set(partitions)
        self._print_owned(generation)

    def _print_owned(self, generation: int) -> None:
        _emit("owned", self._member, partitions=sorted(self._owned), generation=generation)

    def records(self, offsets: dict[int, list[int]]) -> None:
        if offsets:
            _emit("records", self._member, offsets=offsets)

    def left(self) -> None:
        _emit("left", self._member)

    def failed(self, problem: object) -> None:
        _emit("failed", self._member, error=f"{type(problem).__name__}: {problem}")


def serve(start: Callable[[Join], Member]) -> None:
    """Obeys commands until there are no more."""
    members: dict[str, Member] = {}
    for line in sys.stdin:
        command = json.loads(line)
        if command.pop("op") == "join":
            join = Join(**command)
            members[join.member] = start(join)
        else:
            members.pop(command["member"]).leave()
    # Clients would say good-bye in their destructors.
    os._exit(0)
