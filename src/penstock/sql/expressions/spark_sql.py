"""Expressions as Spark SQL text.

The text gives for every row what the interpreter (`evaluation`) gives, and raises nothing at run time. It expects a
session in UTC with ANSI mode off, the TIME type on and `spark.sql.mapKeyDedupPolicy=LAST_WIN`.

A function without a Spark form becomes a call of a Python function that must be registered first: `python_functions`
tells which, under which name. Spark runs no Python inside its lambdas, so a call whose lambda needs one runs in Python
as a whole, as a function of the columns it uses.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.sql.errors import SemanticError
from penstock.sql.expressions import nodes
from penstock.sql.expressions.coercion import as_decimal
from penstock.sql.expressions.comparing import comparison_type, is_row_time
from penstock.sql.expressions.evaluation import OnError, applied, compile_expression
from penstock.sql.expressions.like import spark_like_by_regex, spark_like_pattern
from penstock.sql.expressions.nodes import Expression
from penstock.sql.expressions.spark_casts import spark_cast
from penstock.sql.expressions.spark_types import quoted, spark_type, string_literal, without_maps
from penstock.sql.expressions.typing import Types
from penstock.sql.expressions.walk import columns_of, descendants
from penstock.sql.functions.model import (
    AggregateFunction,
    LambdaText,
    Resolution,
    ScalarFunction,
    SparkForm,
    TableFunction,
)
from penstock.sql.types import BIGINT, DOUBLE, INTEGER, NULL, STRING, TIMESTAMP, Decimal, Map, SqlType

if TYPE_CHECKING:
    from penstock.sql.functions.registry import FunctionRegistry


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonFunctionUse:
    """A Python function that a text calls by `name`.

    `function` takes whom to tell of a failure, then Python values, and gives one, None for null. It never raises.
    """

    name: str
    function: Callable[..., Any]
    argument_types: tuple[SqlType, ...]
    return_type: SqlType


def to_spark_sql(expression: Expression, columns: Mapping[str, SqlType], functions: FunctionRegistry) -> str:
    return _Renderer(Types(columns, functions)).render(expression)


def to_spark_sql_as(
    expression: Expression, target: SqlType, columns: Mapping[str, SqlType], functions: FunctionRegistry
) -> str:
    """The same, with the value turned into this type by the rules of CAST."""
    return _Renderer(Types(columns, functions)).render_as(expression, target)


def python_functions(
    expression: Expression, columns: Mapping[str, SqlType], functions: FunctionRegistry
) -> list[PythonFunctionUse]:
    """Those the text of `to_spark_sql` calls, each once."""
    renderer = _Renderer(Types(columns, functions))
    renderer.render(expression)
    return list(renderer.uses.values())


class _Renderer:
    def __init__(self, types: Types, uses: dict[str, PythonFunctionUse] | None = None) -> None:
        self.types = types
        self.uses: dict[str, PythonFunctionUse] = {} if uses is None else uses

    def render(self, expression: Expression) -> str:
        return _RENDERERS[type(expression)](self, expression)

    def render_as(self, expression: Expression, target: SqlType) -> str:
        return spark_cast(self.render(expression), self.types.of(expression), target)

    def use(self, base: str, function: Callable[..., Any], types: Sequence[SqlType], result: SqlType) -> str:
        """Notes a Python function and gives the name it must be registered under; other types, other name."""
        identity = "|".join([*map(str, types), str(result)])
        name = f"penstock_{base.lower()}_{hashlib.sha256(identity.encode()).hexdigest()[:8]}"
        self.uses[name] = PythonFunctionUse(
            name=name, function=function, argument_types=tuple(types), return_type=result
        )
        return name


def _column(_renderer: _Renderer, node: Any) -> str:
    return quoted(node.name)


def _variable_name(name: str) -> str:
    """A name that no column has, so that a lambda never hides one."""
    return quoted(f"lambda {name}")


def _call(renderer: _Renderer, node: Any) -> str:
    resolution = renderer.types.resolution(node)
    function = resolution.function
    if isinstance(function, AggregateFunction):
        raise SemanticError(f"Aggregate function {function.name} cannot be used here.", hint="It needs GROUP BY.")
    if _python_in_lambda(renderer, node, resolution):
        return _whole_call_in_python(renderer, node, resolution.return_type)
    arguments = _arguments(renderer, node, resolution)
    form: SparkForm | None = function.spark if isinstance(function, ScalarFunction | TableFunction) else None
    text = apply_form(form, arguments, resolution.argument_types)
    if text is not None:
        return text
    if any(isinstance(argument, nodes.Lambda) for argument in node.arguments):
        return _whole_call_in_python(renderer, node, resolution.return_type)
    name = renderer.use(
        function.name, _total(function, resolution.return_type), resolution.argument_types, resolution.return_type
    )
    return f"{name}({', '.join(arguments)})"


def apply_form(form: SparkForm | None, arguments: Sequence[str], types: Sequence[SqlType]) -> str | None:
    """None when the rule book has to run instead."""
    if form is None or isinstance(form, str):
        return None if form is None else form.format(*arguments)
    return form(arguments, types)


def _arguments(renderer: _Renderer, node: nodes.Call, resolution: Resolution) -> list[str]:
    return [
        _lambda_text(renderer, argument, resolution.lambda_types[index], wanted)
        if isinstance(argument, nodes.Lambda)
        else renderer.render_as(argument, wanted)
        for index, (argument, wanted) in enumerate(zip(node.arguments, resolution.argument_types, strict=True))
    ]


def _lambda_text(renderer: _Renderer, node: nodes.Lambda, types: tuple[SqlType, ...], wanted: SqlType) -> LambdaText:
    inner = _Renderer(renderer.types.inside(node, types), renderer.uses)
    parameters = tuple(_variable_name(name) for name in node.parameters)
    return LambdaText(parameters, inner.render_as(node.body, wanted))


def _python_in_lambda(renderer: _Renderer, node: nodes.Call, resolution: Resolution) -> bool:
    for index, argument in enumerate(node.arguments):
        if isinstance(argument, nodes.Lambda):
            trial = _Renderer(renderer.types)
            _lambda_text(trial, argument, resolution.lambda_types[index], resolution.argument_types[index])
            if trial.uses:
                return True
    return False


def _whole_call_in_python(renderer: _Renderer, node: nodes.Call, result: SqlType) -> str:
    """The call as a Python function of the columns and the outer lambda variables in it."""
    if any(
        isinstance(each, nodes.LambdaVariable) and each.name in renderer.types.variables for each in descendants(node)
    ):
        # The call around it must run in Python too: the use that is noted here tells it so.
        return renderer.use("nested_lambda", lambda _on_error: None, (), result) + "()"
    columns = columns_of(node)
    names = [column.name for column in columns]
    types = {name: renderer.types.columns[name] for name in names}
    failures: list[str] = []
    evaluate = compile_expression(node, types, renderer.types.functions, failures.append)

    def function(on_error: OnError, *values: Any) -> Any:
        result = evaluate(dict(zip(names, values, strict=True)))
        while failures:
            on_error(failures.pop(0))
        return result

    digest = hashlib.sha256(repr(node).encode()).hexdigest()[:8]
    name = renderer.use(f"{node.name}_{digest}", function, list(types.values()), result)
    return f"{name}({', '.join(map(quoted, names))})"


def _total(function: Any, result: SqlType) -> Callable[..., Any]:
    """The rule book as a function that never raises."""
    apply, name = applied(function, result), function.name

    def total(on_error: OnError, *values: Any) -> Any:
        try:
            return apply(*values)
        except Exception as error:  # noqa: BLE001 a user's function may raise anything, and no row stops a query
            on_error(f"{name}: {error}")
            return None

    return total


def _arithmetic(renderer: _Renderer, node: Any) -> str:
    result = renderer.types.of(node)
    if result == STRING:
        return f"concat({renderer.render(node.left)}, {renderer.render(node.right)})"
    if isinstance(result, Decimal):
        left, right = (_decimal_side(renderer, side, result) for side in (node.left, node.right))
        return f"cast(({left} {node.operator} {right}) as {spark_type(result)})"
    left, right = (renderer.render_as(side, result) for side in (node.left, node.right))
    if node.operator == "/" and result != DOUBLE:
        return f"cast(({left} div {right}) as {spark_type(result)})"
    return f"({left} {node.operator} {right})"


def _decimal_side(renderer: _Renderer, side: Expression, result: SqlType) -> str:
    found = renderer.types.of(side)
    return renderer.render_as(side, result if found == NULL else as_decimal(found))


def _negate(renderer: _Renderer, node: Any) -> str:
    return f"(- {renderer.render(node.operand)})"


def _comparable(renderer: _Renderer, side: Expression, joined: SqlType) -> str:
    source = renderer.types.of(side)
    if joined == TIMESTAMP and is_row_time(side, source):
        return f"timestamp_millis({renderer.render(side)})"
    return without_maps(renderer.render_as(side, joined), joined)


def _comparison(renderer: _Renderer, node: Any) -> str:
    types = renderer.types
    joined = comparison_type(node.operator, node.left, types.of(node.left), node.right, types.of(node.right))
    left, right = (_comparable(renderer, side, joined) for side in (node.left, node.right))
    if node.operator == "IS NOT DISTINCT FROM":
        return f"({left} <=> {right})"
    if node.operator == "IS DISTINCT FROM":
        return f"(not ({left} <=> {right}))"
    return f"coalesce({left} {node.operator} {right}, false)"


def _between(renderer: _Renderer, node: Any) -> str:
    low = renderer.render(nodes.Comparison(">=", node.operand, node.low))
    high = renderer.render(nodes.Comparison("<=", node.operand, node.high))
    return f"(not ({low} and {high}))" if node.negated else f"({low} and {high})"


def _logical(renderer: _Renderer, node: Any) -> str:
    return f"({renderer.render(node.left)} {node.operator.lower()} {renderer.render(node.right)})"


def _not(renderer: _Renderer, node: Any) -> str:
    return f"(not {renderer.render(node.operand)})"


def _is_null(renderer: _Renderer, node: Any) -> str:
    return f"({renderer.render(node.operand)} is {'not ' if node.negated else ''}null)"


def _in(renderer: _Renderer, node: Any) -> str:
    joined = renderer.types.common([node.operand, *node.options], "The value and the list of IN")
    operand = without_maps(renderer.render_as(node.operand, joined), joined)
    options = ", ".join(without_maps(renderer.render_as(option, joined), joined) for option in node.options)
    return f"({'not ' if node.negated else ''}coalesce({operand} in ({options}), false))"


def _like(renderer: _Renderer, node: Any) -> str:
    """LIKE where Spark's is the same; a pattern with escapes, or one that is only known per row, as an expression."""
    operand = renderer.render_as(node.operand, STRING)
    negation = "not " if node.negated else ""
    if not isinstance(node.pattern, nodes.StringLiteral):
        return f"({negation}{spark_like_by_regex(operand, renderer.render_as(node.pattern, STRING), node.escape)})"
    pattern = spark_like_pattern(node.pattern.value, node.escape)
    return "cast(null as boolean)" if pattern is None else f"({operand} {negation}like {string_literal(pattern)})"


