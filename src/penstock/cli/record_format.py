"""Format strings for records, with the letters that kcat has.

%t topic, %p partition, %o offset, %T timestamp in ms, %d time (ISO 8601, UTC), %k key, %K its size, %s value, %S its
size, %h headers, %% a per cent sign; backslash escapes n r t 0 xHH and the backslash itself. An absent key or value is
empty, its size -1.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import click

from penstock.cli.output import show_time

Part = Callable[[Any], bytes]

_ESCAPES: Final = {"n": b"\n", "r": b"\r", "t": b"\t", "0": b"\0", "\\": b"\\", "a": b"\a"}
_TOKENS: Final = re.compile(r"%(.)|\\x([0-9a-fA-F]{2})|\\(.)|([^%\\]+)|(.)", re.DOTALL)


def _size(data: bytes | None) -> bytes:
    return b"%d" % (-1 if data is None else len(data))


def _headers(record: Any) -> bytes:
    return b",".join(name.encode() + b"=" + (value or b"") for name, value in record.headers)


_LETTERS: Final[dict[str, Part]] = {
    "t": lambda record: record.topic.encode(),
    "p": lambda record: b"%d" % record.partition,
    "o": lambda record: b"%d" % record.offset,
    "T": lambda record: b"%d" % record.timestamp,
    "d": lambda record: show_time(record.timestamp).encode(),
    "k": lambda record: record.key or b"",
    "K": lambda record: _size(record.key),
    "s": lambda record: record.value or b"",
    "S": lambda record: _size(record.value),
    "h": _headers,
}


def compile_format(text: str) -> Part:
    """A function that writes one record; a letter that means nothing is a usage error."""
    parts: list[bytes | Part] = []
    for letter, code, escape, plain, stray in _TOKENS.findall(text):
        if letter == "%":
            parts.append(b"%")
        elif letter:
            if letter not in _LETTERS:
                raise click.UsageError(f"--format: %{letter} means nothing; there are %{' %'.join(_LETTERS)} and %%")
            parts.append(_LETTERS[letter])
        elif code:
            parts.append(bytes([int(code, 16)]))
        elif escape:
            parts.append(_ESCAPES.get(escape, b"\\" + escape.encode()))
        else:
            parts.append((plain or stray).encode())
    return lambda record: b"".join(each if isinstance(each, bytes) else each(record) for each in parts)
