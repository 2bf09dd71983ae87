"""The Spark types of SQL types, and the Spark schema of a source."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pyspark.sql import types as spark

from penstock.sql.formats.decoding import DELETED
from penstock.sql.plan.nodes import SourceNode
from penstock.sql.schema import PSEUDO_COLUMNS, WINDOW_COLUMNS
from penstock.sql.types import BOOLEAN, Array, Decimal, Map, Scalar, SqlType, Struct

_SCALARS: Final[dict[str, Callable[[], spark.DataType]]] = {
    "BOOLEAN": spark.BooleanType,
    "INTEGER": spark.IntegerType,
    "BIGINT": spark.LongType,
    "DOUBLE": spark.DoubleType,
    "STRING": spark.StringType,
    "BYTES": spark.BinaryType,
    "TIME": spark.TimeType,
    "DATE": spark.DateType,
    "TIMESTAMP": spark.TimestampType,
    "NULL": spark.NullType,
}


def spark_type(sql_type: SqlType) -> spark.DataType:
    match sql_type:
        case Scalar(name):
            return _SCALARS[name]()
        case Decimal(precision, scale):
            return spark.DecimalType(precision, scale)
        case Array(element):
            return spark.ArrayType(spark_type(element))
        case Map(key, value):
            return spark.MapType(spark_type(key), spark_type(value))
        case Struct(fields):
            return spark.StructType([spark.StructField(field.name, spark_type(field.type)) for field in fields])


def source_schema(source: SourceNode) -> spark.StructType:
    """The columns `RowDecoder` gives for this source, in its order."""
    schema = source.schema
    columns: dict[str, SqlType] = {column.name: column.type for column in (*schema.key, *schema.value)}
    columns |= {header.name: header.type for header in schema.headers}
    columns |= PSEUDO_COLUMNS
    if source.windowed is not None:
        columns |= WINDOW_COLUMNS
    if source.marks_deletions:
        columns[DELETED] = BOOLEAN
    return spark.StructType(
        [spark.StructField(source.prefix + name, spark_type(kind)) for name, kind in columns.items()]
    )
