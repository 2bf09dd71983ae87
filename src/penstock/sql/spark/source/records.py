"""Fetched records as the rows of Spark's Kafka connector: key, value, topic, partition, offset, timestamp, its type."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import types as spark
from pyspark.sql.pandas.types import to_arrow_schema


def record_schema(*, headers: bool) -> spark.StructType:
    binary, text = spark.BinaryType(), spark.StringType()
    fields: list[tuple[str, spark.DataType]] = [
        ("key", binary),
        ("value", binary),
        ("topic", text),
        ("partition", spark.IntegerType()),
        ("offset", spark.LongType()),
        ("timestamp", spark.TimestampType()),
        ("timestampType", spark.IntegerType()),
    ]
    if headers:
        header = spark.StructType([spark.StructField("key", text), spark.StructField("value", binary)])
        fields.append(("headers", spark.ArrayType(header)))
    return spark.StructType([spark.StructField(name, kind) for name, kind in fields])


def as_rows(batches: Iterable[pa.RecordBatch], *, headers: bool) -> Iterator[pa.RecordBatch]:
    schema = to_arrow_schema(record_schema(headers=headers), timezone="UTC")
    for batch in batches:
        names = ["timestamp_type" if name == "timestampType" else name for name in schema.names]
        arrays = [batch.column(name).cast(field.type) for name, field in zip(names, schema, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)
