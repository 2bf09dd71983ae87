"""JSON that is read and written again without a change of its numbers.

A float has sixteen digits and no trailing zeros; DECIMAL(38, 2) has more of both. So numbers with a point or an
exponent stay the text that the server sent.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Number:
    """`text` is the number as it was sent."""

    text: str

    def __str__(self) -> str:
        return self.text


def read_json(text: str | bytes) -> Any:
    """Raises ValueError."""
    return json.loads(text, parse_float=Number)


def to_json(value: Any) -> str:
    match value:
        case Number(text):
            return text
        case dict():
            return "{" + ", ".join(f"{to_json(str(key))}: {to_json(each)}" for key, each in value.items()) + "}"
        case list() | tuple():
            return "[" + ", ".join(map(to_json, value)) + "]"
        case _:
            return json.dumps(value, ensure_ascii=False)
