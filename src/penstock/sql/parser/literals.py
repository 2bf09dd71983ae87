"""Numbers, durations, and the literals of WITH clauses."""

from __future__ import annotations

import math
from typing import Final

from penstock.sql.expressions.nodes import DecimalLiteral, DoubleLiteral, IntegerLiteral
from penstock.sql.parser.cursor import Cursor
from penstock.sql.statements import Properties
from penstock.sql.types import MAX_DECIMAL_PRECISION

BIGINT_MIN: Final = -(2**63)
BIGINT_MAX: Final = 2**63 - 1
DURATION_MAX_MS: Final = BIGINT_MAX

_UNIT_MS: Final = {
    "MILLISECOND": 1,
    "SECOND": 1_000,
    "MINUTE": 60_000,
    "HOUR": 3_600_000,
    "DAY": 86_400_000,
}
UNIT_MS: Final = {**_UNIT_MS, **{f"{unit}S": size for unit, size in _UNIT_MS.items()}}

Number = IntegerLiteral | DecimalLiteral | DoubleLiteral


def is_number(cursor: Cursor) -> bool:
    return cursor.token.kind == "number" or _is_leading_point(cursor)


def _is_leading_point(cursor: Cursor) -> bool:
    """`.5` comes as a point and a number."""
    point, digits = cursor.token, cursor.ahead(1)
    return point.kind == "symbol" and point.text == "." and digits.kind == "number" and point.end == digits.start


def number(cursor: Cursor, *, negative: bool = False) -> Number:
    prefix = "0." if _is_leading_point(cursor) else ""
    if prefix:
        cursor.advance()
    token = cursor.advance()
    text = ("-" if negative else "") + prefix + token.text
    if cursor.token.start == token.end and cursor.token.kind in ("word", "number"):
        written = f"{token.text}{cursor.token.text}"
        cursor.fail(f"{written} is neither a number nor a name.", hint=f"Write `{written}` if it is a name.", at=token)
    try:
        return _literal(text)
    except (ValueError, OverflowError):
        cursor.fail(f"{text[:50]} is not a number of the language: it is malformed or out of range.", at=token)


def _literal(text: str) -> Number:
    if "e" in text.lower():
        value = float(text)
        if math.isinf(value):
            raise OverflowError
        return DoubleLiteral(value)
    if "." in text:
        if text.count(".") > 1 or sum(character.isdigit() for character in text) > MAX_DECIMAL_PRECISION:
            raise OverflowError
        return DecimalLiteral(text)
    digits = text.lstrip("-").lstrip("0")
    if len(digits) > 19 or not BIGINT_MIN <= int(text) <= BIGINT_MAX:
        raise OverflowError
    return IntegerLiteral(int(text))


def duration_ms(cursor: Cursor) -> int:
    """`10 SECONDS`"""
    token = cursor.token
    count = cursor.integer()
    milliseconds = count * UNIT_MS[cursor.expect_one(*UNIT_MS)]
    if milliseconds > DURATION_MAX_MS:
        cursor.fail("The duration is too long.", at=token)
    return milliseconds


def properties(cursor: Cursor, *, keep_case: bool = False) -> Properties:
    """`WITH (NAME = literal, ...)`, or nothing."""
    found: Properties = {}
    if not cursor.accept("WITH"):
        return found
    cursor.expect_symbol("(")
    if cursor.accept_symbol(")"):
        return found
    for name, value in cursor.listed(lambda: _property(cursor, keep_case=keep_case)):
        if name in found:
            cursor.fail(f"The property {name} is given twice.")
        found[name] = value
    cursor.expect_symbol(")")
    return found


def _property(cursor: Cursor, *, keep_case: bool) -> tuple[str, object]:
    name = cursor.name_or_string("the name of a property")
    cursor.expect_symbol("=")
    return name if keep_case else name.upper(), _property_value(cursor)


def _property_value(cursor: Cursor) -> object:
    text = cursor.accept_string()
    if text is not None:
        return text
    word = cursor.accept_one("TRUE", "FALSE")
    if word is not None:
        return word == "TRUE"
    negative = cursor.accept_symbol("-")
    if not is_number(cursor):
        cursor.fail(hint="Expected a string in single quotes, a number, TRUE or FALSE.")
    literal = number(cursor, negative=negative)
    return float(literal.text) if isinstance(literal, DecimalLiteral) else literal.value
