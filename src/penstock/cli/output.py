"""What commands print: tables for people, JSON for programs.

A command makes plain values (dictionaries of text, numbers, lists) once and hands them to an `Output`, which knows the
format: `table` on a terminal, `json` on a pipe, or what `-o` says. Rows of changing work (`jsonl`) are lines of JSON.
Times are ISO 8601 in UTC for people, milliseconds for programs.
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal, TypeVar

import click

from penstock.cli.failures import coloured

F = TypeVar("F", bound=Callable[..., Any])
Row = Mapping[str, Any]

FORMATS: Final = ("table", "json", "jsonl", "csv")
_WIDE: Final = 10_000
"""Columns of a table that no terminal shows: nothing is folded."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table: the key in the rows, the title, and how a value is shown to people."""

    key: str
    title: str = ""
    show: Callable[[Any], str] | None = None
    style: str = ""

    @property
    def heading(self) -> str:
        return self.title or self.key.replace("_", " ")


@dataclass(frozen=True, slots=True)
class Output:
    format: str

    @property
    def is_table(self) -> bool:
        return self.format == "table"

    def rows(self, rows: Iterable[Row], columns: Sequence[Column | str], *, empty: str = "", title: str = "") -> None:
        """Many things of one kind. `empty` is told to people when there are none."""
        found = list(rows)
        if self.format == "table":
            _table(found, columns, empty=empty, title=title)
        elif self.format == "csv":
            _csv(found, columns)
        else:
            self.document(found)

    def document(self, value: Any) -> None:
        """Something for programs: one document, or a line for each of its items."""
        if self.format == "csv":
            rows: list[Row] = value if isinstance(value, list) else [value]
            _csv(rows, list(dict.fromkeys(key for row in rows for key in row)))
        elif self.format == "jsonl" and isinstance(value, list):
            for each in value:
                click.echo(to_json(each))
        else:
            click.echo(to_json(value, indent=None if self.format == "jsonl" else 2))

    def pairs(self, value: Row, *, title: str = "") -> None:
        """One thing."""
        if not self.is_table:
            self.document(value)
            return
        shown = [{"name": key.replace("_", " "), "value": each} for key, each in value.items()]
        if title:
            heading(title)
        width = max((len(str(each["name"])) for each in shown), default=0)
        for each in shown:
            click.echo(f"{each['name']:<{width}}  {show(each['value'])}")

    def changes(self, rows: Sequence[Row], sentence: Callable[[Row], str], *, columns: Sequence[str] = ()) -> None:
        """What was done: a sentence for each to people, the rows to programs. `columns` are for when there are none."""
        if self.is_table:
            for row in rows:
                click.echo(sentence(row))
        elif self.format == "csv" and columns:
            _csv(list(rows), columns)
        else:
            self.document(list(rows))


def output_option(function: F) -> F:
    """`-o`, as the parameter `output`."""

    @functools.wraps(function)
    def wrapper(*args: Any, output: str | None, **kwargs: Any) -> Any:
        return function(*args, output=Output(output or ("table" if sys.stdout.isatty() else "json")), **kwargs)

    return click.option(  # type: ignore[return-value]
        "-o",
        "--output",
        type=click.Choice(FORMATS),
        help="What to print. By default a table on a terminal, else JSON.",
    )(wrapper)


def to_json(value: Any, *, indent: int | None = None) -> str:
    return json.dumps(value, indent=indent, ensure_ascii=False, default=str)


def heading(text: str) -> None:
    click.echo(click.style(text, bold=True) if coloured(sys.stdout) else text, color=coloured(sys.stdout))


def show(value: Any) -> str:
    """A value for people."""
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value)) or "-"
    return str(value)


def show_time(timestamp_ms: int | None) -> str:
    """2026-11-16T22:11:30.123Z; a dash where there is none."""
    if timestamp_ms is None or timestamp_ms < 0:
        return "-"
    try:
        when = datetime.fromtimestamp(timestamp_ms / 1000, tz=UTC)
    except (OverflowError, ValueError, OSError):
        return str(timestamp_ms)
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def show_count(count: int | None) -> str:
    return "-" if count is None else f"{count:,}"


def counted(count: int, noun: str) -> str:
    """1 partition, 12 partitions."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _columns(columns: Sequence[Column | str]) -> list[Column]:
    return [Column(each) if isinstance(each, str) else each for each in columns]


def _table(rows: list[Row], columns: Sequence[Column | str], *, empty: str, title: str) -> None:
    if not rows:
        if empty:
            click.echo(empty, err=True)
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    if title:
        heading(title)
    terminal = sys.stdout.isatty()
    console = Console(
        file=sys.stdout,
        no_color=not coloured(sys.stdout),
        width=None if terminal else _WIDE,
        highlight=False,
        soft_wrap=not terminal,
    )
    table = Table(
        box=box.SIMPLE_HEAD if terminal else None,
        padding=(0, 1 if terminal else 2, 0, 0),  # with the separator of a box, two columns either way
        pad_edge=False,
        header_style="bold",
        show_edge=False,
    )
    chosen = _columns(columns)
    for column in chosen:
        numeric = any(isinstance(row.get(column.key), (int, float)) for row in rows)
        justify: Literal["left", "right"] = (
            "right" if numeric and not any(isinstance(row.get(column.key), bool) for row in rows) else "left"
        )
        heading_text = column.heading.upper()
        table.add_column(
            Text(heading_text),
            style=column.style,
            justify=justify,
            overflow="fold",
            # On a narrow terminal the values fold, not the words above them.
            min_width=max(map(len, heading_text.split()), default=0),
        )
    for row in rows:
        table.add_row(*(Text((column.show or show)(row.get(column.key))) for column in chosen))
    console.print(table)


def _csv(rows: list[Row], columns: Sequence[Column | str]) -> None:
    import csv

    if not columns:
        return
    chosen = _columns(columns)
    writer = csv.writer(sys.stdout)
    writer.writerow([column.key for column in chosen])
    for row in rows:
        writer.writerow([_plain(row.get(column.key)) for column in chosen])


def _plain(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    return " ".join(map(str, value)) if isinstance(value, (list, tuple)) else value
