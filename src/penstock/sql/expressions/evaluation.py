"""The interpreter: an expression compiled into a Python function of a row.

It is the rule book that the Spark texts are tested against, and it runs where no Spark job is worth starting: INSERT
VALUES, pull queries, HAVING against the store. A row is a mapping from column name to value. AND, OR and NOT know three
values, but a comparison with null, or IN, is false, as in ksqlDB: NOT (a = b) is true where a is null. A part that
fails for a row (a bad cast, division by zero, a function that refuses) is null, as its Spark text is; the message goes
to `on_error`.
"""

from __future__ import annotations

import decimal
import operator
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from penstock.sql.expressions import nodes
from penstock.sql.expressions.arithmetic import calculator
from penstock.sql.expressions.casting import caster, fitter, null_safe
from penstock.sql.expressions.coercion import common_number
from penstock.sql.expressions.comparing import comparator, comparison_type, is_row_time
from penstock.sql.expressions.instants import from_ms
from penstock.sql.expressions.like import like_regex
from penstock.sql.expressions.nodes import Expression
from penstock.sql.expressions.typing import Types
from penstock.sql.functions.model import ScalarFunction
from penstock.sql.types import DOUBLE, NULL, STRING, TIMESTAMP, Array, SqlType

if TYPE_CHECKING:
    from penstock.sql.functions.registry import FunctionRegistry

Row = Mapping[str, Any]
Evaluator = Callable[[Row], Any]
OnError = Callable[[str], None]

_VARIABLE = "lambda "
"""Goes before the names of lambda variables in a row, where no column can be called so."""


def compile_expression(
    expression: Expression,
    columns: Mapping[str, SqlType],
    functions: FunctionRegistry,
    on_error: OnError | None = None,
) -> Evaluator:
    """Raises SemanticError, as typing does, for an expression that has no type."""
    types = Types(columns, functions)
    types.of(expression)
    return _Compiler(types, on_error).compile(expression)


def compile_as(
    expression: Expression,
    target: SqlType,
    columns: Mapping[str, SqlType],
    functions: FunctionRegistry,
    on_error: OnError | None = None,
) -> Evaluator:
    """The same, with the value turned into this type by the rules of CAST."""
    types = Types(columns, functions)
    types.of(expression)
    return _Compiler(types, on_error).compile_as(expression, target)


class _Compiler:
    def __init__(self, types: Types, on_error: OnError | None) -> None:
        self.types = types
        self.on_error = on_error

    def compile(self, expression: Expression) -> Evaluator:
        return _COMPILERS[type(expression)](self, expression)

    def compile_as(self, expression: Expression, target: SqlType) -> Evaluator:
        """Compiles and turns the value into another type."""
        inner, source = self.compile(expression), self.types.of(expression)
        cast = caster(source, target)
        if source in (target, NULL) or cast is None:
            return inner
        return self.guarded(null_safe(cast), (inner,), f"CAST to {target}")

    def guarded(self, function: Callable[..., Any], arguments: tuple[Evaluator, ...], what: str) -> Evaluator:
        """Calls a function that may refuse its arguments."""

        def evaluate(row: Row) -> Any:
            values = [argument(row) for argument in arguments]
            try:
                return function(*values)
            except Exception as error:  # noqa: BLE001 a user's function may raise anything, and no row stops a query
                if self.on_error is not None:
                    self.on_error(f"{what}: {error}")
                return None

        return evaluate


def _literal(value: Any) -> Evaluator:
    return lambda _row: value


def _column(_compiler: _Compiler, node: Any) -> Evaluator:
    return operator.itemgetter(node.name)


def _variable(_compiler: _Compiler, node: Any) -> Evaluator:
    return operator.itemgetter(_VARIABLE + node.name)


def _call(compiler: _Compiler, node: Any) -> Evaluator:
    resolution = compiler.types.resolution(node)
    function = resolution.function
    if not isinstance(function, ScalarFunction):
        raise TypeError(f"{function.name} is not a function of one row")
    arguments = tuple(
        _lambda(compiler, argument, resolution.lambda_types[index], wanted)
        if isinstance(argument, nodes.Lambda)
        else compiler.compile_as(argument, wanted)
        for index, (argument, wanted) in enumerate(zip(node.arguments, resolution.argument_types, strict=True))
    )
    return compiler.guarded(applied(function, resolution.return_type), arguments, function.name)


def applied(function: ScalarFunction, result: SqlType) -> Callable[..., Any]:
    """The rule book with its rule for nulls, and numbers turned into the type of the result."""
    python, fit = function.python, null_safe(fitter(result))
    if not function.strict:
        return lambda *values: fit(python(*values))
    return lambda *values: None if None in values else fit(python(*values))


