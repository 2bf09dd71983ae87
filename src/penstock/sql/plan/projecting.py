"""The last node of a plan: the key and the value columns of the result.

What the SELECT list has of the key becomes the key, under the name it was selected by; all else is the value.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from penstock.sql.errors import SemanticError
from penstock.sql.expressions.nodes import Column, NamedExpression
from penstock.sql.expressions.typing import infer
from penstock.sql.plan.draft import Draft, KeyPart
from penstock.sql.plan.nodes import ProjectNode
from penstock.sql.schema import ROWTIME, WINDOW_COLUMNS, ColumnSchema, Schema
from penstock.sql.types import NULL

_CARRIED = frozenset({ROWTIME, *WINDOW_COLUMNS})
"""Columns that every result has beside its schema, so that selecting them adds nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Projected:
    """A draft whose node is the projection, with the schema of its rows and the order they were selected in."""

    draft: Draft
    schema: Schema
    columns: tuple[str, ...]


def project(draft: Draft) -> Projected:
    persistent = draft.request.persistent
    chosen = [(part, _selected(draft, part)) for part in draft.key]
    if persistent:
        _check_key_selected(draft, [part for part, items in chosen if not items])
    key = tuple(
        NamedExpression(_key_name(part, items), part.expression) for part, items in chosen if items or persistent
    )
    taken = [items[0] for _, items in chosen if items]
    value = tuple(item for item in draft.items if item not in taken and not _is_carried(item))
    _check_names(draft, key, value)
    if not value and persistent:
        raise SemanticError("The projection contains no value columns.", hint="Select a column that is not the key.")
    node = ProjectNode(input=draft.node, key=key, value=value)
    schema = Schema(key=_typed(draft, key), value=_typed(draft, value))
    return Projected(draft=replace(draft, node=node), schema=schema, columns=_order(draft, persistent=persistent))


def _selected(draft: Draft, part: KeyPart) -> list[NamedExpression]:
    """The items that select a part of the key, the left-most side of a join first.

    A persistent query may select the same one once; AS_VALUE copies.
    """
    items = [item for expression in part.equals for item in draft.items if item.expression == expression]
    same = [item for item in items if item.expression == items[0].expression]
    if draft.request.persistent and len(same) > 1:
        names = " and ".join(sorted(item.name for item in same))
        raise SemanticError(
            f"The projection contains a key column ({part.name}) more than once, aliased as: {names}.\n"
            "Each key column must only be in the projection once. If you intended to copy the key into the value, "
            "then consider using the AS_VALUE function to indicate which key reference should be copied."
        )
    return items


def _key_name(part: KeyPart, items: list[NamedExpression]) -> str:
    return items[0].name if items else part.name


def _check_key_selected(draft: Draft, missing: list[KeyPart]) -> None:
    """A plain star takes in a key that PARTITION BY computed."""
    sink = draft.request.sink
    if not missing or draft.star or sink is None:
        return
    required = [_shown(draft, part) for part in (missing if not draft.aggregated else draft.key)]
    either = len(missing) == 1 and len(missing[0].equals) > 1
    listed = " or ".join(required[0]) if either else " and ".join(options[0] for options in required)
    plural = "s" if either or len(required) > 1 else ""
    synthetic = any(part.synthetic for part in missing)
    raise SemanticError(
        f"Key{'s' if len(required) > 1 else ''} missing from projection (ie, SELECT). \n"
        f"The query used to build `{sink.name}` must include the {draft.key_origin}{plural} {listed} in its projection "
        f"(eg, SELECT {', '.join(options[0] for options in required)}...)."
        + (
            f"\n{listed} was added as a synthetic key column because the join criteria did not match any source "
            "column. This expression must be included in the projection and may be aliased."
            if synthetic
            else ""
        )
    )


def _shown(draft: Draft, part: KeyPart) -> list[str]:
    """The ways to select a part of the key, as a person writes them."""
    return [part.name] if part.synthetic else [draft.scope.shown(expression) for expression in part.equals]


def _is_carried(item: NamedExpression) -> bool:
    return item.name in _CARRIED and item.expression == Column(item.name)


def _check_names(draft: Draft, key: tuple[NamedExpression, ...], value: tuple[NamedExpression, ...]) -> None:
    names = [item.name for item in (*key, *value)]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        clash = any(item.name in twice for item in key)
        told = "Value columns clash with key columns" if clash else "The projection has columns of the same name"
        raise SemanticError(f"{told}: {', '.join(f'`{name}`' for name in twice)}.", hint="Give them aliases with AS.")


def _typed(draft: Draft, items: tuple[NamedExpression, ...]) -> tuple[ColumnSchema, ...]:
    return tuple(_column(draft, item) for item in items)


def _column(draft: Draft, item: NamedExpression) -> ColumnSchema:
    kind = infer(item.expression, draft.columns, draft.request.functions)
    if kind == NULL:
        raise SemanticError(
            "Can't infer a type of null. Please explicitly cast it to a required type, e.g. CAST(null AS VARCHAR)."
        )
    return ColumnSchema(item.name, kind)


def _order(draft: Draft, *, persistent: bool) -> tuple[str, ...]:
    return () if persistent else tuple(item.name for item in draft.items)
