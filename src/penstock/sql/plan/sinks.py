"""Where the result goes: the formats it inherits, the topic, and what an existing stream demands."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from penstock.sql.catalog.catalog import Source
from penstock.sql.catalog.formats import DEFAULT_KEY_FORMAT, check_columns, make_format
from penstock.sql.catalog.timestamps import timestamp_column
from penstock.sql.errors import SemanticError
from penstock.sql.expressions.coercion import common_type
from penstock.sql.expressions.nodes import Cast, NamedExpression
from penstock.sql.plan.draft import SinkRequest
from penstock.sql.plan.nodes import ProjectNode, Sink
from penstock.sql.plan.projecting import Projected
from penstock.sql.schema import ColumnSchema, Format, Kind, Schema


def result_kind(projected: Projected) -> Kind:
    """An aggregate is a table; CREATE STREAM and INSERT INTO take its changes as a stream."""
    draft = projected.draft
    sink = draft.request.sink
    if sink is None or sink.kind == draft.kind:
        return draft.kind
    if sink.kind == "STREAM" and draft.aggregated:
        return "STREAM"
    raise SemanticError(
        f"Invalid result type. Your SELECT query produces a {draft.kind}. "
        f"Please use CREATE {draft.kind} AS SELECT statement instead."
    )


def make_sink(projected: Projected, sink: SinkRequest) -> tuple[Projected, Sink]:
    """The sink, and the projection with the casts that an existing stream asks for."""
    if sink.target is not None:
        return _into(projected, sink.target)
    origin, properties, schema = projected.draft.scope.sources[0].source, sink.properties, projected.schema
    if not schema.key and properties.key_format not in (None, "NONE"):
        raise SemanticError("Key format specified for stream without key columns.", hint="Leave out KEY_FORMAT.")
    made = Sink(
        name=sink.name,
        kind=sink.kind,
        topic=properties.topic or sink.name,
        schema=schema,
        key_format=make_format("KEY", properties, schema.key, default=_key_default(origin, schema)),
        value_format=make_format("VALUE", properties, schema.value, default=_value_default(origin)),
        windowed=projected.draft.windowed,
        timestamp=timestamp_column(properties, schema),
    )
    return projected, made


def _key_default(origin: Source, schema: Schema) -> Format:
    """The source's; one without key gives no format to a result that has one."""
    if not schema.key:
        return Format("NONE")
    return Format(DEFAULT_KEY_FORMAT) if origin.key_format.name == "NONE" else origin.key_format


def _value_default(origin: Source) -> Format:
    """The source's; how it wraps a single column is not inherited."""
    return msgspec.structs.replace(origin.value_format, wrap_single=True)


def _into(projected: Projected, target: Source) -> tuple[Projected, Sink]:
    """An existing stream takes rows of its own columns in their order; numbers are widened to its types."""
    node, schema = projected.draft.node, projected.schema
    fits = _fits(schema.key, target.schema.key) and _fits(schema.value, target.schema.value)
    if not fits or projected.draft.windowed != target.windowed or not isinstance(node, ProjectNode):
        raise SemanticError(
            f"Incompatible schema between results and sink.\nResult schema is {_shown(schema)}\n"
            f"Sink schema is {_shown(target.schema)}.",
            hint="Name, order and CAST the selected columns as those of the sink.",
        )
    cast = ProjectNode(
        input=node.input,
        key=_cast(node.key, schema.key, target.schema.key),
        value=_cast(node.value, schema.value, target.schema.value),
    )
    result = Schema(key=target.schema.key, value=target.schema.value)
    check_columns("KEY", target.key_format, result.key)
    made = Sink(
        name=target.name,
        kind=target.kind,
        topic=target.topic,
        schema=result,
        key_format=target.key_format,
        value_format=target.value_format,
        windowed=target.windowed,
        timestamp=target.timestamp,
    )
    return replace(projected, draft=replace(projected.draft, node=cast), schema=result), made


def _fits(columns: tuple[ColumnSchema, ...], wanted: tuple[ColumnSchema, ...]) -> bool:
    if [column.name for column in columns] != [column.name for column in wanted]:
        return False
    return all(common_type(one.type, other.type) == other.type for one, other in zip(columns, wanted, strict=True))


def _cast(
    items: tuple[NamedExpression, ...], columns: tuple[ColumnSchema, ...], wanted: tuple[ColumnSchema, ...]
) -> tuple[NamedExpression, ...]:
    return tuple(
        item if one.type == other.type else NamedExpression(item.name, Cast(item.expression, other.type))
        for item, one, other in zip(items, columns, wanted, strict=True)
    )


def _shown(schema: Schema) -> str:
    key = [f"`{column.name}` {column.type} KEY" for column in schema.key]
    return ", ".join([*key, *(f"`{column.name}` {column.type}" for column in schema.value)])
