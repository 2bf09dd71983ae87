"""The columns of a stream or table, and the names every row carries beside them.

A row in the engine has the key columns, the value columns, the header columns, and the pseudo columns below. Names are
already folded: unquoted ones are upper case, back-ticked ones as written.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from penstock.sql.types import BIGINT, BYTES, INTEGER, STRING, Array, Field, SqlType, Struct

ROWTIME = "ROWTIME"
ROWPARTITION = "ROWPARTITION"
ROWOFFSET = "ROWOFFSET"
WINDOWSTART = "WINDOWSTART"
WINDOWEND = "WINDOWEND"

PSEUDO_COLUMNS: dict[str, SqlType] = {ROWTIME: BIGINT, ROWPARTITION: INTEGER, ROWOFFSET: BIGINT}
WINDOW_COLUMNS: dict[str, SqlType] = {WINDOWSTART: BIGINT, WINDOWEND: BIGINT}
RESERVED_NAMES = frozenset({*PSEUDO_COLUMNS, *WINDOW_COLUMNS})

HEADERS_TYPE = Array(Struct((Field("KEY", STRING), Field("VALUE", BYTES))))
"""The type of a column declared HEADERS; HEADER('name') is BYTES."""

Kind = Literal["STREAM", "TABLE"]


class ColumnSchema(msgspec.Struct, frozen=True):
    name: str
    type: SqlType


class HeaderColumn(msgspec.Struct, frozen=True):
    """`key` is None for HEADERS (all of them), else the name in HEADER('name')."""

    name: str
    key: str | None = None

    @property
    def type(self) -> SqlType:
        return HEADERS_TYPE if self.key is None else BYTES


class Schema(msgspec.Struct, frozen=True):
    """Several key columns are allowed; an empty key means records without a key."""

    key: tuple[ColumnSchema, ...] = ()
    value: tuple[ColumnSchema, ...] = ()
    headers: tuple[HeaderColumn, ...] = ()

    @property
    def columns(self) -> tuple[ColumnSchema | HeaderColumn, ...]:
        return (*self.key, *self.value, *self.headers)

    def column(self, name: str) -> ColumnSchema | HeaderColumn | None:
        return next((column for column in self.columns if column.name == name), None)


class Format(msgspec.Struct, frozen=True):
    """How bytes and columns become one another: KAFKA, JSON, DELIMITED or NONE, with its WITH properties.

    `delimiter` is for DELIMITED; `wrap_single` is WRAP_SINGLE_VALUE: whether one column is written as an object.
    """

    name: str
    delimiter: str = ","
    wrap_single: bool = True


WindowType = Literal["TUMBLING", "HOPPING", "SESSION"]


class WindowedKey(msgspec.Struct, frozen=True):
    """The records' keys carry a window, written as Kafka Streams does.

    Time windows: key bytes, window start (8 bytes, big endian). Session: key bytes, end, start.
    `size_ms` is None for sessions.
    """

    type: WindowType
    size_ms: int | None = None


class TimestampColumn(msgspec.Struct, frozen=True):
    """ROWTIME comes from this column; `format` is a java.time pattern for strings, None for BIGINT and TIMESTAMP."""

    column: str
    format: str | None = None
