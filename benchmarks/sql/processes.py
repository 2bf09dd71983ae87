"""What a process and everything below it cost, from /proc."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_TICKS: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeMemory:
    """`proportional_megabytes` counts memory that processes share once, `resident_megabytes` once for each of them."""

    resident_megabytes: float
    proportional_megabytes: float


class TreeClock:
    """The CPU time of a tree. Looked at now and then, it also counts workers that have ended: nobody waits for them."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._seen: dict[int, float] = {}

    def cpu_seconds(self) -> float:
        for each in _tree(self._pid):
            self._seen[each.pid] = max(each.cpu_seconds, self._seen.get(each.pid, 0.0))
        return sum(self._seen.values())


def tree_memory(pid: int) -> TreeMemory:
    memory = [_memory_kilobytes(each.pid) for each in _tree(pid)]
    return TreeMemory(
        resident_megabytes=sum(resident for resident, _ in memory) * 1024 / 1e6,
        proportional_megabytes=sum(proportional for _, proportional in memory) * 1024 / 1e6,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Process:
    pid: int
    parent: int
    cpu_seconds: float


def _tree(pid: int) -> Iterator[_Process]:
    """The process and all below it; each with its own time, user and system."""
    children: dict[int, list[_Process]] = {}
    for process in _processes():
        children.setdefault(process.parent, []).append(process)
        if process.pid == pid:
            yield process
    below = [pid]
    while below:
        found = children.get(below.pop(), [])
        below += [each.pid for each in found]
        yield from found


def _processes() -> Iterator[_Process]:
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        ticks = int(fields[11]) + int(fields[12])
        yield _Process(pid=int(entry.name), parent=int(fields[1]), cpu_seconds=ticks / _TICKS)


def _memory_kilobytes(pid: int) -> tuple[int, int]:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0, 0
    found = {line.partition(":")[0]: line.split()[1] for line in lines[1:]}
    return int(found.get("Rss", 0)), int(found.get("Pss", 0))
