"""Times as people write them, where a row's time is compared: ROWTIME > '2020-02-23T23:45' means milliseconds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from penstock.sql.errors import SemanticError
from penstock.sql.expressions.casting import caster
from penstock.sql.expressions.nodes import Between, Column, Comparison, Expression, IntegerLiteral, StringLiteral
from penstock.sql.plan.rewriting import rewrite
from penstock.sql.schema import ROWTIME, WINDOWEND, WINDOWSTART
from penstock.sql.types import STRING, TIMESTAMP

_TIMES: Final = frozenset({ROWTIME, WINDOWSTART, WINDOWEND})


def times_as_numbers(expression: Expression) -> Expression:
    """The expression with texts that are compared to a row's time as milliseconds."""

    def place(part: Expression) -> Expression | None:
        match part:
            case Comparison(_, left, right) if _is_time(left) or _is_time(right):
                return msgspec.structs.replace(part, left=_number(left), right=_number(right))
            case Between(operand, low, high) if _is_time(operand):
                return msgspec.structs.replace(part, low=_number(low), high=_number(high))
            case _:
                return None

    return rewrite(expression, place)


def _is_time(expression: Expression) -> bool:
    return isinstance(expression, Column) and expression.name in _TIMES


def _number(expression: Expression) -> Expression:
    return IntegerLiteral(parse_instant_ms(expression.value)) if isinstance(expression, StringLiteral) else expression


def parse_instant_ms(text: str) -> int:
    """Milliseconds of a full or partial date and time, in UTC unless it names an offset."""
    read = caster(STRING, TIMESTAMP)
    assert read is not None, "text casts to TIMESTAMP"
    try:
        moment: datetime = read(text)
    except ValueError:
        raise SemanticError(
            f"Failed to parse timestamp '{text}'.",
            hint="Required format is: \"yyyy-MM-dd'T'HH:mm:ss.SSS\", with an optional numeric timezone, as in '+0530'.",
        ) from None
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
