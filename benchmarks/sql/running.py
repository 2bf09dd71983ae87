"""A query while it runs, whoever runs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from benchmarks.sql.plan import Query


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A query with the name of its result's topic, and how many rows its inputs have in all."""

    query: Query
    result: str
    total: int = 0


class Running(Protocol):
    def consumed(self) -> int:
        """How many rows of the inputs are read, their results committed."""

    def cpu_seconds(self) -> float:
        """What it cost since it was started."""

    def stop(self) -> None: ...


class Contender(Protocol):
    @property
    def name(self) -> str: ...

    def start(self, job: Job) -> Running: ...
