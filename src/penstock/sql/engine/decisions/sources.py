"""CREATE, ALTER and DROP of streams and tables over topics."""

from __future__ import annotations

from penstock.sql.catalog.catalog import Catalog, Source
from penstock.sql.catalog.declaring import declare_source, with_columns
from penstock.sql.catalog.properties import read_properties
from penstock.sql.engine.decisions.situation import Decision, Situation, creation_name, make_command, name_taken
from penstock.sql.engine.new_topics import topic_for_source
from penstock.sql.errors import SemanticError
from penstock.sql.plan.replacing import check_schema_grows
from penstock.sql.plan.scope import similar_source
from penstock.sql.statements import AlterSource, CreateSource, DropSource


def create_source(statement: CreateSource, situation: Situation) -> Decision:
    existing = situation.catalog.sources.get(statement.name)
    if existing is not None and not statement.or_replace:
        return name_taken(statement.kind, existing, allowed=statement.if_not_exists)
    source = declare_source(statement, situation.text, situation.properties)
    if statement.or_replace and source.read_only:
        raise _not_replaceable(source)
    if existing is not None:
        check_source_replaced(existing, source)
    properties = read_properties(statement.properties)
    command = make_command(situation, creation_name(source), f"{source.kind.capitalize()} created", sources=(source,))
    return Decision(command=command, new_topic=topic_for_source(source, properties, situation.topics))


def check_source_replaced(old: Source, new: Source) -> None:
    if old.read_only or new.read_only:
        raise _not_replaceable(new)
    if old.query_id is not None:
        raise SemanticError(
            f"Cannot add {new.kind.lower()} '{new.name}': a query writes it.",
            hint=f"Replace it with CREATE OR REPLACE {old.kind} ... AS SELECT, or drop it first.",
        )
    for what, one, other in (
        ("type", old.kind, new.kind),
        ("topic", old.topic, new.topic),
        ("key format", old.key_format, new.key_format),
        ("value format", old.value_format, new.value_format),
        ("window", old.windowed, new.windowed),
    ):
        if one != other:
            raise SemanticError(
                f"Cannot upgrade data source: DataSource '`{old.name}`' has another {what}, which is not upgradeable.",
                hint="Drop it and create it anew.",
            )
    check_schema_grows(new.name, old.schema, new.schema)


def _not_replaceable(source: Source) -> SemanticError:
    kind = source.kind.lower()
    return SemanticError(
        f"Cannot add {kind} '{source.name}': CREATE OR REPLACE is not supported on source {kind}s.",
        hint="Drop it first.",
    )


def alter_source(statement: AlterSource, situation: Situation) -> Decision:
    source = situation.catalog.sources.get(statement.name)
    if source is None:
        hint = similar_source(statement.name, situation.catalog)
        raise SemanticError(f"Source {statement.name} does not exist.", hint=hint)
    if source.kind != statement.kind:
        raise SemanticError(
            f"Incompatible data source type is {source.kind}, but statement was ALTER {statement.kind}."
        )
    if source.query_id is not None:
        raise SemanticError(
            "ALTER command is not supported for CREATE ... AS statements.",
            hint=f"Use CREATE OR REPLACE {source.kind} {source.name} AS SELECT ... with the new columns.",
        )
    if source.read_only:
        kind = source.kind.lower()
        raise SemanticError(
            f"Cannot alter {kind} '{source.name}': ALTER operations are not supported on source {kind}s."
        )
    altered = with_columns(source, statement, situation.text)
    name = f"{source.kind.lower()}/{source.name}/alter"
    command = make_command(situation, name, f"{source.kind.capitalize()} {source.name} altered.", sources=(altered,))
    return Decision(command=command)


def drop_source(statement: DropSource, situation: Situation) -> Decision:
    catalog = situation.catalog
    source = catalog.sources.get(statement.name)
    if source is None and statement.if_exists:
        return Decision(note=f"Source `{statement.name}` does not exist.")
    if source is None:
        raise SemanticError(
            f"{statement.kind.capitalize()} {statement.name} does not exist.",
            hint=similar_source(statement.name, catalog),
        )
    if source.kind != statement.kind:
        raise SemanticError(
            f"Incompatible data source type is {source.kind.lower()}, but statement was DROP {statement.kind.lower()}.",
            hint=f"Use DROP {source.kind} {source.name}.",
        )
    own = _check_unused(source, catalog)
    command = make_command(
        situation,
        f"{source.kind.lower()}/{source.name}/drop",
        f"Source `{source.name}` (topic: {source.topic}) was dropped.",
        terminated=own,
        dropped=(source.name,),
    )
    return Decision(command=command, deleted_topic=_topic_to_delete(statement, source, catalog))


def _check_unused(source: Source, catalog: Catalog) -> tuple[str, ...]:
    """The query that makes the source ends with it; any other that uses it must be terminated before."""
    readers = sorted(query.query_id for query in catalog.readers(source.name))
    writers = sorted(query.query_id for query in catalog.writers(source.name) if query.query_id != source.query_id)
    if readers or writers:
        raise SemanticError(
            f"Cannot drop {source.name}.\n"
            f"The following queries read from this source: [{', '.join(readers)}].\n"
            f"The following queries write into this source: [{', '.join(writers)}].\n"
            f"You need to terminate them before dropping {source.name}."
        )
    return (source.query_id,) if source.query_id in catalog.queries and source.query_id is not None else ()


def _topic_to_delete(statement: DropSource, source: Source, catalog: Catalog) -> str | None:
    if not statement.delete_topic:
        return None
    if source.read_only:
        raise SemanticError(f"Cannot delete topic for read-only source: {source.name}")
    using = [each.name for each in catalog.sources.values() if each.topic == source.topic and each.name != source.name]
    if using:
        raise SemanticError(
            f"Refusing to delete topic. Found other data sources ({', '.join(sorted(using))}) using topic "
            f"{source.topic}.",
            hint="Drop them first, or drop without DELETE TOPIC.",
        )
    return source.topic
