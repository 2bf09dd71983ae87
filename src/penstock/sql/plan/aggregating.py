"""GROUP BY, WINDOW and HAVING: the aggregate, and the SELECT list in terms of its result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import msgspec

from penstock.sql.errors import SemanticError
from penstock.sql.expressions.nodes import Call, Column, Expression, IntegerLiteral, NamedExpression
from penstock.sql.expressions.text import format_expression
from penstock.sql.expressions.typing import infer
from penstock.sql.expressions.walk import calls_of, columns_of
from penstock.sql.functions.registry import FunctionRegistry
from penstock.sql.plan.draft import Draft, KeyPart
from penstock.sql.plan.filtering import check_condition
from penstock.sql.plan.nodes import AggregateNode, Aggregation, Window
from penstock.sql.plan.rewriting import rewrite
from penstock.sql.plan.selecting import NameMaker
from penstock.sql.schema import ROWTIME, WINDOW_COLUMNS, WindowedKey
from penstock.sql.types import BIGINT, SqlType

_ONE_GROUP = KeyPart(name="KSQL_GROUP", expression=IntegerLiteral(0), equals=())
"""The key of an aggregate over everything."""


def aggregate(draft: Draft) -> Draft:
    """Rule: groups, if the query does."""
    query = draft.request.query
    if not query.group_by and not _has_aggregates(draft):
        _check_plain(draft)
        return draft
    draft = _grouped(draft)
    _check_table(draft)
    return _aggregated(draft)


def aggregate_calls(expression: Expression, functions: FunctionRegistry) -> list[Call]:
    return [call for call in calls_of(expression) if functions.is_aggregate(call.name)]


def window_key(window: Window) -> WindowedKey:
    return WindowedKey(type=window.type, size_ms=None if window.type == "SESSION" else window.size_ms)


def _has_aggregates(draft: Draft) -> bool:
    having = draft.request.query.having
    expressions = [item.expression for item in draft.items] + ([having] if having is not None else [])
    return any(aggregate_calls(expression, draft.request.functions) for expression in expressions)


def _check_plain(draft: Draft) -> None:
    query = draft.request.query
    if query.window is not None:
        raise SemanticError(
            "WINDOW clause requires a GROUP BY clause.", hint="Aggregate something, as in SELECT COUNT(*)."
        )
    if query.having is not None:
        raise SemanticError("HAVING requires a GROUP BY clause.", hint="Use WHERE to filter rows.")


def _grouped(draft: Draft) -> Draft:
    """The draft with the key it groups by. Without GROUP BY these are the plain columns of the SELECT."""
    query, functions = draft.request.query, draft.request.functions
    if query.partition_by:
        raise SemanticError(
            "PARTITION BY cannot be used together with GROUP BY.", hint="The result is keyed by the GROUP BY columns."
        )
    expressions = [draft.scope.resolve(expression, "GROUP BY") for expression in query.group_by]
    warnings = draft.warnings
    if not expressions:
        expressions = [item.expression for item in draft.items if _is_plain(item.expression, functions)]
        warnings = (*warnings, *_implicit_warning(draft, expressions))
    for expression in expressions:
        _check_group(expression, expressions, draft)
    names = NameMaker.for_scope(draft.scope)
    key = tuple(_key_part(expression, draft, names) for expression in expressions) or (_ONE_GROUP,)
    _check_key_names(key)
    return replace(draft, key=key, key_origin="grouping expression", warnings=warnings)


def _is_plain(expression: Expression, functions: FunctionRegistry) -> bool:
    """Whether a selected expression stands for a group when no GROUP BY says so."""
    columns = [column.name for column in columns_of(expression)]
    return bool(columns) and not aggregate_calls(expression, functions) and not set(columns) & set(WINDOW_COLUMNS)


def _implicit_warning(draft: Draft, expressions: list[Expression]) -> tuple[str, ...]:
    if not expressions:
        if draft.request.persistent:
            calls = {
                call.name for item in draft.items for call in aggregate_calls(item.expression, draft.request.functions)
            }
            raise SemanticError(
                f"CREATE TABLE AS SELECT statement does not support aggregate function {', '.join(sorted(calls))} "
                "without a GROUP BY clause.",
                hint="Add GROUP BY with the columns to group by.",
            )
        return ()
    written = ", ".join(map(draft.scope.shown, expressions))
    return (f"The query aggregates without GROUP BY: it is grouped by {written}. Add GROUP BY {written} to say so.",)


def _check_group(expression: Expression, expressions: list[Expression], draft: Draft) -> None:
    if expressions.count(expression) > 1:
        raise SemanticError(f"Duplicate GROUP BY expression: {draft.scope.shown(expression)}")
    calls = aggregate_calls(expression, draft.request.functions)
    if calls:
        raise SemanticError(f"GROUP BY does not support aggregate functions: {calls[0].name} is an aggregate function.")
    _check_bounds(expression, draft)


def _check_bounds(expression: Expression, draft: Draft) -> None:
    """The bounds of the window being made are known only after the aggregate."""
    used = [column.name for column in columns_of(expression) if column.name in WINDOW_COLUMNS]
    if draft.request.query.window is not None and used:
        raise SemanticError(
            f"Window bounds column {used[0]} can only be used in the SELECT clause of windowed aggregations and can "
            "not be passed to aggregate functions."
        )


def _key_part(expression: Expression, draft: Draft, names: NameMaker) -> KeyPart:
    """The key column is named as it is selected, else as its column."""
    selected = [item.name for item in draft.items if item.expression == expression]
    if len(selected) > 1:
        raise SemanticError(
            f"The projection contains a key column more than once: {' and '.join(f'`{name}`' for name in selected)}.\n"
            "Each key column must only be in the projection once. If you intended to copy the key into the value, "
            "then consider using the AS_VALUE function to indicate which key reference should be copied."
        )
    default = expression.name if isinstance(expression, Column) else names.name_for(expression)
    return KeyPart(name=selected[0] if selected else default, expression=expression, equals=(expression,))


def _check_key_names(key: tuple[KeyPart, ...]) -> None:
    names = [part.name for part in key]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise SemanticError(f"Two grouping expressions are called `{twice}`.", hint="Give them aliases with AS.")


def _check_table(draft: Draft) -> None:
    query, functions = draft.request.query, draft.request.functions
    if draft.kind != "TABLE":
        return
    if query.window is not None:
        raise SemanticError(
            "Windowing not supported for table aggregations.", hint="Drop the WINDOW clause, or aggregate a stream."
        )
    expressions = [item.expression for item in draft.items]
    if query.having is not None:
        expressions.append(query.having)
    called = sorted({call.name for each in expressions for call in aggregate_calls(each, functions)})
    definitions = [(name, functions.aggregate(name)) for name in called]
    unfit = [name for name, definition in definitions if definition is not None and not definition.undo]
    if unfit:
        raise SemanticError(
            f"The aggregation function{'s' if len(unfit) > 1 else ''} {' and '.join(unfit)} cannot be applied to a "
            "table source, only to a stream source."
        )


@dataclass(slots=True)
class _Lifting:
    """Takes the aggregate calls out of expressions; what is left refers to the aggregate's result."""

    draft: Draft
    keys: Mapping[Expression, Expression]
    aggregations: dict[Call, Aggregation] = field(default_factory=dict)
    foreign: list[Expression] = field(default_factory=list)

    def lift(self, expression: Expression) -> tuple[Expression, list[str]]:
        """The expression over the result, and the columns in it that are neither grouped nor aggregated."""
        foreign: list[str] = []

        def place(part: Expression) -> Expression | None:
            if part in self.keys:
                return self.keys[part]
            if isinstance(part, Call) and self.draft.request.functions.is_aggregate(part.name):
                return Column(self._aggregation(part).name)
            if isinstance(part, Column) and not self._is_bound(part):
                foreign.append(part.name)
            return None

        return rewrite(expression, place), foreign

    def _is_bound(self, column: Column) -> bool:
        return self.draft.request.query.window is not None and column.name in WINDOW_COLUMNS

    def _aggregation(self, call: Call) -> Aggregation:
        known = self.aggregations.get(call)
        if known is not None:
            return known
        functions = self.draft.request.functions
        for argument in call.arguments:
            inner = aggregate_calls(argument, functions)
            if inner:
                raise SemanticError(
                    f"Aggregate functions can not be nested: {call.name}({self.draft.scope.shown(inner[0])}).",
                    hint="Make a table of the inner one, and aggregate that.",
                )
            _check_bounds(argument, self.draft)
        _check_constants(call, functions)
        made = Aggregation(
            name=f"KSQL_AGG_VARIABLE_{len(self.aggregations)}",
            function=call.name,
            arguments=call.arguments,
            type=infer(call, self.draft.columns, functions),
        )
        self.aggregations[call] = made
        return made


