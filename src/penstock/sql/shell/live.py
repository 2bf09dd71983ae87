"""Rows on a terminal while they come: the newest of them as a table that grows and scrolls in its place.

When the query ends the table stays, with all rows of it that still fit the screen; a short result is therefore shown
whole, like any table.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from penstock.sql.shell.output import TextOutput, show_value
from penstock.sql.shell.rest import Columns
from penstock.sql.shell.style import make_table

_LINES_AROUND = 6
"""The heading, the line of state, and some air."""
_TOGETHER_S = 0.1


class LiveView:
    def __init__(self, output: TextOutput, columns: Columns) -> None:
        self._columns = columns
        self._output = output
        output.spool_row(columns.names)
        self._console = Console(file=sys.stdout, highlight=False)
        self._rows: deque[list[str]] = deque(maxlen=max(5, self._console.height - _LINES_AROUND))
        self._count = 0
        self._began = time.monotonic()
        self._lock = threading.Lock()
        self._drawing: threading.Timer | None = None
        self._live = Live(console=self._console, auto_refresh=False, transient=True, vertical_overflow="crop")
        self._live.start()
        self._draw()

    def row(self, row: Any) -> None:
        self._output.spool_row(row)
        with self._lock:
            self._rows.append([show_value(value) for value in row])
            self._count += 1
            # Rows that come together are drawn together, a moment after the first of them.
            if self._drawing is None:
                self._drawing = threading.Timer(_TOGETHER_S, self._draw)
                self._drawing.daemon = True
                self._drawing.start()

    def end(self, count: int, *, interrupted: bool) -> None:
        with self._lock:
            if self._drawing is not None:
                self._drawing.cancel()
            self._live.stop()
        hidden = self._count - len(self._rows)
        if hidden > 0:
            self._console.print(Text(f"... {hidden} rows before these", style="dim"))
        self._console.print(make_table(self._columns.names, list(self._rows), framed=True))
        ended = ", ended by Ctrl-C" if interrupted else ""
        self._console.print(
            Text(f"{_counted(self._count)} in {time.monotonic() - self._began:.1f} s{ended}", style="dim")
        )

    def _draw(self) -> None:
        with self._lock:
            self._drawing = None
            if self._live.is_started:
                state = Text(f"{_counted(self._count)}; Ctrl-C ends the query", style="dim")
                table = make_table(self._columns.names, list(self._rows), framed=True)
                self._live.update(Group(table, state), refresh=True)


def _counted(count: int) -> str:
    return f"{count} row" if count == 1 else f"{count} rows"
