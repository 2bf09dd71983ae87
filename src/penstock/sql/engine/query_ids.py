"""Names of persistent queries: the offset of the command that made one keeps them apart for ever."""

from __future__ import annotations

import re

from penstock.sql.catalog.catalog import Catalog
from penstock.sql.errors import SemanticError
from penstock.sql.schema import Kind
from penstock.sql.statements import Properties

_RESERVED = ("INSERTQUERY_", "CTAS_", "CSAS_", "CST_")


def select_query_id(kind: Kind, name: str, offset: int) -> str:
    return f"{'CSAS' if kind == 'STREAM' else 'CTAS'}_{name}_{offset}"


def insert_query_id(properties: Properties, offset: int, catalog: Catalog) -> str:
    """As WITH (QUERY_ID=...) says, else numbered."""
    written = properties.get("QUERY_ID")
    if written is None:
        return f"INSERTQUERY_{offset}"
    query_id = str(written).upper()
    if query_id.startswith(_RESERVED):
        raise SemanticError(
            f"Query IDs must not start with a reserved query ID prefix ({', '.join(_RESERVED)}). Got '{query_id}'."
        )
    if not re.fullmatch(r"\w+", query_id, re.ASCII):
        raise SemanticError(f"Query IDs may contain only alphanumeric characters and '_'. Got: '{query_id}'")
    if query_id in catalog.queries:
        raise SemanticError(f"Query ID '{query_id}' already exists.")
    return query_id