def _case(renderer: _Renderer, node: Any) -> str:
    result = renderer.types.of(node)
    parts = ["case"]
    for when in node.whens:
        condition = when.condition if node.operand is None else nodes.Comparison("=", node.operand, when.condition)
        parts.append(f"when {renderer.render(condition)} then {renderer.render_as(when.result, result)}")
    if node.default is not None:
        parts.append(f"else {renderer.render_as(node.default, result)}")
    return f"({' '.join(parts)} end)"


def _cast(renderer: _Renderer, node: Any) -> str:
    return renderer.render_as(node.operand, node.type)


def _field(renderer: _Renderer, node: Any) -> str:
    return f"{renderer.render(node.operand)}.{quoted(node.name)}"


def _subscript(renderer: _Renderer, node: Any) -> str:
    operand, found = renderer.render(node.operand), renderer.types.of(node.operand)
    if isinstance(found, Map):
        return f"try_element_at({operand}, {renderer.render_as(node.index, found.key)})"
    return spark_element_at(operand, renderer.render_as(node.index, INTEGER))


def spark_element_at(array: str, position: str) -> str:
    """Counts from 1, or from the end with negative numbers; what is not there is null."""
    if position.isdecimal():
        return f"get({array}, {int(position) - 1})"
    return f"get({array}, case when {position} < 0 then size({array}) + {position} else {position} - 1 end)"


