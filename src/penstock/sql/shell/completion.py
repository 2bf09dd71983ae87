"""Completion: words of the language, functions, and the names of streams, tables and queries the server has.

Names are asked for when a statement begins and kept for some seconds; a server that does not answer costs nothing but
its names.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, Final

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from penstock.sql.expressions.text import RESERVED_WORDS, format_name
from penstock.sql.shell.rest import RestClient, ShellError

NAMES_KEPT_S: Final = 10.0
_WORDS: Final = tuple(
    sorted(RESERVED_WORDS | {
        "ADVANCE", "ALTER", "ARRAY", "ASSERT", "BEGINNING", "BIGINT", "BOOLEAN", "BYTES", "CHANGES", "CLEAR",
        "COLUMN", "DATE", "DAYS", "DECIMAL", "DEFINE", "DELETE", "DESCRIBE", "DOUBLE", "EMIT", "EXISTS", "EXIT",
        "EXPLAIN", "EXTENDED", "FINAL", "FUNCTION", "FUNCTIONS", "GRACE", "HEADER", "HEADERS", "HELP", "HISTORY",
        "HOPPING", "HOURS", "IF", "INTEGER", "KEY", "LIST", "MAP", "MILLISECONDS", "MINUTES", "OUTPUT", "PARTITION",
        "PAUSE", "PERIOD", "PRIMARY", "PRINT", "PROPERTIES", "QUERIES", "REPLACE", "RESUME", "RETENTION", "RUN",
        "SCRIPT", "SECONDS", "SERVER", "SESSION", "SET", "SHOW", "SIZE", "SOURCE", "SPOOL", "STREAM", "STREAMS",
        "STRING", "STRUCT", "TABLE", "TABLES", "TERMINATE", "TIME", "TIMESTAMP", "TOPIC", "TOPICS", "TUMBLING",
        "TYPE", "TYPES", "UNDEFINE", "UNSET", "VARCHAR", "VARIABLES", "VERSION",
    })
)  # fmt: skip


class Names:
    """What the server has, by name."""

    def __init__(self, client: RestClient, now: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._now = now
        self._asked_at: float | None = None
        self._functions: tuple[str, ...] = ()
        self._things: tuple[str, ...] = ()

    def all(self) -> tuple[str, ...]:
        if self._asked_at is None or self._now() - self._asked_at > NAMES_KEPT_S:
            self._asked_at = self._now()
            try:
                self._ask()
            except ShellError:
                # Completion is a help; the statement itself will tell that the server is away.
                pass
        return (*self._things, *self._functions)

    def _ask(self) -> None:
        if not self._functions:
            self._functions = tuple(f"{name}(" for name in self._named("SHOW FUNCTIONS;", "functions", "name"))
        sources = [
            format_name(name)
            for thing in ("streams", "tables")
            for name in self._named(f"SHOW {thing.upper()};", thing, "name")
        ]
        self._things = (*sources, *self._named("SHOW QUERIES;", "queries", "id"))

    def _named(self, statement: str, field: str, key: str) -> list[str]:
        items: Iterable[dict[str, Any]] = self._client.execute(statement, {}, {})[0][field]
        return [item[key] for item in items]


class SqlCompleter(Completer):
    def __init__(self, names: Names) -> None:
        self._names = names

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        word = document.get_word_before_cursor(WORD=False)
        if not word or not (word[0].isalpha() or word[0] in "_`") or _in_string(document.text_before_cursor):
            return
        lower = word.islower()
        for each in (*self._names.all(), *_WORDS):
            if each.upper().startswith(word.upper()):
                yield Completion(each.lower() if lower and "`" not in each else each, start_position=-len(word))


def _in_string(text: str) -> bool:
    return text.count("'") % 2 == 1