def _lambda(compiler: _Compiler, node: nodes.Lambda, types: tuple[SqlType, ...], wanted: SqlType) -> Evaluator:
    """Evaluates to a Python function, which sees the row and its own parameters."""
    body = _Compiler(compiler.types.inside(node, types), compiler.on_error).compile_as(node.body, wanted)
    names = [_VARIABLE + name for name in node.parameters]

    def evaluate(row: Row) -> Callable[..., Any]:
        return lambda *values: body({**row, **dict(zip(names, values, strict=True))})

    return evaluate


def _arithmetic(compiler: _Compiler, node: Any) -> Evaluator:
    result = compiler.types.of(node)
    if result == STRING:
        return _null_propagating(operator.add, compiler.compile(node.left), compiler.compile(node.right))
    left, right = (compiler.types.of(side) for side in (node.left, node.right))
    operand = common_number(left, right) if DOUBLE in (left, right) else None
    sides = tuple(
        compiler.compile(side) if operand is None else compiler.compile_as(side, operand)
        for side in (node.left, node.right)
    )
    calculate = calculator(node.operator, result)
    fit = fitter(result)

    def apply(one: Any, two: Any) -> Any:
        return None if one is None or two is None else fit(calculate(one, two))

    return compiler.guarded(apply, sides, f"Operator {node.operator}")


def _null_propagating(function: Callable[[Any, Any], Any], left: Evaluator, right: Evaluator) -> Evaluator:
    def evaluate(row: Row) -> Any:
        one, two = left(row), right(row)
        return None if one is None or two is None else function(one, two)

    return evaluate


def _false_for_null(function: Callable[[Any, Any], bool], left: Evaluator, right: Evaluator) -> Evaluator:
    def evaluate(row: Row) -> bool:
        one, two = left(row), right(row)
        return one is not None and two is not None and function(one, two)

    return evaluate


def _negate(compiler: _Compiler, node: Any) -> Evaluator:
    fit = fitter(compiler.types.of(node))
    inner = compiler.compile(node.operand)

    def evaluate(row: Row) -> Any:
        value = inner(row)
        return None if value is None else fit(-value)

    return evaluate


def _sides(compiler: _Compiler, sign: str, left: Expression, right: Expression) -> tuple[Evaluator, Evaluator, SqlType]:
    """Both sides of a comparison, turned into the type they are compared as."""
    types = compiler.types
    joined = comparison_type(sign, left, types.of(left), right, types.of(right))
    one, two = (_comparable(compiler, side, joined) for side in (left, right))
    return one, two, joined


def _comparable(compiler: _Compiler, side: Expression, joined: SqlType) -> Evaluator:
    source = compiler.types.of(side)
    if joined == TIMESTAMP and is_row_time(side, source):
        inner = compiler.compile(side)
        return lambda row: None if (value := inner(row)) is None else from_ms(value)
    return compiler.compile_as(side, joined)


def _comparison(compiler: _Compiler, node: Any) -> Evaluator:
    left, right, joined = _sides(compiler, node.operator, node.left, node.right)
    if "DISTINCT" not in node.operator:
        return _false_for_null(comparator(node.operator, joined), left, right)
    equal, wanted = comparator("=", joined), node.operator == "IS NOT DISTINCT FROM"

    def evaluate(row: Row) -> bool:
        one, two = left(row), right(row)
        same = one is two if one is None or two is None else equal(one, two)
        return same is wanted

    return evaluate


def _between(compiler: _Compiler, node: Any) -> Evaluator:
    low = nodes.Comparison(">=", node.operand, node.low)
    high = nodes.Comparison("<=", node.operand, node.high)
    inside: Expression = nodes.Logical("AND", low, high)
    return compiler.compile(nodes.Not(inside) if node.negated else inside)


def _logical(compiler: _Compiler, node: Any) -> Evaluator:
    """AND is false as soon as one side is, OR true; else an unknown side makes the whole unknown."""
    left, right = compiler.compile(node.left), compiler.compile(node.right)
    decisive: bool = node.operator == "OR"

    def evaluate(row: Row) -> bool | None:
        one: bool | None = left(row)
        if one is decisive:
            return decisive
        two: bool | None = right(row)
        if two is decisive:
            return decisive
        return None if one is None or two is None else not decisive

    return evaluate


def _not(compiler: _Compiler, node: Any) -> Evaluator:
    inner = compiler.compile(node.operand)
    return lambda row: None if (value := inner(row)) is None else not value


def _is_null(compiler: _Compiler, node: Any) -> Evaluator:
    inner, wanted = compiler.compile(node.operand), not node.negated
    return lambda row: (inner(row) is None) is wanted


