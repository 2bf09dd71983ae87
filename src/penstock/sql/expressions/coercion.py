"""Types that meet: which of two is the wider, and what stands for both.

Numbers widen INTEGER, BIGINT, DECIMAL, DOUBLE. NULL takes any type. Arrays, maps and structs meet element by element;
a struct of both has the fields of both.
"""

from __future__ import annotations

from penstock.sql.types import (
    BIGINT,
    DOUBLE,
    INTEGER,
    MAX_DECIMAL_PRECISION,
    NULL,
    Array,
    Decimal,
    Field,
    Map,
    SqlType,
    Struct,
)

_INTEGER_DIGITS: dict[SqlType, int] = {INTEGER: 10, BIGINT: 19}
_RANKS: dict[SqlType, int] = {INTEGER: 0, BIGINT: 1, DOUBLE: 3}
_MINIMUM_ADJUSTED_SCALE = 6


def is_number(sql_type: SqlType) -> bool:
    return isinstance(sql_type, Decimal) or sql_type in (INTEGER, BIGINT, DOUBLE)


def widening_steps(actual: SqlType, wanted: SqlType) -> int | None:
    """How many steps of widening lie between two number types; None when there is no way."""
    if not (is_number(actual) and is_number(wanted)):
        return None
    steps = _rank(wanted) - _rank(actual)
    return steps if steps >= 0 else None


def _rank(sql_type: SqlType) -> int:
    return 2 if isinstance(sql_type, Decimal) else _RANKS[sql_type]


def common_type(left: SqlType, right: SqlType) -> SqlType | None:
    """The type that both can be turned into without loss (but for DOUBLE), or None."""
    if left == right or right == NULL:
        return left
    if left == NULL:
        return right
    match left, right:
        case Array(one), Array(other):
            element = common_type(one, other)
            return None if element is None else Array(element)
        case Map(key, value), Map(other_key, other_value):
            keys, values = common_type(key, other_key), common_type(value, other_value)
            return None if keys is None or values is None else Map(keys, values)
        case Struct(), Struct():
            return _common_struct(left, right)
    return common_number(left, right)


def common_number(left: SqlType, right: SqlType) -> SqlType | None:
    if not (is_number(left) and is_number(right)):
        return None
    if DOUBLE in (left, right):
        return DOUBLE
    if isinstance(left, Decimal) or isinstance(right, Decimal):
        return _common_decimal(as_decimal(left), as_decimal(right))
    return BIGINT if BIGINT in (left, right) else INTEGER


def as_decimal(sql_type: SqlType) -> Decimal:
    """The decimal that holds every value of an integer type."""
    return sql_type if isinstance(sql_type, Decimal) else Decimal(_INTEGER_DIGITS[sql_type], 0)


def _common_decimal(left: Decimal, right: Decimal) -> Decimal:
    scale = max(left.scale, right.scale)
    return bounded_decimal(max(left.precision - left.scale, right.precision - right.scale) + scale, scale)


def bounded_decimal(precision: int, scale: int) -> Decimal:
    """Beyond the limit of precision the scale gives way, down to six digits, as in Spark."""
    if precision <= MAX_DECIMAL_PRECISION:
        return Decimal(precision, scale)
    whole_digits = precision - scale
    kept_scale = max(MAX_DECIMAL_PRECISION - whole_digits, min(scale, _MINIMUM_ADJUSTED_SCALE))
    return Decimal(MAX_DECIMAL_PRECISION, kept_scale)


def _common_struct(left: Struct, right: Struct) -> Struct | None:
    fields = []
    names = [field.name for field in left.fields]
    for name in names + [field.name for field in right.fields if field.name not in names]:
        one, other = left.field(name), right.field(name)
        joined = common_type(one.type if one else NULL, other.type if other else NULL)
        if joined is None:
            return None
        fields.append(Field(name, joined))
    return Struct(tuple(fields))
