"""Tables and colours, by rich; imported when something is shown."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from typing import IO

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

_WIDE = 10_000
"""Columns for a reader that is no terminal: nothing is folded."""


def coloured(stream: IO[str] | None) -> bool:
    """Colours are for terminals, and not for those who do not want them (https://no-color.org)."""
    return (
        stream is not None and stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    )


def make_table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, framed: bool) -> Table:
    named = any(columns)
    table = Table(
        box=box.SIMPLE_HEAD if framed and named else None,
        pad_edge=False,
        show_edge=False,
        show_header=named,
        header_style="bold",
    )
    for index, column in enumerate(columns):
        numeric = bool(rows) and all(_is_number(row[index]) for row in rows if index < len(row))
        table.add_column(Text(column), justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def table_text(columns: Sequence[str], rows: Sequence[Sequence[str]], stream: IO[str] | None) -> str:
    terminal = stream is not None and stream.isatty()
    text = io.StringIO()
    console = Console(
        file=text,
        force_terminal=coloured(stream),
        no_color=not coloured(stream),
        width=Console(file=stream).width if terminal else _WIDE,
        highlight=False,
        soft_wrap=not terminal,
    )
    console.print(make_table(columns, rows, framed=terminal))
    return "".join(f"{line.rstrip()}\n" for line in text.getvalue().splitlines())


def error_text(text: str, stream: IO[str]) -> str:
    return f"\x1b[31m{text}\x1b[0m" if coloured(stream) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
