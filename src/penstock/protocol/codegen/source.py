"""Builds the text of one function, line by line, together with the names that its code refers to."""

from __future__ import annotations

import dataclasses
import itertools
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Final

FIXED_FORMATS: Final = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
    "uuid": "16s",
}
"""Kafka's fixed-size types as struct formats. An id is sixteen bytes that still have to become a UUID."""


SHORT_ARRAY: Final = 16
"""Arrays of numbers below this length (replica lists above all) have their structs ready."""


@cache
def short_array_packers(prefix: str, element: str) -> tuple[Callable[..., bytes], ...]:
    """By length: packs the count and the elements at once."""
    return tuple(struct.Struct(f">{prefix}{length}{element}").pack for length in range(SHORT_ARRAY))


@cache
def short_array_unpackers(element: str) -> tuple[Callable[..., tuple[Any, ...]], ...]:
    """By length: unpacks the elements."""
    return tuple(struct.Struct(f">{length}{element}").unpack_from for length in range(SHORT_ARRAY))


class Source:
    def __init__(self, names: dict[str, Any]) -> None:
        self.names = names
        self._lines: list[str] = []
        self._depth = 0
        self._numbers = itertools.count(1)

    def line(self, text: str) -> None:
        self._lines.append("    " * self._depth + text)

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        self.line(header)
        self._depth += 1
        yield
        self._depth -= 1

    def variable(self, prefix: str) -> str:
        return f"{prefix}{next(self._numbers)}"

    def constant(self, value: object, prefix: str = "c") -> str:
        """A name for a value that the code uses but that has no literal."""
        name = self.variable(prefix)
        self.names[name] = value
        return name

    def text(self) -> str:
        return "\n".join(self._lines) + "\n"


def default_of(field: dataclasses.Field[Any]) -> Any:
    """A fresh default value of a field."""
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default
