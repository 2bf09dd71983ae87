"""Expressions, types and names as text: the inverse of the parser.

The text is what a person would write: brackets only where precedence asks for them, names quoted only where folding to
upper case or a reserved word would change them. Parsing the text gives an equal expression again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from penstock.sql.expressions import nodes as n
from penstock.sql.types import Array, Decimal, Map, Scalar, SqlType, Struct

RESERVED_WORDS: Final = frozenset({
    "ALL", "AND", "AS", "BETWEEN", "BY", "CASE", "CAST", "CREATE", "DISTINCT", "DROP", "ELSE", "END", "FALSE", "FROM",
    "FULL", "GROUP", "HAVING", "IN", "INNER", "INSERT", "INTO", "IS", "JOIN", "LEFT", "LIKE", "LIMIT", "NOT", "NULL",
    "ON", "OR", "OUTER", "RIGHT", "SELECT", "THEN", "TRUE", "VALUES", "WHEN", "WHERE", "WINDOW", "WITH", "WITHIN",
})  # fmt: skip
"""Words that are names only between back-ticks."""

OR, AND, NOT, PREDICATE, CONCAT, SUM, PRODUCT, UNARY, POSTFIX, ATOM = range(10)
"""How tightly things bind, loosest first; the parser climbs the same ladder."""

ARITHMETIC_LEVELS: Final = {"+": SUM, "-": SUM, "*": PRODUCT, "/": PRODUCT, "%": PRODUCT}


def format_name(name: str) -> str:
    plain = name.isidentifier() and name.isascii() and name.upper() == name and name not in RESERVED_WORDS
    return name if plain else "`" + name.replace("`", "``") + "`"


def format_string(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def format_type(sql_type: SqlType) -> str:
    match sql_type:
        case Array(element):
            return f"ARRAY<{format_type(element)}>"
        case Map(key, value):
            return f"MAP<{format_type(key)}, {format_type(value)}>"
        case Struct(fields):
            return f"STRUCT<{_listed(f'{format_name(field.name)} {format_type(field.type)}' for field in fields)}>"
        case Decimal() | Scalar():
            return str(sql_type)


def format_expression(expression: n.Expression) -> str:
    return _FORMATS[type(expression)](expression)


def _at(level: int, expression: n.Expression) -> str:
    """The text of an operand, in brackets when it binds more loosely than its place."""
    text = format_expression(expression)
    return text if _level(expression) >= level else f"({text})"


def _level(expression: n.Expression) -> int:
    match expression:
        case n.Logical(operator):
            return OR if operator == "OR" else AND
        case n.Arithmetic(operator):
            return ARITHMETIC_LEVELS[operator]
        case n.IntegerLiteral() | n.DecimalLiteral() | n.DoubleLiteral():
            return UNARY
        case _:
            return _LEVELS.get(type(expression), ATOM)


_LEVELS: Final[dict[type, int]] = {
    n.Not: NOT,
    n.Comparison: PREDICATE,
    n.IsNull: PREDICATE,
    n.Between: PREDICATE,
    n.In: PREDICATE,
    n.Like: PREDICATE,
    n.Negate: UNARY,
    n.FieldAccess: POSTFIX,
    n.Subscript: POSTFIX,
}


def _listed(texts: Iterable[str]) -> str:
    return ", ".join(texts)


def _expressions(expressions: Iterable[n.Expression]) -> str:
    return _listed(map(format_expression, expressions))


def _double(value: float) -> str:
    text = repr(value)
    return text if "e" in text else f"{text}E0"


def _column(column: n.Column) -> str:
    return ".".join(format_name(part) for part in (column.source, column.name) if part is not None)


def _call(call: n.Call) -> str:
    arguments = "*" if call.name == "COUNT" and not call.arguments else _expressions(call.arguments)
    return f"{format_name(call.name)}({arguments})"


def _binary(expression: n.Arithmetic | n.Logical) -> str:
    level = _level(expression)
    return f"{_at(level, expression.left)} {expression.operator} {_at(level + 1, expression.right)}"


def _negate(negate: n.Negate) -> str:
    # Brackets keep two minus signs from becoming a comment, and a minus apart from the number it would join.
    return f"-{_at(POSTFIX, negate.operand)}"


def _comparison(comparison: n.Comparison) -> str:
    return f"{_at(CONCAT, comparison.left)} {comparison.operator} {_at(CONCAT, comparison.right)}"


def _not(expression: Any) -> str:
    return "NOT " if expression.negated else ""


def _between(between: n.Between) -> str:
    operand, low, high = (_at(CONCAT, each) for each in (between.operand, between.low, between.high))
    return f"{operand} {_not(between)}BETWEEN {low} AND {high}"


def _like(like: n.Like) -> str:
    escape = "" if like.escape is None else f" ESCAPE {format_string(like.escape)}"
    return f"{_at(CONCAT, like.operand)} {_not(like)}LIKE {_at(CONCAT, like.pattern)}{escape}"


def _case(case: n.Case) -> str:
    operand = "" if case.operand is None else f" {format_expression(case.operand)}"
    whens = "".join(
        f" WHEN {format_expression(when.condition)} THEN {format_expression(when.result)}" for when in case.whens
    )
    default = "" if case.default is None else f" ELSE {format_expression(case.default)}"
    return f"CASE{operand}{whens}{default} END"


def _lambda(function: n.Lambda) -> str:
    names = _listed(map(format_name, function.parameters))
    parameters = names if len(function.parameters) == 1 else f"({names})"
    return f"{parameters} => {format_expression(function.body)}"


def _map(expression: n.MapOf) -> str:
    entries = (f"{format_expression(each.key)} := {format_expression(each.value)}" for each in expression.entries)
    return f"MAP({_listed(entries)})"


def _struct(expression: n.StructOf) -> str:
    fields = (f"{format_name(field.name)} := {format_expression(field.expression)}" for field in expression.fields)
    return f"STRUCT({_listed(fields)})"


_FORMATS: Final[dict[type, Callable[[Any], str]]] = {
    n.NullLiteral: lambda _: "NULL",
    n.BooleanLiteral: lambda e: "TRUE" if e.value else "FALSE",
    n.IntegerLiteral: lambda e: str(e.value),
    n.DecimalLiteral: lambda e: str(e.text),
    n.DoubleLiteral: lambda e: _double(e.value),
    n.StringLiteral: lambda e: format_string(e.value),
    n.Column: _column,
    n.LambdaVariable: lambda e: format_name(e.name),
    n.Call: _call,
    n.Arithmetic: _binary,
    n.Logical: _binary,
    n.Negate: _negate,
    n.Comparison: _comparison,
    n.Not: lambda e: f"NOT {_at(NOT, e.operand)}",
    n.IsNull: lambda e: f"{_at(CONCAT, e.operand)} IS {_not(e)}NULL",
    n.Between: _between,
    n.In: lambda e: f"{_at(CONCAT, e.operand)} {_not(e)}IN ({_expressions(e.options)})",
    n.Like: _like,
    n.Case: _case,
    n.Cast: lambda e: f"CAST({format_expression(e.operand)} AS {format_type(e.type)})",
    n.FieldAccess: lambda e: f"{_at(POSTFIX, e.operand)}->{format_name(e.name)}",
    n.Subscript: lambda e: f"{_at(POSTFIX, e.operand)}[{format_expression(e.index)}]",
    n.ArrayOf: lambda e: f"ARRAY[{_expressions(e.items)}]",
    n.MapOf: _map,
    n.StructOf: _struct,
    n.Lambda: _lambda,
}
