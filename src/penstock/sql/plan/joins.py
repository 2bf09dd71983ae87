"""FROM with its joins: the sources, joined from left to right.

Each join has the result so far on its left and one new source on its right. What may be joined to what, and how, is
decided by the kinds of both: a stream with a stream (WITHIN), a stream with a table (by its primary key), a table with
a table (both by their primary keys).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.sql.errors import NotSupportedError, SemanticError
from penstock.sql.expressions.nodes import Call, Column, Comparison, Expression, Logical
from penstock.sql.expressions.text import format_expression
from penstock.sql.expressions.typing import infer
from penstock.sql.functions.registry import FunctionRegistry
from penstock.sql.plan.draft import KeyPart
from penstock.sql.plan.nodes import PlanNode, StreamStreamJoinNode, StreamTableJoinNode, TableTableJoinNode
from penstock.sql.plan.scope import Scope, ScopedSource
from penstock.sql.schema import Kind
from penstock.sql.statements import Join
from penstock.sql.types import SqlType

SYNTHETIC_KEY = "ROWKEY"
"""The name of a key that is no column of any source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """The result of the joins so far.

    `key` computes its key. `equal` are all expressions the conditions made equal to it; `viable` those columns among
    them that may name it in a SELECT (none after a full join, where each side may be missing). `full`: the last join
    was one.
    """

    node: PlanNode
    kind: Kind
    first_name: str
    key: Expression | None = None
    equal: tuple[Expression, ...] = ()
    viable: tuple[Expression, ...] = ()
    full: bool = False

    def key_part(self) -> KeyPart | None:
        if self.key is None:
            return None
        if not self.viable:
            return KeyPart(name=SYNTHETIC_KEY, expression=self.key, equals=(self.key,), synthetic=True)
        first = self.viable[0]
        name = first.name if isinstance(first, Column) else SYNTHETIC_KEY
        return KeyPart(name=name, expression=self.key, equals=self.viable)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Side:
    """One side of a condition: as written, as resolved, and whose columns it has."""

    written: Expression
    resolved: Expression
    source: ScopedSource


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """One join with its condition the right way round."""

    join: Join
    before: Joined
    right: ScopedSource
    left_side: _Side
    right_side: _Side

    @property
    def condition(self) -> str:
        return f"{format_expression(self.left_side.written)} = {format_expression(self.right_side.written)}"

    @property
    def sources(self) -> str:
        return f"{self.before.first_name} {self.join.kind} JOIN {self.right.source.name}"

    @property
    def on_key(self) -> bool:
        """Whether the condition is about the key of the result so far.

        After a full join of streams it is not: a side may be missing, and then finds no partner, as in ksqlDB.
        """
        before = self.before
        usable = before.kind == "TABLE" or not before.full
        return before.key is not None and self.left_side.resolved in before.equal and usable

    @property
    def left_key(self) -> Expression:
        """What is equal to the key of the result so far is that key: it is there even if one side is missing."""
        return self.before.key if self.on_key and self.before.key is not None else self.left_side.resolved


def join_sources(scope: Scope, joins: tuple[Join, ...], functions: FunctionRegistry) -> Joined:
    first = scope.sources[0]
    joined = Joined(node=first.source.node(first.prefix), kind=first.source.kind, first_name=first.source.name)
    columns = scope.column_types()
    for position, join in enumerate(joins):
        known, right = scope.sources[: position + 1], scope.sources[position + 1]
        step = _step(scope, joined, join, known, right)
        _check_types(step, columns, functions)
        _check_windows(known[0], right)
        joined = _combine(step)
    return joined


def _step(scope: Scope, joined: Joined, join: Join, known: tuple[ScopedSource, ...], right: ScopedSource) -> _Step:
    condition = _equality(join.condition)
    one, other = _side(scope, condition.left, condition), _side(scope, condition.right, condition)
    if one.source == right:
        one, other = other, one
    if other.source != right or one.source not in known:
        raise SemanticError(
            f"Each side of the join must reference exactly one source and not the same source. "
            f"Left side references {one.source.alias} and right references {other.source.alias}.",
            hint=f"The condition of this join must name {right.alias} on one side and an earlier source on the other.",
        )
    return _Step(join=join, before=joined, right=right, left_side=one, right_side=other)


def _equality(condition: Expression) -> Comparison:
    if isinstance(condition, Logical):
        raise SemanticError(
            "Invalid join condition: joins on multiple conditions are not yet supported. "
            f"Got {format_expression(condition)}.",
            hint="Join on one column and put the rest into WHERE.",
        )
    if not isinstance(condition, Comparison):
        raise SemanticError(f"Unsupported join expression: {format_expression(condition)}")
    if condition.operator != "=":
        raise SemanticError("Only equality join criteria is supported.", hint="Write ON left.a = right.b.")
    return condition


def _side(scope: Scope, written: Expression, condition: Comparison) -> _Side:
    sources = scope.sources_of(written, "JOIN ON")
    if len(sources) != 1:
        raise SemanticError(
            f"Invalid comparison expression '{format_expression(written)}' in join '{format_expression(condition)}'. "
            "Each side of the join comparision must contain references from exactly one source."
        )
    return _Side(written=written, resolved=scope.resolve(written, "JOIN ON"), source=sources[0])


