"""Members of several clients that come, go and crash at random, in one group."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.compat.groups import SHORT_SESSION_MS, GroupWatch, Host, Program

StartHost = Callable[[str], Host]


@contextmanager
def starting_hosts(programs: Mapping[str, Program], directory: Path) -> Iterator[StartHost]:
    """Starts programs by name; all of them are killed at the end."""
    started: list[Host] = []

    def start(name: str) -> Host:
        started.append(Host(programs[name], directory / f"{len(started)}-{name}.log"))
        return started[-1]

    try:
        yield start
    finally:
        for host in started:
            host.kill()


class Churn:
    """One random step after the other on one group."""

    def __init__(
        self,
        watch: GroupWatch,
        bootstrap: str,
        start_host: StartHost,
        *,
        clients: Iterable[str],
        members_max: int,
        seed: int,
    ) -> None:
        self._watch = watch
        self._bootstrap = bootstrap
        self._start_host = start_host
        self._members_max = members_max
        self._random = random.Random(seed)
        self._hosts = [start_host(name) for name in clients]
        for host in self._hosts:
            self._join(host)

    def step(self) -> None:
        (action,) = self._random.choices([self._come, self._go, self._crash], weights=[6, 4, 1])
        action()

    def _join(self, host: Host) -> None:
        host.join(self._watch, self._bootstrap, session_ms=SHORT_SESSION_MS * 2)

    def _come(self) -> None:
        if len(self._watch.current()) < self._members_max:
            self._join(self._random.choice(self._hosts))

    def _go(self) -> None:
        host = self._random.choice(self._hosts)
        staying = [name for name in host.members_of(self._watch) if not self._watch.members[name].is_leaving]
        if staying and len(self._watch.current()) > 2:
            host.leave(self._random.choice(staying))

    def _crash(self) -> None:
        """A program dies with all its members and is started again with one."""
        host = self._random.choice([one for one in self._hosts if one.program.name != "java"])
        host.crash()
        self._hosts.remove(host)
        self._hosts.append(self._start_host(host.program.name))
        self._join(self._hosts[-1])
