"""Patterns that a statement writes must be some: with one that is not, a function would give null for ever."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from penstock.sql.errors import SemanticError
from penstock.sql.expressions.java_pattern import check_letters
from penstock.sql.expressions.java_time import zone_of
from penstock.sql.expressions.nodes import Call, Expression, StringLiteral
from penstock.sql.expressions.text import format_expression
from penstock.sql.expressions.walk import calls_of
from penstock.sql.functions.scalar.java_regex import compiled
from penstock.sql.statements import Query

Check = Callable[[str], object]

_MOMENT: Final[Check] = partial(check_letters, date=True, time=True)
_DATE: Final[Check] = partial(check_letters, date=True, time=False)
_TIME: Final[Check] = partial(check_letters, date=False, time=True)

_CHECKS: Final[dict[str, dict[int, Check]]] = {
    "REGEXP_EXTRACT": {0: compiled},
    "REGEXP_EXTRACT_ALL": {0: compiled},
    "REGEXP_REPLACE": {1: compiled},
    "REGEXP_SPLIT_TO_ARRAY": {1: compiled},
    "DATETOSTRING": {1: _DATE},
    "FORMAT_DATE": {1: _DATE},
    "PARSE_DATE": {1: _DATE},
    "STRINGTODATE": {1: _MOMENT},
    "FORMAT_TIME": {1: _TIME},
    "PARSE_TIME": {1: _TIME},
    "FORMAT_TIMESTAMP": {1: _MOMENT, 2: zone_of},
    "PARSE_TIMESTAMP": {1: _MOMENT, 2: zone_of},
    "STRINGTOTIMESTAMP": {1: _MOMENT, 2: zone_of},
    "TIMESTAMPTOSTRING": {1: _MOMENT, 2: zone_of},
    "CONVERT_TZ": {1: zone_of, 2: zone_of},
}
"""By function, the positions of patterns and time zones."""


def check_patterns(query: Query) -> None:
    for expression in _expressions(query):
        for call in calls_of(expression):
            _check_call(call)


def _expressions(query: Query) -> Iterator[Expression]:
    yield from (item.expression for item in query.items if item.expression is not None)
    yield from (join.condition for join in query.joins)
    yield from (each for each in (query.where, query.having) if each is not None)
    yield from (*query.group_by, *query.partition_by)


def _check_call(call: Call) -> None:
    for position, check in _CHECKS.get(call.name, {}).items():
        argument = call.arguments[position] if position < len(call.arguments) else None
        if not isinstance(argument, StringLiteral):
            continue
        try:
            check(argument.value)
        except ValueError as error:
            raise SemanticError(
                f"{format_expression(call)}: {f'{error}'.rstrip('.')}.", hint=f"Correct {format_expression(argument)}."
            ) from None