def _check_constants(call: Call, functions: FunctionRegistry) -> None:
    function = functions.aggregate(call.name)
    rule = "none" if function is None else function.constants
    numbered = list(enumerate(call.arguments, 1))
    for number, argument in {"none": [], "last": numbered[-1:], "rest": numbered[1:]}[rule]:
        if columns_of(argument):
            raise SemanticError(
                f"Parameter {number} passed to function {call.name} must be a literal constant, but was expression: "
                f"'{format_expression(argument)}'."
            )


def _aggregated(draft: Draft) -> Draft:
    query, functions = draft.request.query, draft.request.functions
    lifting = _Lifting(draft, {each: Column(part.name) for part in draft.key for each in part.equals})
    items = _lifted_items(draft, lifting)
    having = _lifted_having(draft, lifting)
    if not lifting.aggregations:
        raise SemanticError("GROUP BY requires aggregate functions in either the SELECT or HAVING clause.")
    columns = _result_columns(draft, lifting)
    if having is not None and query.having is not None:
        check_condition(having, columns, functions, "HAVING", written=query.having)
    node = AggregateNode(
        input=draft.node,
        key=tuple(NamedExpression(part.name, part.expression) for part in draft.key),
        aggregations=tuple(lifting.aggregations.values()),
        window=_window(draft),
        having=having,
        emit=query.emit or "CHANGES",
    )
    return replace(
        draft,
        node=node,
        columns=columns,
        kind="TABLE",
        key=tuple(KeyPart(name=p.name, expression=Column(p.name), equals=(Column(p.name),)) for p in draft.key),
        items=items,
        windowed=window_key(query.window) if query.window else None,
        aggregated=True,
    )


