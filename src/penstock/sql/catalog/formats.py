"""Which formats there are, and which columns each can carry."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.sql.catalog.properties import Part, SourceProperties
from penstock.sql.errors import NotSupportedError, SemanticError
from penstock.sql.schema import ColumnSchema, Format
from penstock.sql.types import BIGINT, BYTES, DOUBLE, INTEGER, STRING, Array, Map, SqlType, Struct

DEFAULT_KEY_FORMAT = "KAFKA"

_KNOWN = ("KAFKA", "JSON", "DELIMITED", "NONE")
_LATER = ("AVRO", "PROTOBUF", "PROTOBUF_NOSR", "JSON_SR")
_KAFKA_TYPES = frozenset({INTEGER, BIGINT, DOUBLE, STRING, BYTES})
_NAMED_DELIMITERS = {"SPACE": " ", "TAB": "\t"}


def make_format(
    part: Part, properties: SourceProperties, columns: Sequence[ColumnSchema], *, default: Format
) -> Format:
    """The format of a key or value: as written in WITH, else `default`."""
    name = properties.format_of(part) or default.name
    inherited = default if name == default.name else Format(name=name)
    chosen = Format(
        name=_checked_name(name),
        delimiter=_delimiter(part, name, properties.delimiter_of(part), inherited.delimiter),
        wrap_single=_wrapping(part, name, properties, columns, inherited),
    )
    check_columns(part, chosen, columns)
    return chosen


def check_columns(part: Part, chosen: Format, columns: Sequence[ColumnSchema]) -> None:
    """Refuses columns that the format cannot carry."""
    reason = _misfit(part, chosen.name, columns)
    if reason:
        listed = ", ".join(f"`{column.name}` {column.type}" for column in columns)
        raise SemanticError(
            f"{part.capitalize()} format does not support schema.\nformat: {chosen.name}\nschema: [{listed}]\n"
            f"reason: {reason}.",
            hint=f"Set {part}_FORMAT='JSON' in the WITH clause." if columns and chosen.name != "JSON" else None,
        )


def _checked_name(name: str) -> str:
    if name in _LATER:
        raise NotSupportedError(
            f"The format {name} does not run here yet.", hint="Use one of KAFKA, JSON, DELIMITED, NONE."
        )
    if name not in _KNOWN:
        raise SemanticError(f"Unknown format: {name}.", hint="Use one of KAFKA, JSON, DELIMITED, NONE.")
    return name


def _delimiter(part: Part, name: str, written: str | None, default: str) -> str:
    if written is None:
        return default
    if name != "DELIMITED":
        raise SemanticError(
            f"{name} does not support the following configs: [delimiter].", hint=f"Drop {part}_DELIMITER."
        )
    delimiter = _NAMED_DELIMITERS.get(written.upper(), written)
    if len(delimiter) != 1 or (delimiter.isspace() and written not in ("SPACE", "TAB")):
        raise SemanticError(
            f"Invalid delimiter value: '{written}'. Delimiter must be a single character or SPACE or TAB"
        )
    return delimiter


def _wrapping(
    part: Part, name: str, properties: SourceProperties, columns: Sequence[ColumnSchema], inherited: Format
) -> bool:
    """A key of one column is never wrapped; a value is, unless WRAP_SINGLE_VALUE says no."""
    if part == "KEY":
        return len(columns) != 1
    written = properties.wrap_single_value
    if written is None:
        return inherited.wrap_single
    if name != "JSON" and written != (name not in ("KAFKA", "NONE", "DELIMITED")):
        raise SemanticError(f"Format '{name}' does not support 'WRAP_SINGLE_VALUE' set to '{str(written).lower()}'.")
    if len(columns) > 1:
        raise SemanticError("'WRAP_SINGLE_VALUE' is only valid for single-field value schemas")
    return written


def _misfit(part: Part, name: str, columns: Sequence[ColumnSchema]) -> str | None:
    """Why the columns do not fit the format, or None."""
    types = [column.type for column in columns]
    if name == "NONE":
        return "The 'NONE' format can only be used when no columns are defined" if columns else None
    if name == "KAFKA" and len(columns) > 1:
        return f"The 'KAFKA' format only supports a single field. Got: {[column.name for column in columns]}"
    if name == "KAFKA":
        return next((f"The 'KAFKA' format does not support type '{t}'" for t in types if t not in _KAFKA_TYPES), None)
    if name == "DELIMITED":
        nested = (t for t in types if isinstance(t, Array | Map | Struct))
        return next((f"The 'DELIMITED' format does not support type '{t}'" for t in nested), None)
    if part == "KEY" and any(map(_has_map, types)):
        return "Map keys, including types that contain maps, are not supported as they may lead to unexpected behavior"
    bad = next((key for t in types for key in _map_keys(t) if key != STRING), None)
    return f"JSON only supports MAP types with STRING keys, not {bad}" if bad is not None else None


def _has_map(sql_type: SqlType) -> bool:
    return next(iter(_map_keys(sql_type)), None) is not None


def _map_keys(sql_type: SqlType) -> list[SqlType]:
    """The key types of all maps within a type."""
    match sql_type:
        case Map(key, value):
            return [key, *_map_keys(value)]
        case Array(element):
            return _map_keys(element)
        case Struct(fields):
            return [key for field in fields for key in _map_keys(field.type)]
        case _:
            return []
