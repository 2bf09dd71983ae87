"""Functions on regular expressions, in Java's dialect.

Spark runs them natively when the pattern is written in the statement and is known to be one: a bad pattern that comes
with the data would stop a query.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from penstock.sql.expressions.spark_types import integer_value, literal_value
from penstock.sql.functions.scalar.declaring import scalar
from penstock.sql.functions.scalar.java_regex import PatternError, compiled, expand
from penstock.sql.types import SqlType

_regexp = partial(scalar, "REGULAR EXPRESSION")

_MAY_BE_ABSENT = re.compile(r"\||\)[?*]|\)\{0")
"""A group of such a pattern may take no part in a match: Spark says '' then, and we null."""


def _extract(pattern: str, text: str, group: int = 0) -> str | None:
    regex = compiled(pattern)
    if not 0 <= group <= regex.groups:
        return None
    found = regex.search(text)
    return found[group] if found else None


def _extract_all(pattern: str, text: str, group: int = 0) -> list[str | None] | None:
    regex = compiled(pattern)
    if not 0 <= group <= regex.groups:
        return None
    return [found[group] for found in regex.finditer(text)]


def _known(pattern: str) -> re.Pattern[str] | None:
    """The pattern, when it is written in the statement and Java and Python agree about it."""
    literal = literal_value(pattern)
    if literal is None:
        return None
    try:
        return compiled(literal)
    except PatternError:
        return None


def _native_group(arguments: Sequence[str]) -> str | None:
    """The group as text, when Spark gives the same for it."""
    regex = _known(arguments[0])
    group = integer_value(arguments[2]) if len(arguments) == 3 else 0
    if regex is None or group is None or not 0 <= group <= regex.groups:
        return None
    return None if group and _MAY_BE_ABSENT.search(literal_value(arguments[0]) or "") else str(group)


def _spark_extract(arguments: Sequence[str], _types: Sequence[SqlType]) -> str | None:
    group = _native_group(arguments)
    if group is None:
        return None
    pattern, text = arguments[:2]
    return f"case when {text} rlike {pattern} then regexp_extract({text}, {pattern}, {group}) end"


def _spark_extract_all(arguments: Sequence[str], _types: Sequence[SqlType]) -> str | None:
    group = _native_group(arguments)
    return None if group is None else f"regexp_extract_all({arguments[1]}, {arguments[0]}, {group})"


def _replace(text: str, pattern: str, replacement: str) -> str:
    return compiled(pattern).sub(lambda found: expand(replacement, found), text)


def _spark_replace(arguments: Sequence[str], _types: Sequence[SqlType]) -> str | None:
    replacement = literal_value(arguments[2])
    if _known(arguments[1]) is None or replacement is None or re.search(r"[\\$]", replacement):
        return None
    return f"regexp_replace({', '.join(arguments)})"


def _split(text: str, pattern: str) -> list[str]:
    """A pattern that finds nothing but places splits between characters; then no empty part ends the array."""
    regex = compiled(pattern)
    if regex.fullmatch("") is None:
        return _parts(text, regex)
    parts = _parts(text, regex, places=True)
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return parts


def _parts(text: str, regex: re.Pattern[str], places: bool = False) -> list[str]:
    parts, start = [], 0
    for found in regex.finditer(text):
        if places and found.end() == 0:
            continue
        parts.append(text[start : found.start()])
        start = found.end()
    return [*parts, text[start:]]


def _spark_split(arguments: Sequence[str], _types: Sequence[SqlType]) -> str | None:
    regex = _known(arguments[1])
    if regex is None or regex.fullmatch("") is not None:
        return None
    return f"split({arguments[0]}, {arguments[1]})"


FUNCTIONS = (
    _regexp(
        "REGEXP_EXTRACT",
        "The first part of the text that the pattern finds, or that group of it; null when there is none.",
        "pattern STRING, text STRING -> STRING",
        "pattern STRING, text STRING, group INTEGER -> STRING",
        python=_extract,
        spark=_spark_extract,
    ),
    _regexp(
        "REGEXP_EXTRACT_ALL",
        "An array of all parts of the text that the pattern finds, or of that group of them.",
        "pattern STRING, text STRING -> ARRAY<STRING>",
        "pattern STRING, text STRING, group INTEGER -> ARRAY<STRING>",
        python=_extract_all,
        spark=_spark_extract_all,
    ),
    _regexp(
        "REGEXP_REPLACE",
        "The text with everything that the pattern finds replaced. `$1` in the replacement is a group of the pattern.",
        "text STRING, pattern STRING, replacement STRING -> STRING",
        python=_replace,
        spark=_spark_replace,
    ),
    _regexp(
        "REGEXP_SPLIT_TO_ARRAY",
        "An array of the parts between what the pattern finds; empty parts too. An empty pattern splits everywhere.",
        "text STRING, pattern STRING -> ARRAY<STRING>",
        python=_split,
        spark=_spark_split,
    ),
)
