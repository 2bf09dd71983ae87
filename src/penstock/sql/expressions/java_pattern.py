"""Patterns of java.time, `yyyy-MM-dd'T'HH:mm:ss.SSSX`: cut into letters with their count, and literal text."""

from __future__ import annotations

import functools
import itertools
import re
from dataclasses import dataclass

DATE_LETTERS = frozenset("GyuMLdDEQ")
TIME_LETTERS = frozenset("ahHkKmsS")
ZONE_LETTERS = frozenset("zVOXxZ")


class PatternError(ValueError):
    """The pattern is none, or has a letter that has no meaning here."""


@dataclass(frozen=True, slots=True)
class Letters:
    """One letter, so many times."""

    letter: str
    count: int

    @property
    def is_numeric(self) -> bool:
        texts = self.letter in "aEGzVOXxZ" or (self.letter in "MLQ" and self.count > 2)
        return not texts


Token = Letters | str

_TOKEN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|([^A-Za-z'])", re.DOTALL)


@functools.lru_cache(maxsize=1024)
def tokens_of(pattern: str) -> tuple[Token, ...]:
    tokens: list[Token] = []
    place = 0
    while place < len(pattern):
        found = _TOKEN.match(pattern, place)
        if found is None:
            raise PatternError(f"Pattern ends with an incomplete string literal: {pattern}")
        tokens.append(_token(found))
        place = found.end()
    return tuple(tokens)


def _token(found: re.Match[str]) -> Token:
    if found[2]:
        if found[2] not in DATE_LETTERS | TIME_LETTERS | ZONE_LETTERS:
            raise PatternError(f"Unknown pattern letter: {found[2]}")
        return Letters(found[2], len(found[0]))
    if found[3]:
        if found[3] in "[]{}#":
            raise PatternError(f"Pattern includes reserved character: '{found[3]}'")
        return found[3]
    return found[1].replace("''", "'") or "'"


def check_letters(pattern: str, *, date: bool, time: bool) -> None:
    """Refuses a pattern with fields that the type does not have. A zone belongs to a moment, which has both."""
    for token in tokens_of(pattern):
        if isinstance(token, Letters):
            _check_letter(token.letter, date, time)


def _check_letter(letter: str, date: bool, time: bool) -> None:
    if letter in DATE_LETTERS and not date:
        raise PatternError(f"Time format contains date field '{letter}'.")
    if letter in TIME_LETTERS and not time:
        raise PatternError(f"Date format contains time field '{letter}'.")
    if letter in ZONE_LETTERS and not (date and time):
        raise PatternError(f"The format contains time-zone field '{letter}'.")


def spark_pattern(pattern: str, *, zoned: bool = False) -> str | None:
    """The pattern for Spark's date_format; None when Spark would write something else.

    `zoned`: the zone is not UTC, so that letters of zones would be wrong.
    """
    parts = []
    for is_text, group in itertools.groupby(tokens_of(pattern), key=lambda token: isinstance(token, str)):
        tokens = list(group)
        if is_text:
            literal = "".join(map(str, tokens))
            parts.append("'" + literal.replace("'", "''") + "'")
        elif all(isinstance(token, Letters) and _is_native(token, zoned) for token in tokens):
            parts += [_spark_letters(token) for token in tokens if isinstance(token, Letters)]
        else:
            return None
    return "".join(parts)


def _spark_letters(token: Letters) -> str:
    """Spark has one letter for years."""
    return ("y" if token.letter == "u" else token.letter) * token.count


_SPARK_COUNTS = {"a": 1, "S": 9, "y": 4, "u": 4, "M": 4, "L": 4, "E": 4, "D": 3, "Q": 4, "X": 3, "x": 3, "Z": 3}


def _is_native(token: Letters, zoned: bool) -> bool:
    if token.letter in "zVOG" or (zoned and token.letter in ZONE_LETTERS):
        return False
    return token.count <= _SPARK_COUNTS.get(token.letter, 2)
