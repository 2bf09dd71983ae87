"""What a log directory holds and how much room it has, for people and DescribeLogDirs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.storage.log import Log


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryDescription:
    """`path` is absolute. A directory that is `offline`, or cannot be asked, is described by nothing else."""

    path: str
    offline: bool = False
    logs: Sequence[Log] = ()
    total_bytes: int = -1
    usable_bytes: int = -1
