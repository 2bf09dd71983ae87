"""The type of every expression, and what is wrong with one that has none.

`infer` answers for one expression. `Types` is the same with a memory, for those that ask about many parts: it knows the
columns, the functions and, inside a lambda, the variables.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from penstock.sql.errors import SemanticError
from penstock.sql.expressions import nodes
from penstock.sql.expressions.arithmetic import decimal_result, number_or
from penstock.sql.expressions.casting import can_cast
from penstock.sql.expressions.coercion import common_number, common_type, is_number
from penstock.sql.expressions.comparing import comparison_type
from penstock.sql.expressions.literals import decimal_type, integer_type, number_type_of_text
from penstock.sql.expressions.nodes import Expression
from penstock.sql.functions.model import Argument, LambdaArgument, Resolution
from penstock.sql.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    NULL,
    STRING,
    TIME,
    TIMESTAMP,
    Array,
    Decimal,
    Field,
    Map,
    SqlType,
    Struct,
)

if TYPE_CHECKING:
    from penstock.sql.functions.registry import FunctionRegistry

_LITERALS = (
    nodes.NullLiteral,
    nodes.BooleanLiteral,
    nodes.IntegerLiteral,
    nodes.DecimalLiteral,
    nodes.DoubleLiteral,
    nodes.StringLiteral,
)


def infer(expression: Expression, columns: Mapping[str, SqlType], functions: FunctionRegistry) -> SqlType:
    return Types(columns, functions).of(expression)


class Types:
    """Types of expressions over these columns. `variables` are the parameters of the lambdas around."""

    def __init__(
        self,
        columns: Mapping[str, SqlType],
        functions: FunctionRegistry,
        variables: Mapping[str, SqlType] | None = None,
    ) -> None:
        self.columns = columns
        self.functions = functions
        self.variables = variables or {}
        self._known: dict[Expression, SqlType] = {}

    def of(self, expression: Expression) -> SqlType:
        found = self._known.get(expression)
        if found is None:
            found = _RULES[type(expression)](self, expression)
            self._known[expression] = found
        return found

    def resolution(self, call: nodes.Call) -> Resolution:
        return self.functions.resolve(call.name, [self._argument(each) for each in call.arguments])

    def inside(self, function: nodes.Lambda, types: Sequence[SqlType]) -> Types:
        """The types inside a lambda whose parameters have these types."""
        return Types(
            self.columns, self.functions, {**self.variables, **dict(zip(function.parameters, types, strict=True))}
        )

    def common(self, expressions: Sequence[Expression], what: str) -> SqlType:
        """The type a list of expressions is turned into. Literals bend further than other expressions do."""
        joined: SqlType = NULL
        for expression in expressions:
            found = _joined(joined, self.of(expression), expression)
            if found is None:
                raise SemanticError(
                    f"{what} must have a common type, but one is {joined} and another {self.of(expression)}.",
                    hint="Use CAST.",
                )
            joined = found
        return joined

    def _argument(self, argument: Expression) -> Argument:
        if not isinstance(argument, nodes.Lambda):
            return self.of(argument)
        return LambdaArgument(len(argument.parameters), lambda types: self.inside(argument, types).of(argument.body))


def _joined(joined: SqlType, found: SqlType, expression: Expression) -> SqlType | None:
    """`joined` is the type of those before, `found` that of this expression."""
    common = common_type(joined, found)
    if common is not None or not isinstance(expression, _LITERALS):
        return common
    if joined == STRING:
        return STRING
    if isinstance(expression, nodes.StringLiteral):
        return _joined_with_text(joined, expression.value)
    return None


def _joined_with_text(joined: SqlType, text: str) -> SqlType | None:
    if is_number(joined):
        number = number_type_of_text(text)
        return None if number is None else common_number(joined, number)
    return joined if joined in (BOOLEAN, TIME, DATE, TIMESTAMP) else None


def _of_column(types: Types, column: Any) -> SqlType:
    found = types.columns.get(column.name)
    if found is None:
        near = difflib.get_close_matches(column.name, list(types.columns), n=1)
        hint = f"Did you mean {near[0]}?" if near else f"There are: {', '.join(types.columns)}."
        raise SemanticError(f"Column '{column.name}' cannot be resolved.", hint=hint, about=column)
    return found


def _of_variable(types: Types, variable: Any) -> SqlType:
    found = types.variables.get(variable.name)
    if found is None:
        raise SemanticError(f"Variable '{variable.name}' is no parameter of a lambda around it.")
    return found


def _of_call(types: Types, call: Any) -> SqlType:
    return types.resolution(call).return_type


def _of_arithmetic(types: Types, node: Any) -> SqlType:
    left, right = types.of(node.left), types.of(node.right)
    if node.operator == "+" and left == right == STRING:
        return STRING
    joined = common_number(number_or(left, right), number_or(right, left))
    if joined is None:
        raise SemanticError(
            f"Operator '{node.operator}' does not work on {left} and {right}.", hint="Use CAST to make them numbers."
        )
    return decimal_result(node.operator, left, right) if isinstance(joined, Decimal) else joined


def _of_negate(types: Types, node: Any) -> SqlType:
    found = types.of(node.operand)
    if found != NULL and not is_number(found):
        raise SemanticError(f"Operator '-' does not work on {found}.")
    return found


def _of_comparison(types: Types, node: Any) -> SqlType:
    if nodes.NullLiteral() in (node.left, node.right) and "DISTINCT" not in node.operator:
        raise SemanticError("Comparison with NULL is never true.", hint="Use IS NULL or IS NOT NULL.")
    comparison_type(node.operator, node.left, types.of(node.left), node.right, types.of(node.right))
    return BOOLEAN


def _of_between(types: Types, node: Any) -> SqlType:
    for bound in (node.low, node.high):
        comparison_type("<=", node.operand, types.of(node.operand), bound, types.of(bound))
    return BOOLEAN


def _of_logical(types: Types, node: Any) -> SqlType:
    for side in (node.left, node.right):
        _check_boolean(types.of(side), node.operator)
    return BOOLEAN


def _of_not(types: Types, node: Any) -> SqlType:
    _check_boolean(types.of(node.operand), "NOT")
    return BOOLEAN


def _check_boolean(found: SqlType, operator: str) -> None:
    if found not in (BOOLEAN, NULL):
        raise SemanticError(f"{operator} needs BOOLEAN, not {found}.")


def _of_is_null(types: Types, node: Any) -> SqlType:
    types.of(node.operand)
    return BOOLEAN


def _of_in(types: Types, node: Any) -> SqlType:
    types.common([node.operand, *node.options], "The value and the list of IN")
    return BOOLEAN


def _of_like(types: Types, node: Any) -> SqlType:
    for part in (node.operand, node.pattern):
        if types.of(part) not in (STRING, NULL):
            raise SemanticError(f"LIKE needs STRING, not {types.of(part)}.", hint="Use CAST.")
    if node.escape is not None and len(node.escape) != 1:
        raise SemanticError(f"The escape of LIKE must be one character, not '{node.escape}'.")
    return BOOLEAN


def _of_case(types: Types, node: Any) -> SqlType:
    for when in node.whens:
        if node.operand is None:
            _check_boolean(types.of(when.condition), "WHEN")
        else:
            _of_comparison(types, nodes.Comparison("=", node.operand, when.condition))
    results = [when.result for when in node.whens] + ([] if node.default is None else [node.default])
    return types.common(results, "The results of CASE")


def _of_cast(types: Types, node: Any) -> SqlType:
    found = types.of(node.operand)
    if not can_cast(found, node.type):
        raise SemanticError(f"Cast of {found} to {node.type} is not supported.")
    target: SqlType = node.type
    return target


def _of_field(types: Types, node: Any) -> SqlType:
    found = types.of(node.operand)
    if not isinstance(found, Struct):
        raise SemanticError(f"'->{node.name}' needs a STRUCT, not {found}.")
    field = found.field(node.name)
    if field is None:
        names = ", ".join(each.name for each in found.fields)
        raise SemanticError(f"The STRUCT has no field '{node.name}'.", hint=f"Its fields are: {names}.")
    return field.type


def _of_subscript(types: Types, node: Any) -> SqlType:
    found, index = types.of(node.operand), types.of(node.index)
    match found:
        case Array(element) if index in (INTEGER, BIGINT, NULL):
            return element
        case Map(key, value) if common_type(key, index) == key:
            return value
    raise SemanticError(f"{found} cannot be indexed by {index}.")


def _of_array(types: Types, node: Any) -> SqlType:
    return Array(_element_type(types, node.items, "ARRAY"))


def _of_map(types: Types, node: Any) -> SqlType:
    keys = _element_type(types, [entry.key for entry in node.entries], "MAP")
    return Map(keys, _element_type(types, [entry.value for entry in node.entries], "MAP"))


def _element_type(types: Types, items: Sequence[Expression], what: str) -> SqlType:
    if not items:
        raise SemanticError(f"{what} needs at least one element, its type would be unknown.")
    joined = types.common(items, f"The elements of {what}")
    if joined == NULL:
        raise SemanticError(f"{what} needs an element that is not NULL, its type would be unknown.", hint="Use CAST.")
    return joined


def _of_struct(types: Types, node: Any) -> SqlType:
    names = [field.name for field in node.fields]
    if len(set(names)) < len(names):
        raise SemanticError(f"Duplicate field names found in STRUCT: {', '.join(names)}.", hint="Rename one.")
    return Struct(tuple(Field(field.name, types.of(field.expression)) for field in node.fields))


def _of_lambda(_types: Types, node: Any) -> SqlType:
    raise SemanticError(
        f"A lambda ({', '.join(node.parameters)}) => ... stands only among the arguments of a function."
    )


_RULES: dict[type, Callable[[Types, Any], SqlType]] = {
    nodes.NullLiteral: lambda _types, _node: NULL,
    nodes.BooleanLiteral: lambda _types, _node: BOOLEAN,
    nodes.IntegerLiteral: lambda _types, node: integer_type(node.value),
    nodes.DecimalLiteral: lambda _types, node: decimal_type(node.text),
    nodes.DoubleLiteral: lambda _types, _node: DOUBLE,
    nodes.StringLiteral: lambda _types, _node: STRING,
    nodes.Column: _of_column,
    nodes.LambdaVariable: _of_variable,
    nodes.Call: _of_call,
    nodes.Arithmetic: _of_arithmetic,
    nodes.Negate: _of_negate,
    nodes.Comparison: _of_comparison,
    nodes.Between: _of_between,
    nodes.Logical: _of_logical,
    nodes.Not: _of_not,
    nodes.IsNull: _of_is_null,
    nodes.In: _of_in,
    nodes.Like: _of_like,
    nodes.Case: _of_case,
    nodes.Cast: _of_cast,
    nodes.FieldAccess: _of_field,
    nodes.Subscript: _of_subscript,
    nodes.ArrayOf: _of_array,
    nodes.MapOf: _of_map,
    nodes.StructOf: _of_struct,
    nodes.Lambda: _of_lambda,
}