def _in(compiler: _Compiler, node: Any) -> Evaluator:
    joined = compiler.types.common([node.operand, *node.options], "The value and the list of IN")
    operand = compiler.compile_as(node.operand, joined)
    options = [compiler.compile_as(option, joined) for option in node.options]
    equal = comparator("=", joined)

    negated: bool = node.negated

    def evaluate(row: Row) -> bool:
        value = operand(row)
        found = value is not None and any(
            other is not None and equal(value, other) for other in (option(row) for option in options)
        )
        return found is not negated

    return evaluate


def _like(compiler: _Compiler, node: Any) -> Evaluator:
    def matches(text: str | None, pattern: str | None) -> bool | None:
        if text is None or pattern is None:
            return None
        return (like_regex(pattern, node.escape).fullmatch(text) is not None) is not node.negated

    return compiler.guarded(matches, (compiler.compile(node.operand), compiler.compile(node.pattern)), "LIKE")


def _case(compiler: _Compiler, node: Any) -> Evaluator:
    result = compiler.types.of(node)
    branches = [
        (
            compiler.compile(
                when.condition if node.operand is None else nodes.Comparison("=", node.operand, when.condition)
            ),
            compiler.compile_as(when.result, result),
        )
        for when in node.whens
    ]
    default = _literal(None) if node.default is None else compiler.compile_as(node.default, result)

    def evaluate(row: Row) -> Any:
        for condition, value in branches:
            if condition(row) is True:
                return value(row)
        return default(row)

    return evaluate


def _cast(compiler: _Compiler, node: Any) -> Evaluator:
    return compiler.compile_as(node.operand, node.type)


def _field(compiler: _Compiler, node: Any) -> Evaluator:
    inner = compiler.compile(node.operand)
    return lambda row: None if (struct := inner(row)) is None else struct.get(node.name)


def _subscript(compiler: _Compiler, node: Any) -> Evaluator:
    """Arrays count from 1, or from the end with negative numbers; what is not there is null."""
    found = compiler.types.of(node.operand)
    if not isinstance(found, Array):
        return _null_propagating(
            lambda entries, key: entries.get(key), *map(compiler.compile, (node.operand, node.index))
        )
    return _null_propagating(element_at, *map(compiler.compile, (node.operand, node.index)))


def element_at(items: list[Any], position: int) -> Any:
    index = position - 1 if position > 0 else len(items) + position
    return items[index] if position != 0 and 0 <= index < len(items) else None


def _array(compiler: _Compiler, node: Any) -> Evaluator:
    element = compiler.types.of(node)
    items = [compiler.compile_as(item, element.element) for item in node.items] if isinstance(element, Array) else []
    return lambda row: [item(row) for item in items]


def _map(compiler: _Compiler, node: Any) -> Evaluator:
    """The last of equal keys wins; an entry without a key is left out."""
    found: Any = compiler.types.of(node)
    entries = [
        (compiler.compile_as(entry.key, found.key), compiler.compile_as(entry.value, found.value))
        for entry in node.entries
    ]
    return lambda row: {name: value(row) for key, value in entries if (name := key(row)) is not None}


def _struct(compiler: _Compiler, node: Any) -> Evaluator:
    fields = {field.name: compiler.compile(field.expression) for field in node.fields}
    return lambda row: {name: value(row) for name, value in fields.items()}


def _decimal_literal(compiler: _Compiler, node: Any) -> Evaluator:
    return _literal(fitter(compiler.types.of(node))(decimal.Decimal(node.text)))


_COMPILERS: dict[type, Callable[[_Compiler, Any], Evaluator]] = {
    nodes.NullLiteral: lambda _compiler, _node: _literal(None),
    nodes.BooleanLiteral: lambda _compiler, node: _literal(node.value),
    nodes.IntegerLiteral: lambda _compiler, node: _literal(node.value),
    nodes.DecimalLiteral: _decimal_literal,
    nodes.DoubleLiteral: lambda _compiler, node: _literal(node.value),
    nodes.StringLiteral: lambda _compiler, node: _literal(node.value),
    nodes.Column: _column,
    nodes.LambdaVariable: _variable,
    nodes.Call: _call,
    nodes.Arithmetic: _arithmetic,
    nodes.Negate: _negate,
    nodes.Comparison: _comparison,
    nodes.Between: _between,
    nodes.Logical: _logical,
    nodes.Not: _not,
    nodes.IsNull: _is_null,
    nodes.In: _in,
    nodes.Like: _like,
    nodes.Case: _case,
    nodes.Cast: _cast,
    nodes.FieldAccess: _field,
    nodes.Subscript: _subscript,
    nodes.ArrayOf: _array,
    nodes.MapOf: _map,
    nodes.StructOf: _struct,
}
