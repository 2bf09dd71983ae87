"""A script cut into statements, and variables put in their places.

Both walk over the text in pieces (a comment, something quoted, a run of plain text), so that a semicolon or a `${name}`
counts only where it means something.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from penstock.base.config.text import closest
from penstock.sql.errors import SqlSyntaxError
from penstock.sql.parser.cursor import Origin

_PIECE: Final = re.compile(
    r"""
    (?P<comment> --[^\r\n]* | /\*.*?\*/ )
  | (?P<quoted> '(?:[^']|'')*' | `(?:[^`]|``)*` | "(?:[^"]|"")*" )
  | (?P<open> /\*.* | ['`"].* )
  | (?P<end> ; )
  | (?P<space> \s+ )
  | (?P<plain> [^\s;'"`/-]+ | . )
    """,
    re.VERBOSE | re.DOTALL,
)

_VARIABLE: Final = re.compile(r"(?P<escape>\$)?\$\{(?P<name>[^{}]*)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RawStatement:
    """`text` has neither its semicolon nor the comments around it; `complete` is False when the semicolon is missing.

    `open_quote`: the text ends inside a comment or something quoted.
    """

    text: str
    line: int
    column: int
    complete: bool
    open_quote: bool = False


def split_statements(text: str) -> list[RawStatement]:
    statements = []
    start: int | None = None
    stop = 0
    opened = False
    for piece in _PIECE.finditer(text):
        if piece.lastgroup == "end":
            if start is not None:
                statements.append(_raw(text, start, stop, complete=True))
            start = None
        elif piece.lastgroup not in ("comment", "space"):
            start = piece.start() if start is None else start
            stop = piece.end()
            opened = piece.lastgroup == "open"
    if start is not None:
        statements.append(_raw(text, start, stop, complete=False, open_quote=opened))
    return statements


def _raw(text: str, start: int, stop: int, *, complete: bool, open_quote: bool = False) -> RawStatement:
    line, column = Origin().place(text, start)
    return RawStatement(text=text[start:stop], line=line, column=column, complete=complete, open_quote=open_quote)


def substitute_variables(text: str, variables: Mapping[str, str]) -> str:
    """`${name}` becomes the variable's value, also inside quotes; `$${name}` stands for the text `${name}`."""
    return "".join(_substituted(text, variables))


def _substituted(text: str, variables: Mapping[str, str]) -> Iterator[str]:
    known = {name.lower(): value for name, value in variables.items()}
    for begin, end, is_comment in _pieces(text):
        if is_comment:
            yield text[begin:end]
            continue
        done = begin
        for found in _VARIABLE.finditer(text, begin, end):
            yield text[done : found.start()]
            yield _value(text, found, known)
            done = found.end()
        yield text[done:end]


def _pieces(text: str) -> Iterator[tuple[int, int, bool]]:
    """Comments and the text between them."""
    begin = 0
    for piece in _PIECE.finditer(text):
        if piece.lastgroup == "comment":
            yield begin, piece.start(), False
            yield piece.start(), piece.end(), True
            begin = piece.end()
    yield begin, len(text), False


def _value(text: str, found: re.Match[str], known: Mapping[str, str]) -> str:
    if found["escape"]:
        return found[0][1:]
    name = found["name"].strip().lower()
    if name in known:
        return known[name]
    meant = closest(name, known)
    hint = f"Did you mean ${{{meant}}}?" if meant else f"Set it with: DEFINE {name or 'name'} = 'value';"
    line, column = Origin().place(text, found.start())
    raise SqlSyntaxError(f"The variable {found[0]} is not defined.", line=line, column=column, hint=hint)