def _check_types(step: _Step, columns: Mapping[str, SqlType], functions: FunctionRegistry) -> None:
    left = infer(step.left_side.resolved, columns, functions)
    right = infer(step.right_side.resolved, columns, functions)
    if left != right:
        raise SemanticError(
            f"Invalid join condition: types don't match. Got {format_expression(step.left_side.written)}{{{left}}} = "
            f"{format_expression(step.right_side.written)}{{{right}}}.",
            hint="CAST one side to the type of the other.",
        )


def _check_windows(left: ScopedSource, right: ScopedSource) -> None:
    windows = [source.source.windowed for source in (left, right)]
    if (windows[0] is None) != (windows[1] is None):
        told = [
            f"{each.alias} is {w.type if w else 'not'} windowed" for each, w in zip((left, right), windows, strict=True)
        ]
        raise SemanticError("Can not join windowed source to non-windowed source.\n" + "\n".join(told))
    if windows[0] is not None:
        raise NotSupportedError(
            f"Joins of windowed sources do not run here yet: {left.alias} and {right.alias} are windowed.",
            hint="Join the sources first, then aggregate by window.",
        )


def _combine(step: _Step) -> Joined:
    match (step.before.kind, step.right.source.kind):
        case ("STREAM", "STREAM"):
            return _result(step, "STREAM", _stream_stream(step))
        case ("STREAM", "TABLE"):
            return _result(step, "STREAM", _stream_table(step))
        case ("TABLE", "TABLE"):
            return _result(step, "TABLE", _table_table(step))
        case _:
            raise SemanticError(
                "Invalid join order: table-stream joins are not supported; only stream-table joins. "
                f"Got {step.sources}.",
                hint="Put the stream on the left.",
            )


def _result(step: _Step, kind: Kind, node: PlanNode) -> Joined:
    left, right = step.left_key, step.right_side.resolved
    continued = step.on_key
    equal = _distinct(*(step.before.equal if continued else ()), step.left_side.resolved, right)
    viable = _distinct(*(step.before.viable if continued else ()), step.left_side.resolved, right)
    full = step.join.kind == "FULL"
    keys = {"RIGHT": right, "FULL": Call("COALESCE", (left, right))}
    return Joined(
        node=node,
        kind=kind,
        first_name=step.before.first_name,
        key=keys.get(step.join.kind, left),
        equal=equal,
        full=full,
        viable=() if full else tuple(each for each in viable if isinstance(each, Column)),
    )


def _distinct(*expressions: Expression) -> tuple[Expression, ...]:
    return tuple(dict.fromkeys(expressions))


def _stream_stream(step: _Step) -> PlanNode:
    within = step.join.within
    if within is None:
        raise SemanticError(
            "Stream-Stream joins must have a WITHIN clause specified. None was provided.",
            hint=f"Write how far apart in time the rows may be: JOIN {step.right.source.name} WITHIN 1 HOUR ON ...",
        )
    return StreamStreamJoinNode(
        left=step.before.node,
        right=step.right.source.node(step.right.prefix),
        kind=step.join.kind,
        left_key=step.left_key,
        right_key=step.right_side.resolved,
        before_ms=within.before_ms,
        after_ms=within.after_ms,
        grace_ms=within.grace_ms,
    )


def _stream_table(step: _Step) -> PlanNode:
    _check_no_within(step, "Stream-Table")
    if step.join.kind not in ("INNER", "LEFT"):
        name = "full-outer" if step.join.kind == "FULL" else "right-outer"
        raise SemanticError(
            f"Invalid join type: {name} join not supported for stream-table join. Got {step.sources}.",
            hint="Use an inner or LEFT JOIN: only rows of the stream give results.",
        )
    if not _is_key(step.right_side):
        raise SemanticError(
            "Invalid join condition: stream-table joins require to join on the table's primary key. "
            f"Got {step.condition}.",
            hint=_key_hint(step.right),
        )
    return StreamTableJoinNode(
        stream=step.before.node,
        table=step.right.source.node(step.right.prefix),
        kind="INNER" if step.join.kind == "INNER" else "LEFT",
        stream_key=step.left_key,
    )


def _table_table(step: _Step) -> PlanNode:
    _check_no_within(step, "Table-Table")
    if not _is_key(step.right_side):
        raise SemanticError(
            "Invalid join condition: table-table joins require to join on the primary key of the right input table. "
            f"Got {step.condition}.",
            hint=_key_hint(step.right),
        )
    on_key = step.left_side.resolved in step.before.equal if step.before.key else _is_key(step.left_side)
    if not on_key:
        raise NotSupportedError(
            f"Foreign-key table-table joins do not run here yet. Got {step.condition}.",
            hint=f"Join {step.left_side.source.alias} by its primary key.",
        )
    return TableTableJoinNode(
        left=step.before.node,
        right=step.right.source.node(step.right.prefix),
        kind=step.join.kind,
        left_key=step.left_key,
        right_key=step.right_side.resolved,
    )


def _check_no_within(step: _Step, kinds: str) -> None:
    if step.join.within is not None:
        raise SemanticError(
            f"A window definition was provided for a {kinds} join. These joins are not windowed. Please drop the "
            "window definition (ie. the WITHIN clause) and try to execute your join again."
        )


def _is_key(side: _Side) -> bool:
    key = side.source.source.schema.key
    return len(key) == 1 and side.resolved == Column(side.source.plan_name(key[0].name))


def _key_hint(source: ScopedSource) -> str:
    names = [column.name for column in source.source.schema.key]
    if len(names) == 1:
        return f"The primary key of {source.source.name} is {names[0]}."
    return f"The primary key of {source.source.name} has several columns ({', '.join(names)}): it cannot be joined."
