"""What the shell shows: tables for people, lines of JSON for programs, and both into a file while SPOOL is on."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import IO, Any, Literal, Protocol

from penstock.sql.shell.entities import Entity, Table, tables_of
from penstock.sql.shell.json_text import to_json
from penstock.sql.shell.rest import Columns

Form = Literal["table", "json"]

_CLEAR = "\x1b[H\x1b[2J\x1b[3J"
"""To the upper left; away with the screen, and with what scrolled off it."""


class RowView(Protocol):
    """Shows rows while they come."""

    def row(self, row: Any) -> None: ...

    def end(self, count: int, *, interrupted: bool) -> None: ...


class Output(Protocol):
    form: Form

    def entity(self, entity: Entity) -> None: ...

    def rows(self, columns: Columns | None) -> RowView: ...

    def say(self, text: str) -> None: ...

    def remark(self, text: str) -> None: ...

    def clear(self) -> None: ...

    def error(self, text: str) -> None: ...

    def spool(self, path: str | None) -> None: ...


class TextOutput:
    """`out` is a terminal or a pipe; a pipe gets no colours, no folding and no moving pictures.

    In the form `json` each answer and each row is a line of JSON; rows are objects by column.
    """

    def __init__(
        self,
        out: IO[str] | None = None,
        err: IO[str] | None = None,
        *,
        form: Form = "table",
        interactive: bool = False,
    ) -> None:
        self.form = form
        self._interactive = interactive
        self._out = out or sys.stdout
        self._err = err or sys.stderr
        self._spooled: IO[str] | None = None

    @property
    def is_terminal(self) -> bool:
        return self._out.isatty()

    def entity(self, entity: Entity) -> None:
        if self.form == "json":
            self.say(to_json(entity))
            return
        for table in tables_of(entity):
            self.table(table)

    def table(self, table: Table) -> None:
        if table.title:
            self.say(table.title)
        if table.columns:
            self._print_table(table.columns, table.rows)
        for note in table.notes:
            self.say(note)

    def rows(self, columns: Columns | None) -> RowView:
        if columns is None:
            return LineView(self)
        if self.form == "json":
            return JsonView(self, columns)
        if self.is_terminal:
            from penstock.sql.shell.live import LiveView

            return LiveView(self, columns)
        return PlainView(self, columns)

    def say(self, text: str) -> None:
        self._write(f"{text}\n")

    def remark(self, text: str) -> None:
        """Say what only a person who types wants to know."""
        if self._interactive and self.form == "table":
            self.say(text)

    def clear(self) -> None:
        if self.is_terminal:
            self._out.write(_CLEAR)
            self._out.flush()

    def error(self, text: str) -> None:
        from penstock.sql.shell.style import error_text

        self._err.write(f"{error_text(text, self._err)}\n")
        self._err.flush()
        if self._spooled is not None:
            self._spooled.write(f"{text}\n")

    def spool(self, path: str | None) -> None:
        if self._spooled is not None:
            self._spooled.close()
        self._spooled = None if path is None else open(path, "a", encoding="utf-8")  # noqa: SIM115

    def spool_row(self, values: Iterable[Any]) -> None:
        """For views that draw on the terminal themselves: the file has every row, as a pipe would."""
        if self._spooled is not None:
            self._spooled.write("\t".join(map(show_value, values)) + "\n")

    def _print_table(self, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        from penstock.sql.shell.style import table_text

        rows = list(rows)
        self._out.write(table_text(columns, rows, self._out))
        self._out.flush()
        if self._spooled is not None:
            self._spooled.write(table_text(columns, rows, None))

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()
        if self._spooled is not None:
            self._spooled.write(text)


class LineView:
    """PRINT: lines as they are."""

    def __init__(self, output: TextOutput) -> None:
        self._output = output

    def row(self, row: Any) -> None:
        self._output.say(str(row))

    def end(self, count: int, *, interrupted: bool) -> None:
        # The terminal has written ^C, and the prompt belongs below it.
        if interrupted and self._output.is_terminal:
            self._output.say("")


class JsonView:
    def __init__(self, output: TextOutput, columns: Columns) -> None:
        self._output = output
        self._names = columns.names

    def row(self, row: Any) -> None:
        self._output.say(to_json(dict(zip(self._names, row, strict=False))))

    def end(self, count: int, *, interrupted: bool) -> None:
        pass


class PlainView:
    """For pipes: tabs between the columns, a line for their names."""

    def __init__(self, output: TextOutput, columns: Columns) -> None:
        self._output = output
        output.say("\t".join(columns.names))

    def row(self, row: Any) -> None:
        self._output.say("\t".join(map(show_value, row)))

    def end(self, count: int, *, interrupted: bool) -> None:
        pass


def show_value(value: Any) -> str:
    if value is None:
        return "null"
    return value if isinstance(value, str) else to_json(value)
