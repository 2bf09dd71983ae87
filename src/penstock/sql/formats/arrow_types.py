"""The Arrow types of SQL types, chosen to be the ones Spark uses, so that columns travel without a cast."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from penstock.sql.types import Array, Decimal, Map, Scalar, SqlType, Struct

_SCALARS: Final[dict[str, Any]] = {
    "BOOLEAN": pa.bool_(),
    "INTEGER": pa.int32(),
    "BIGINT": pa.int64(),
    "DOUBLE": pa.float64(),
    "STRING": pa.string(),
    "BYTES": pa.binary(),
    "TIME": pa.time64("ns"),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us", "UTC"),
    "NULL": pa.null(),
}


def arrow_type(sql_type: SqlType) -> pa.DataType:
    match sql_type:
        case Scalar(name):
            return _SCALARS[name]
        case Decimal(precision, scale):
            return pa.decimal128(precision, scale)
        case Array(element):
            return pa.list_(pa.field("element", arrow_type(element)))
        case Map(key, value):
            return pa.map_(arrow_type(key), arrow_type(value))
        case Struct(fields):
            return pa.struct([pa.field(field.name, arrow_type(field.type)) for field in fields])
