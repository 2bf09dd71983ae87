"""Expressions, by climbing the ladder of precedence in `penstock.sql.expressions.text`.

A predicate (`=`, IN, LIKE ...) does not chain: `a = b = c` is refused, `(a = b) = c` is fine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal, cast

import msgspec

from penstock.sql.expressions import nodes as n
from penstock.sql.expressions.text import AND, ARITHMETIC_LEVELS, CONCAT, NOT, OR
from penstock.sql.parser.cursor import Cursor
from penstock.sql.parser.literals import is_number, number
from penstock.sql.parser.types import type_of

NESTING_MAX: Final = 60
"""Brackets within brackets: what the parser's own recursion bears wherever it is called."""
DEPTH_MAX: Final = 200
"""Levels of an expression, so that everyone may walk it by recursion."""

UNIT_FUNCTIONS: Final = frozenset({"TIMESTAMPADD", "TIMESTAMPSUB", "DATEADD", "DATESUB", "TIMEADD", "TIMESUB"})
"""Their first argument is a unit written as a bare word."""
_UNITS: Final = ("MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "YEAR")
UNITS: Final = frozenset({*_UNITS, *(f"{unit}S" for unit in _UNITS)})

_COMPARISONS: Final = {"=": "=", "<>": "<>", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_PREDICATES: Final = frozenset({"IS", "NOT", "BETWEEN", "IN", "LIKE"})


def expression(cursor: Cursor) -> n.Expression:
    start = cursor.token
    found = _expression(cursor)
    if not cursor.nesting and _is_deep(found):
        cursor.fail(
            f"The expression has more than {DEPTH_MAX} levels.", hint="Use IN (...) or split the statement.", at=start
        )
    return found


def _expression(cursor: Cursor, level: int = OR) -> n.Expression:
    if cursor.nesting >= NESTING_MAX:
        cursor.fail(f"The expression is nested too deeply: at most {NESTING_MAX} levels of brackets are read.")
    cursor.nesting += 1
    left = _not(cursor) if level <= NOT and cursor.is_word("NOT") else _predicate(cursor)
    while level <= AND and cursor.accept("AND"):
        left = n.Logical("AND", left, _expression(cursor, NOT))
    while level <= OR and cursor.accept("OR"):
        left = n.Logical("OR", left, _expression(cursor, AND))
    cursor.nesting -= 1
    return left


def _not(cursor: Cursor) -> n.Expression:
    cursor.advance()
    return n.Not(_expression(cursor, NOT))


def _predicate(cursor: Cursor) -> n.Expression:
    operand = _value(cursor)
    token = cursor.token
    if token.kind == "symbol" and token.text in _COMPARISONS:
        cursor.advance()
        return n.Comparison(cast("Any", _COMPARISONS[token.text]), operand, _value(cursor))
    if token.kind != "word" or token.text.upper() not in _PREDICATES:
        return operand
    if cursor.accept("IS"):
        return _is(cursor, operand)
    negated = cursor.accept("NOT")
    if cursor.accept("BETWEEN"):
        low = _value(cursor)
        cursor.expect("AND")
        return n.Between(operand, low, _value(cursor), negated)
    if cursor.accept("IN"):
        return n.In(operand, cursor.bracketed(lambda: _expression(cursor)), negated)
    if cursor.accept("LIKE"):
        return _like(cursor, operand, negated=negated)
    return cursor.fail()


def _is(cursor: Cursor, operand: n.Expression) -> n.Expression:
    negated = cursor.accept("NOT")
    if cursor.accept("NULL"):
        return n.IsNull(operand, negated)
    cursor.expect("DISTINCT", "FROM")
    operator: Literal["IS NOT DISTINCT FROM", "IS DISTINCT FROM"]
    operator = "IS NOT DISTINCT FROM" if negated else "IS DISTINCT FROM"
    return n.Comparison(operator, operand, _value(cursor))


def _like(cursor: Cursor, operand: n.Expression, *, negated: bool) -> n.Like:
    pattern = _value(cursor)
    if not cursor.accept("ESCAPE"):
        return n.Like(operand, pattern, None, negated)
    token = cursor.token
    escape = cursor.string()
    if len(escape) != 1:
        cursor.fail(f"ESCAPE takes one character, not '{escape}'.", at=token)
    return n.Like(operand, pattern, escape, negated)


def _value(cursor: Cursor, level: int = CONCAT) -> n.Expression:
    """Sums, products and joined strings: all chain to the left."""
    left = _unary(cursor)
    while True:
        symbol = cursor.token.text if cursor.token.kind == "symbol" else ""
        if symbol == "||" and level <= CONCAT:
            cursor.advance()
            left = n.Call("CONCAT", (left, _value(cursor, CONCAT + 1)))
        elif symbol in ARITHMETIC_LEVELS and level <= ARITHMETIC_LEVELS[symbol]:
            cursor.advance()
            left = n.Arithmetic(cast("Any", symbol), left, _value(cursor, ARITHMETIC_LEVELS[symbol] + 1))
        else:
            return left


def _unary(cursor: Cursor) -> n.Expression:
    signs = ""
    while cursor.token.kind == "symbol" and cursor.token.text in ("-", "+"):
        signs += cursor.advance().text
    minus = signs.count("-")
    if minus > NESTING_MAX:
        cursor.fail("Too many signs stand before a value.")
    if minus and is_number(cursor):
        operand, minus = _postfix(cursor, number(cursor, negative=True)), minus - 1
    else:
        operand = _postfix(cursor, _primary(cursor))
    for _ in range(minus):
        operand = n.Negate(operand)
    return operand


def _postfix(cursor: Cursor, operand: n.Expression) -> n.Expression:
    """`->field` and `[index]`; `->*` belongs to the SELECT list and is left alone."""
    while True:
        if _is_symbol_ahead(cursor, "->", 0) and not _is_symbol_ahead(cursor, "*"):
            cursor.advance()
            operand = n.FieldAccess(operand, cursor.name("the name of a field"))
        elif _is_symbol_ahead(cursor, "[", 0):
            cursor.advance()
            operand = n.Subscript(operand, _expression(cursor))
            cursor.expect_symbol("]")
        else:
            return operand


def _primary(cursor: Cursor) -> n.Expression:
    token = cursor.token
    if is_number(cursor):
        return number(cursor)
    if token.kind == "string":
        return n.StringLiteral(cursor.advance().text)
    if cursor.accept_symbol("("):
        inner = _expression(cursor)
        cursor.expect_symbol(")")
        return inner
    if token.kind == "word" and token.text.upper() in _BY_WORD:
        return _BY_WORD[token.text.upper()](cursor)
    if cursor.is_name("an expression") and _is_symbol_ahead(cursor, "("):
        return _call(cursor)
    return _column(cursor)


def _is_symbol_ahead(cursor: Cursor, symbol: str, count: int = 1) -> bool:
    token = cursor.ahead(count)
    return token.kind == "symbol" and token.text == symbol


def _column(cursor: Cursor) -> n.Expression:
    token = cursor.token
    found = _column_or_variable(cursor)
    if isinstance(found, n.Column):
        cursor.places.note_column(found, cursor.place_of(token))
    return found


def _column_or_variable(cursor: Cursor) -> n.Expression:
    name = cursor.name("an expression")
    if _is_symbol_ahead(cursor, ".", 0) and not _is_symbol_ahead(cursor, "*"):
        cursor.advance()
        column = n.Column(cursor.name("the name of a column"), name)
        if _is_symbol_ahead(cursor, ".", 0):
            cursor.fail("A column has at most one prefix.", hint="Fields of a STRUCT are read with ->, as in a->b.")
        return column
    if any(name in scope for scope in cursor.scopes):
        return n.LambdaVariable(name)
    return n.Column(name)


def _call(cursor: Cursor) -> n.Expression:
    token = cursor.token
    name = cursor.name().upper()
    cursor.places.note_function(name, cursor.place_of(token))
    cursor.advance()
    if cursor.accept_symbol(")"):
        return n.Call(name)
    if name == "COUNT" and cursor.accept_symbol("*"):
        cursor.expect_symbol(")")
        return n.Call(name)
    if cursor.token.text.upper() == "DISTINCT":
        cursor.fail(f"{name}(DISTINCT ...) is not part of the language.", hint="Use COUNT_DISTINCT(...).")
    arguments = cursor.listed(lambda: _argument(cursor))
    cursor.expect_symbol(")")
    if name in UNIT_FUNCTIONS and isinstance(unit := arguments[0], n.Column) and unit.name in UNITS:
        arguments = (n.StringLiteral(unit.name), *arguments[1:])
    return n.Call(name, arguments)


def _argument(cursor: Cursor) -> n.Expression:
    parameters = _lambda_parameters(cursor)
    if parameters is None:
        return _expression(cursor)
    cursor.scopes.append(frozenset(parameters))
    body = _expression(cursor)
    cursor.scopes.pop()
    return n.Lambda(parameters, body)


def _lambda_parameters(cursor: Cursor) -> tuple[str, ...] | None:
    """The parameters of `x =>` or `(x, y) =>`; None (and nothing taken) when it is no lambda."""
    mark = cursor.mark()
    parameters: tuple[str, ...] = ()
    if cursor.is_name():
        parameters = (cursor.name(),)
    elif cursor.accept_symbol("(") and cursor.is_name():
        names = [cursor.name()]
        while cursor.is_symbol(",") and cursor.ahead(1).kind in ("word", "name"):
            cursor.advance()
            if not cursor.is_name():
                break
            names.append(cursor.name())
        parameters = tuple(names) if cursor.accept_symbol(")") else ()
    if parameters and cursor.accept_symbol("=>"):
        return parameters
    cursor.go_back(mark)
    return None


def _case(cursor: Cursor) -> n.Expression:
    cursor.advance()
    operand = None if cursor.is_word("WHEN") else _expression(cursor)
    whens = []
    while cursor.accept("WHEN"):
        condition = _expression(cursor)
        cursor.expect("THEN")
        whens.append(n.When(condition, _expression(cursor)))
    if not whens:
        cursor.fail()
    default = _expression(cursor) if cursor.accept("ELSE") else None
    cursor.expect("END")
    return n.Case(operand, tuple(whens), default)


def _cast(cursor: Cursor) -> n.Expression:
    cursor.advance()
    cursor.expect_symbol("(")
    operand = _expression(cursor)
    cursor.expect("AS")
    found = type_of(cursor)
    cursor.expect_symbol(")")
    return n.Cast(operand, found)


def _array(cursor: Cursor) -> n.Expression:
    if not _is_symbol_ahead(cursor, "["):
        return _call(cursor) if _is_symbol_ahead(cursor, "(") else _column(cursor)
    cursor.advance()
    cursor.advance()
    if cursor.accept_symbol("]"):
        return n.ArrayOf(())
    items = cursor.listed(lambda: _expression(cursor))
    cursor.expect_symbol("]")
    return n.ArrayOf(items)


def _map(cursor: Cursor) -> n.Expression:
    return n.MapOf(_entries(cursor, _map_entry)) if _is_symbol_ahead(cursor, "(") else _column(cursor)


def _struct(cursor: Cursor) -> n.Expression:
    return n.StructOf(_entries(cursor, _struct_field)) if _is_symbol_ahead(cursor, "(") else _column(cursor)


def _entries(cursor: Cursor, entry: Callable[[Cursor], Any]) -> tuple[Any, ...]:
    cursor.advance()
    cursor.advance()
    if cursor.accept_symbol(")"):
        return ()
    entries = cursor.listed(lambda: entry(cursor))
    cursor.expect_symbol(")")
    return entries


def _map_entry(cursor: Cursor) -> n.MapEntry:
    key = _expression(cursor)
    cursor.expect_symbol(":=")
    return n.MapEntry(key, _expression(cursor))


def _struct_field(cursor: Cursor) -> n.NamedExpression:
    name = cursor.name("the name of a field")
    cursor.expect_symbol(":=")
    return n.NamedExpression(name, _expression(cursor))


def _constant(node: n.Expression) -> Callable[[Cursor], n.Expression]:
    def take(cursor: Cursor) -> n.Expression:
        cursor.advance()
        return node

    return take


_BY_WORD: Final[dict[str, Callable[[Cursor], n.Expression]]] = {
    "NULL": _constant(n.NullLiteral()),
    "TRUE": _constant(n.BooleanLiteral(True)),
    "FALSE": _constant(n.BooleanLiteral(False)),
    "CASE": _case,
    "CAST": _cast,
    "ARRAY": _array,
    "MAP": _map,
    "STRUCT": _struct,
}


def _is_deep(root: n.Expression) -> bool:
    level: list[Any] = [root]
    for _ in range(DEPTH_MAX):
        level = [child for each in level for child in _parts(each)]
        if not level:
            return False
    return True


def _parts(value: Any) -> list[Any]:
    if isinstance(value, tuple):
        return list(value)
    return [getattr(value, name) for name in value.__struct_fields__] if isinstance(value, msgspec.Struct) else []