def _lifted_items(draft: Draft, lifting: _Lifting) -> tuple[NamedExpression, ...]:
    lifted, unfit = [], []
    for item in draft.items:
        expression, foreign = lifting.lift(item.expression)
        lifted.append(NamedExpression(item.name, expression))
        unfit += [draft.scope.shown(item.expression)] if foreign else []
    if unfit:
        raise SemanticError(
            f"Non-aggregate SELECT expression(s) not part of GROUP BY: {', '.join(unfit)}\n"
            "Either add the column(s) to the GROUP BY or remove them from the SELECT."
        )
    return tuple(lifted)


def _lifted_having(draft: Draft, lifting: _Lifting) -> Expression | None:
    written = draft.request.query.having
    if written is None:
        return None
    resolved = draft.scope.resolve(written, "HAVING")
    _check_bounds(resolved, draft)
    having, foreign = lifting.lift(resolved)
    if foreign:
        shown = [draft.scope.shown(Column(name)) for name in foreign]
        raise SemanticError(
            f"Non-aggregate HAVING expression not part of GROUP BY: {', '.join(shown)}\n"
            "Consider switching the HAVING clause to a WHERE clause before the GROUP BY."
        )
    return having


def _result_columns(draft: Draft, lifting: _Lifting) -> dict[str, SqlType]:
    functions = draft.request.functions
    keys = {part.name: infer(part.expression, draft.columns, functions) for part in draft.key}
    values = {each.name: each.type for each in lifting.aggregations.values()}
    bounds = WINDOW_COLUMNS if draft.request.query.window else {}
    return {**keys, **values, ROWTIME: BIGINT, **bounds}


def _window(draft: Draft) -> Window | None:
    """EMIT FINAL without GRACE PERIOD waits for no late rows, as in ksqlDB."""
    query = draft.request.query
    if query.window is not None and query.emit == "FINAL" and not query.grace_given:
        return msgspec.structs.replace(query.window, grace_ms=0)
    return query.window
