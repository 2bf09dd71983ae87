"""Rows into topics, at least once: a task that is repeated writes its rows again.

Columns are the connector's: value (text or bytes), and if there are key, headers, partition, and topic, unless the
option `topic` names one for all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as spark
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from penstock import BatchDelivery, Producer
from penstock.sql.spark.source.clients import PRODUCERS
from penstock.sql.spark.source.errors import SourceError
from penstock.sql.spark.source.options import WriteOptions

_SENT: Final = ("key", "value", "headers", "partition")
_KNOWN: Final = (*_SENT, "topic")
_DELIVERIES_MAX: Final = 256
"""Batches under way before the oldest is waited for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written(WriterCommitMessage):
    rows: int


def check_columns(schema: spark.StructType, options: WriteOptions) -> None:
    """Raises ValueError when these rows cannot be written."""
    names = schema.fieldNames()
    unknown = [name for name in names if name not in _KNOWN]
    if unknown:
        raise ValueError(
            f"no column {', '.join(unknown)} can be written: rename or drop it; known are {', '.join(_KNOWN)}"
        )
    if "value" not in names:
        raise ValueError(
            "there is no column value: give one of type STRING or BINARY, such as to_json(struct(*)) AS value"
        )
    if options.topic is None and "topic" not in names:
        raise ValueError("no topic is named: give the option topic, or a column topic")
    for name in ("key", "value"):
        if name in names and not isinstance(schema[name].dataType, spark.StringType | spark.BinaryType):
            raise ValueError(
                f"the column {name} is {schema[name].dataType.simpleString()}: cast it to STRING or BINARY"
            )


def write_batches(batches: Iterator[pa.RecordBatch], options: WriteOptions) -> Written:
    rows = 0
    with PRODUCERS.lent(dict(options.client)) as producer:
        under_way: list[BatchDelivery] = []
        for batch in batches:
            rows += batch.num_rows
            under_way += _send(producer, batch, options)
            while len(under_way) > _DELIVERIES_MAX:
                under_way.pop(0).result()
        for delivery in under_way:
            delivery.result()
    return Written(rows=rows)


def _send(producer: Producer, batch: pa.RecordBatch, options: WriteOptions) -> list[BatchDelivery]:
    sent = batch.select([name for name in batch.schema.names if name in _SENT])
    if options.topic is not None:
        return producer.send_many(options.topic, sent)
    topics = batch.column("topic")
    if topics.null_count:
        raise SourceError("A row has no topic: the column topic is null. Fill it, or give the option topic.")
    deliveries: list[BatchDelivery] = []
    for topic in topics.unique().to_pylist():
        deliveries += producer.send_many(topic, sent.filter(pc.equal(topics, topic)))
    return deliveries


class TopicWriter(DataSourceArrowWriter):
    def __init__(self, options: WriteOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return write_batches(iterator, self._options)


class TopicStreamWriter(DataSourceStreamArrowWriter):
    def __init__(self, options: WriteOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return write_batches(iterator, self._options)
