"""Java properties files: comments, `=` `:` or blank between key and value, continued lines, escapes.

A line that Java would take silently but that is surely a mistake (a key without a value, an unfinished `\\u` escape) is
reported with file and line. A key that occurs twice counts the last time, as in Java.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from penstock.base.config.declaration import Problem

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_BLANKS = " \t\f"


@dataclass(frozen=True, slots=True)
class Property:
    key: str
    value: str
    line: int


class _UnfinishedEscapeError(ValueError):
    pass


def decode_properties(data: bytes) -> str:
    """Properties files were Latin-1 once, and are UTF-8 mostly; some editors put a mark in front of the latter."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def parse_properties(text: str, file: str) -> tuple[list[Property], list[Problem]]:
    """The properties of a file's text, and what is wrong with it."""
    properties, problems = [], []
    for number, line in _logical_lines(text):
        # A problem shows the key alone: the value might be a secret.
        raw_key, separator, raw_value = _split(line)
        try:
            key, value = _unescape(raw_key), _unescape(raw_value)
        except _UnfinishedEscapeError as error:
            problems.append(Problem(key=raw_key, reason=str(error), origin=f"{file}:{number}"))
            continue
        if not key or not separator:
            reason = "not of the form key=value" if not separator else "no key before the separator"
            problems.append(Problem(key=raw_key, reason=reason, origin=f"{file}:{number}"))
        else:
            properties.append(Property(key, value, number))
    return properties, problems


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their number, continued ones joined, blank ones and comments left out."""
    gathered, first = "", 0
    for number, raw in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), start=1):
        line = raw.lstrip(_BLANKS)
        if not gathered:
            if not line or line[0] in "#!":
                continue
            first = number
        gathered += line
        if _ends_open(line):
            gathered = gathered[:-1]
        else:
            yield first, gathered
            gathered = ""
    if gathered:
        yield first, gathered


def _ends_open(line: str) -> bool:
    """Whether the line ends with an odd number of backslashes, so that the next one continues it."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _split(line: str) -> tuple[str, str, str]:
    position = 0
    while position < len(line) and line[position] not in "=:" + _BLANKS:
        position += 2 if line[position] == "\\" else 1
    key, rest = line[:position], line[position:]
    separator = rest[:1]
    rest = rest.lstrip(_BLANKS)
    if rest[:1] in ("=", ":"):
        separator, rest = rest[0], rest[1:].lstrip(_BLANKS)
    # A lone word with blanks after it is no property either.
    return key, separator if rest or separator in ("=", ":") else "", rest


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    out, position = [], 0
    while position < len(text):
        sign = text[position]
        position += 1
        if sign != "\\":
            out.append(sign)
            continue
        escaped = text[position : position + 1]
        position += 1
        if escaped == "u":
            digits = text[position : position + 4]
            position += 4
            out.append(_unicode(digits))
        else:
            out.append(_ESCAPES.get(escaped, escaped))
    # Characters beyond the basic plane are written as two escapes, a surrogate pair.
    return "".join(out).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _unicode(digits: str) -> str:
    if len(digits) != 4 or any(digit not in "0123456789abcdefABCDEF" for digit in digits):
        raise _UnfinishedEscapeError("\\u must be followed by four hexadecimal digits")
    return chr(int(digits, 16))
