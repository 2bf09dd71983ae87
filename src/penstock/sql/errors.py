"""What can be wrong with a statement, told to the person who wrote it.

Every error carries the code ksqlDB clients know (HTTP status times 100 plus a number). The server maps it to an answer
in one place; nothing else in this package knows of HTTP.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class SqlError(Exception):
    """A statement, query or record that cannot be done as asked."""

    code = 40001
    statement_text: str | None = None
    """The statement that failed, once the engine knows it."""
    entities: Sequence[dict[str, Any]] = ()
    """What the statements before it in the same request gave."""

    def __init__(
        self,
        message: str,
        *,
        line: int | None = None,
        column: int | None = None,
        hint: str | None = None,
        about: object = None,
    ):
        """`about`: the column, as it was parsed, or the name of the function whose place the parser knows."""
        self.message = message
        self.line = line
        self.column = column
        self.hint = hint
        self.about = about
        super().__init__(str(self))

    def __str__(self) -> str:
        place = f"line {self.line}:{self.column}: " if self.line is not None else ""
        hint = f" {self.hint}" if self.hint else ""
        return f"{place}{self.message}{hint}"


class SqlSyntaxError(SqlError):
    """The text is not a statement."""


class SemanticError(SqlError):
    """The statement is well formed but names or combines things that do not fit."""


class NotSupportedError(SqlError):
    """The statement belongs to the language but does not run here."""


class WrongEndpointError(SqlError):
    """The statement runs, but is answered by another endpoint."""

    code = 40002


class NotFoundError(SqlError):
    """The query or entity that was named does not exist."""

    code = 40400


class EngineError(SqlError):
    """The statement is good and the engine failed to do it."""

    code = 50000


class CommandTopicBusyError(SqlError):
    """Other writers kept the command topic for too long."""

    code = 50301


class NotReadyError(SqlError):
    """The server is still replaying its command topic."""

    code = 50302
