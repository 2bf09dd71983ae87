"""CREATE STREAM and CREATE TABLE over a topic: the source they declare."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, Final

import msgspec

from penstock.sql.catalog.catalog import Source
from penstock.sql.catalog.formats import DEFAULT_KEY_FORMAT, make_format
from penstock.sql.catalog.properties import SourceProperties, read_properties
from penstock.sql.catalog.timestamps import timestamp_column
from penstock.sql.errors import SemanticError
from penstock.sql.schema import HEADERS_TYPE, RESERVED_NAMES, ColumnSchema, Format, HeaderColumn, Schema
from penstock.sql.statements import AlterSource, ColumnDefinition, CreateSource
from penstock.sql.types import BYTES

KEY_FORMAT_SETTING: Final = "ksql.persistence.default.format.key"
VALUE_FORMAT_SETTING: Final = "ksql.persistence.default.format.value"


def declare_source(statement: CreateSource, text: str, settings: Mapping[str, Any] | None = None) -> Source:
    """`settings` name the formats of statements that do not."""
    schema = make_schema(statement)
    properties = _with_default_formats(read_properties(statement.properties), schema, settings or {})
    if properties.windowed is not None and not schema.key:
        raise SemanticError("Windowed sources require a key column.")
    if properties.value_format is None:
        raise SemanticError(
            "Statement is missing the 'VALUE_FORMAT' property from the WITH clause.",
            hint=f"Add VALUE_FORMAT, as in WITH (VALUE_FORMAT='JSON'), or set a default via '{VALUE_FORMAT_SETTING}'.",
        )
    return Source(
        name=statement.name,
        kind=statement.kind,
        topic=properties.topic or statement.name,
        schema=schema,
        key_format=make_format("KEY", properties, schema.key, default=_default_key_format(properties, schema)),
        value_format=make_format("VALUE", properties, schema.value, default=Format("JSON")),
        windowed=properties.windowed,
        timestamp=timestamp_column(properties, schema),
        read_only=statement.read_only,
        statement=text,
    )


def _with_default_formats(
    properties: SourceProperties, schema: Schema, settings: Mapping[str, Any]
) -> SourceProperties:
    def default(setting: str) -> str | None:
        return str(settings.get(setting) or "").upper() or None

    key_format = properties.key_format or (default(KEY_FORMAT_SETTING) if schema.key else None)
    return replace(
        properties, key_format=key_format, value_format=properties.value_format or default(VALUE_FORMAT_SETTING)
    )


def with_columns(source: Source, statement: AlterSource, text: str) -> Source:
    """The source with columns added at the end of its value."""
    for column in statement.columns:
        if column.role is not None:
            raise SemanticError(
                f"Cannot add the {column.role} column `{column.name}`: only value columns can be added."
            )
        if source.schema.column(column.name) is not None:
            raise SemanticError(
                f"Cannot add column `{column.name}` to schema. A column with the same name already exists."
            )
    _check_names(statement.columns)
    added = tuple(ColumnSchema(column.name, column.type) for column in statement.columns)
    schema = msgspec.structs.replace(source.schema, value=(*source.schema.value, *added))
    as_written = SourceProperties(value_format=source.value_format.name)
    make_format("VALUE", as_written, schema.value, default=source.value_format)
    return msgspec.structs.replace(source, schema=schema, statement=f"{source.statement}\n{text}")


def make_schema(statement: CreateSource) -> Schema:
    columns = statement.columns
    if not columns:
        raise SemanticError(
            "The statement does not define any columns.",
            hint="List the columns with their types, as in (ID STRING KEY, V INT).",
        )
    _check_names(columns)
    _check_roles(statement)
    return Schema(
        key=tuple(ColumnSchema(each.name, each.type) for each in columns if each.role in ("KEY", "PRIMARY KEY")),
        value=tuple(ColumnSchema(each.name, each.type) for each in columns if each.role is None),
        headers=tuple(HeaderColumn(each.name, each.header) for each in columns if _is_header(each)),
    )


def _is_header(column: ColumnDefinition) -> bool:
    return column.role in ("HEADERS", "HEADER")


def _default_key_format(properties: SourceProperties, schema: Schema) -> Format:
    if not schema.key and properties.key_format is None:
        return Format("NONE")
    return Format(DEFAULT_KEY_FORMAT)


def _check_names(columns: tuple[ColumnDefinition, ...]) -> None:
    names = [column.name for column in columns]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise SemanticError(
            f"Duplicate column names: {', '.join(f'`{name}`' for name in twice)}.",
            hint="Rename all but one; names without quotes are upper case.",
        )
    for name in names:
        if name in RESERVED_NAMES:
            raise SemanticError(f"'{name}' is a reserved column name. You cannot use it as a name for a column.")


def _check_roles(statement: CreateSource) -> None:
    roles = {column.role for column in statement.columns}
    if statement.kind == "TABLE":
        _check_table_roles(statement, roles)
    elif "PRIMARY KEY" in roles:
        name = next(column.name for column in statement.columns if column.role == "PRIMARY KEY")
        raise SemanticError(
            f"Column `{name}` is a 'PRIMARY KEY' column: please use 'KEY' for streams.\n"
            "Tables have PRIMARY KEYs, which are unique and NON NULL. Streams have KEYs, which have no uniqueness or "
            "NON NULL constraints."
        )
    for column in statement.columns:
        _check_header(column)
    if sum(column.role == "HEADERS" for column in statement.columns) > 1:
        raise SemanticError("Schema already contains a HEADERS column.", hint="Declare one, and HEADER('key') columns.")


def _check_table_roles(statement: CreateSource, roles: Collection[str | None]) -> None:
    if "KEY" in roles:
        name = next(column.name for column in statement.columns if column.role == "KEY")
        raise SemanticError(
            f"Column `{name}` is a 'KEY' column: please use 'PRIMARY KEY' for tables.\n"
            "Tables have PRIMARY KEYs, which are unique and NON NULL. Streams have KEYs, which have no uniqueness or "
            "NON NULL constraints."
        )
    if "PRIMARY KEY" not in roles:
        raise SemanticError(
            "Tables require a PRIMARY KEY. Please define the PRIMARY KEY.",
            hint="Mark the column that holds the record's key with PRIMARY KEY.",
        )


def _check_header(column: ColumnDefinition) -> None:
    wanted = {"HEADERS": HEADERS_TYPE, "HEADER": BYTES}.get(column.role or "")
    if wanted is not None and column.type != wanted:
        raise SemanticError(
            f"Invalid type for {column.role} column: expected {wanted}, got {column.type}",
            hint=f"Column `{column.name}`.",
        )
