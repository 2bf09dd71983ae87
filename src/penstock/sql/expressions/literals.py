"""The types of numbers that are written in a statement."""

from __future__ import annotations

import decimal

from penstock.sql.errors import SemanticError
from penstock.sql.expressions.coercion import bounded_decimal
from penstock.sql.types import BIGINT, DOUBLE, INTEGER, Decimal, SqlType

_INTEGER_LIMIT = 2**31
_BIGINT_LIMIT = 2**63


def number_type_of_text(text: str) -> SqlType | None:
    """The type a number in quotes would have without them."""
    try:
        value = decimal.Decimal(text.strip())
    except decimal.InvalidOperation:
        return None
    if not value.is_finite():
        return None
    if "e" in text.lower():
        return DOUBLE
    return decimal_type(text.strip()) if "." in text else integer_type(int(value))


def integer_type(value: int) -> SqlType:
    if -_INTEGER_LIMIT <= value < _INTEGER_LIMIT:
        return INTEGER
    if -_BIGINT_LIMIT <= value < _BIGINT_LIMIT:
        return BIGINT
    raise SemanticError(f"The number {value} is too large for BIGINT.", hint="Write it with a point or an exponent.")


def decimal_type(text: str) -> Decimal:
    """`0.05` is DECIMAL(3, 2): the digits before the point count at least once."""
    value = decimal.Decimal(text)
    scale = max(0, -int(value.as_tuple().exponent))
    return bounded_decimal(max(len(value.as_tuple().digits), scale + 1), scale)
