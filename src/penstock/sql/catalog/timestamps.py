"""WITH (TIMESTAMP=...): the column that gives ROWTIME."""

from __future__ import annotations

from penstock.sql.catalog.properties import SourceProperties
from penstock.sql.errors import SemanticError
from penstock.sql.schema import Schema, TimestampColumn
from penstock.sql.types import BIGINT, STRING, TIMESTAMP


def timestamp_column(properties: SourceProperties, schema: Schema) -> TimestampColumn | None:
    """The column that TIMESTAMP names, checked."""
    if properties.timestamp is None:
        if properties.timestamp_format is not None:
            raise SemanticError("TIMESTAMP_FORMAT needs TIMESTAMP, the name of the column it describes.")
        return None
    column = schema.column(properties.timestamp)
    if column is None:
        raise SemanticError(
            f"The TIMESTAMP column set in the WITH clause does not exist in the schema: '{properties.timestamp}'"
        )
    if column.type == STRING and properties.timestamp_format is None:
        raise SemanticError(
            "A String timestamp field has been specified without also specifying the timestamp_format.",
            hint="Add TIMESTAMP_FORMAT, as in TIMESTAMP_FORMAT='yyyy-MM-dd HH:mm:ss'.",
        )
    if column.type not in (STRING, BIGINT, TIMESTAMP):
        raise SemanticError(
            f"Timestamp column, `{column.name}`, should be LONG(INT64), TIMESTAMP, or a String with a timestamp_format "
            f"specified. It is {column.type}."
        )
    if column.type != STRING and properties.timestamp_format is not None:
        raise SemanticError(f"TIMESTAMP_FORMAT is only for STRING columns; `{column.name}` is {column.type}.")
    return TimestampColumn(column=column.name, format=properties.timestamp_format)