def _array(renderer: _Renderer, node: Any) -> str:
    found: Any = renderer.types.of(node)
    return f"array({', '.join(renderer.render_as(item, found.element) for item in node.items)})"


def _map(renderer: _Renderer, node: Any) -> str:
    """Spark takes no null as a key: such entries are left out."""
    found: Any = renderer.types.of(node)
    entries = []
    for entry in node.entries:
        key, value = renderer.render_as(entry.key, found.key), renderer.render_as(entry.value, found.value)
        entries.append(f"struct({key} as key, {value} as value)")
    return f"map_from_entries(filter(array({', '.join(entries)}), `lambda entry` -> `lambda entry`.key is not null))"


def _struct(renderer: _Renderer, node: Any) -> str:
    parts = (f"{string_literal(field.name)}, {renderer.render(field.expression)}" for field in node.fields)
    return f"named_struct({', '.join(parts)})"


def _integer(renderer: _Renderer, node: Any) -> str:
    text = f"{node.value}L" if renderer.types.of(node) == BIGINT else str(node.value)
    return f"({text})" if node.value < 0 else text


_RENDERERS: dict[type, Callable[[_Renderer, Any], str]] = {
    nodes.NullLiteral: lambda _renderer, _node: "null",
    nodes.BooleanLiteral: lambda _renderer, node: "true" if node.value else "false",
    nodes.IntegerLiteral: _integer,
    nodes.DecimalLiteral: lambda renderer, node: f"cast('{node.text}' as {spark_type(renderer.types.of(node))})",
    nodes.DoubleLiteral: lambda _renderer, node: f"double('{node.value!r}')",
    nodes.StringLiteral: lambda _renderer, node: string_literal(node.value),
    nodes.Column: _column,
    nodes.LambdaVariable: lambda _renderer, node: _variable_name(node.name),
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
