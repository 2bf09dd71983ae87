"""Arrow columns as Python rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow

from penstock.sql.formats.python_values import to_python
from penstock.sql.types import SqlType


def python_rows(table: pyarrow.Table | pyarrow.RecordBatch, columns: Mapping[str, SqlType]) -> list[tuple[Any, ...]]:
    """The rows of these columns, each a tuple in their order."""
    if not columns:
        return [()] * int(table.num_rows)
    return list(zip(*(to_python(table.column(name), sql_type) for name, sql_type in columns.items()), strict=True))
