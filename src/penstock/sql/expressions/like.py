"""LIKE: `%` is any text, `_` one character, and after the escape character, if one is given, every character is itself.

As a regular expression in Python; in Spark as its own LIKE, whose escape is always the backslash, or as an expression
when the pattern comes with the rows.
"""

from __future__ import annotations

import functools
import re

from penstock.sql.errors import SemanticError
from penstock.sql.expressions.spark_types import string_literal

_REGEX_SPECIAL = r"([\\^$.|?*+()\[\]{}])"


@functools.lru_cache(maxsize=1024)
def like_regex(pattern: str, escape: str | None) -> re.Pattern[str]:
    """`%` is any text, `_` one character; after the escape character every character is itself."""
    parts, escaped = [], False
    for character in pattern:
        if escaped or character not in ("%", "_", escape):
            parts.append(re.escape(character))
            escaped = False
        elif character == escape:
            escaped = True
        else:
            parts.append(".*" if character == "%" else ".")
    if escaped:
        raise ValueError("LIKE pattern must not end with the escape character")
    return re.compile("".join(parts), re.DOTALL)


def spark_like_pattern(pattern: str, escape: str | None) -> str | None:
    """The pattern with Spark's escape, which is always the backslash; None when it ends in an open escape."""
    parts, characters = [], iter(pattern)
    for character in characters:
        if character == escape:
            literal = next(characters, None)
            if literal is None:
                return None
            parts.append(f"\\{literal}" if literal in "%_\\" else literal)
        else:
            parts.append("\\\\" if character == "\\" else character)
    return "".join(parts)


def spark_like_by_regex(operand: str, pattern: str, escape: str | None) -> str:
    """The pattern becomes a regular expression row by row."""
    if escape is not None:
        raise SemanticError("LIKE with ESCAPE needs a pattern that is a literal.", hint="Leave ESCAPE out.")
    regex = f"regexp_replace({pattern}, {string_literal(_REGEX_SPECIAL)}, {string_literal(chr(92) * 2 + '$1')})"
    for wildcard, meaning in (("%", ".*"), ("_", ".")):
        regex = f"replace({regex}, '{wildcard}', '{meaning}')"
    return f"{operand} rlike concat('(?s)^', {regex}, '\\\\z')"
