"""Progress of long work on stderr: what is done, the rate, the time left; nothing where stderr is no terminal."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, Final

_INTERVAL_S: Final = 0.1


class Progress:
    """`with Progress("Reading", total=1000) as progress: progress.advance(10)`. Cheap enough for each record."""

    def __init__(self, what: str, *, total: int | None = None, unit: str = "records", enabled: bool = True) -> None:
        self._what, self._total, self._unit = what, total, unit
        self._enabled = enabled and sys.stderr.isatty()
        self._done = 0
        self._next_update = 0.0
        self._bar: Any = None
        self._task: Any = None

    @property
    def done(self) -> int:
        return self._done

    def __enter__(self) -> Progress:
        if not self._enabled:
            return self
        from rich import progress
        from rich.console import Console

        columns: list[Any] = [progress.TextColumn("{task.description}")]
        if self._total is not None:
            columns += [progress.BarColumn(), progress.TaskProgressColumn(), progress.TimeRemainingColumn()]
        columns += [
            progress.TextColumn(f"{{task.completed:,.0f}} {self._unit}"),
            progress.TextColumn("{task.fields[rate]}"),
            progress.TimeElapsedColumn(),
        ]
        # The bar must not outlive the work: its line goes when the result comes.
        self._bar = progress.Progress(*columns, console=Console(file=sys.stderr), transient=True)
        self._bar.start()
        self._started = time.monotonic()
        self._task = self._bar.add_task(self._what, total=self._total, rate="")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self, count: int = 1) -> None:
        self._done += count
        if self._bar is None:
            return
        now = time.monotonic()
        if now < self._next_update:
            return
        self._next_update = now + _INTERVAL_S
        rate = self._done / max(now - self._started, 1e-6)
        self._bar.update(self._task, completed=self._done, rate=f"{rate:,.0f} {self._unit}/s")
