"""Pull queries: what a table holds now, or what a stream has held so far."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow

import penstock
from penstock.base.types import TopicPartition
from penstock.sql.engine.chains import Chain, columns_of
from penstock.sql.engine.reading import READING, partitions_now, remedy
from penstock.sql.engine.rows import Row
from penstock.sql.engine.selecting import selection_of
from penstock.sql.formats.decoding import DELETED, RowDecoder
from penstock.sql.formats.rows import python_rows
from penstock.sql.functions.registry import FunctionRegistry
from penstock.sql.kafka import KafkaAccess
from penstock.sql.plan.nodes import SourceNode
from penstock.sql.stores.stores import OpenTable
from penstock.sql.types import BOOLEAN

_POLL_MS = 200


def pull_table(chain: Chain, table: OpenTable, functions: FunctionRegistry) -> Iterator[Row]:
    selection = selection_of(chain.predicate, chain.source, functions)
    for row in table.reader.rows(selection):
        if chain.matches(row):
            yield Row(chain.project(row))


def pull_stream(chain: Chain, kafka: KafkaAccess) -> Iterator[Row]:
    """All rows of the stream up to where it ends now."""
    batches = _until_end(chain.source, kafka)
    next(batches)
    return _rows(chain, batches)


def _rows(chain: Chain, batches: Iterator[Any]) -> Iterator[Row]:
    for batch in batches:
        for row in rows_of(RowDecoder(chain.source).decode(batch).batch, chain.source):
            if chain.matches(row):
                yield Row(chain.project(row))


def _until_end(source: SourceNode, kafka: KafkaAccess) -> Iterator[Any]:
    """First nothing, once it is known where the stream ends: what is wrong with it is told before the first row."""
    hint = remedy(source)
    with penstock.Consumer(kafka.config("pull", READING)) as consumer:
        partitions = partitions_now(consumer, source.topic, hint)
        ends = consumer.end_offsets(partitions)
        consumer.assign(partitions)
        consumer.seek_to_beginning(partitions)
        yield None
        while any(consumer.position(partition) < end for partition, end in ends.items()):
            batch = consumer.consume_arrow(_POLL_MS, headers=bool(source.schema.headers))
            if batch.num_rows:
                yield _before(batch, ends)
            else:
                partitions_now(consumer, source.topic, hint)


def _before(batch: pyarrow.RecordBatch, ends: dict[TopicPartition, int]) -> pyarrow.RecordBatch:
    """Without the records that came after the query began."""
    offsets, partitions = batch.column("offset").to_pylist(), batch.column("partition").to_pylist()
    by_number = {partition.partition: end for partition, end in ends.items()}
    keep = [offset < by_number[number] for offset, number in zip(offsets, partitions, strict=True)]
    return batch if all(keep) else batch.filter(pyarrow.array(keep))


def rows_of(batch: pyarrow.RecordBatch, source: SourceNode) -> Iterator[dict[str, Any]]:
    """The rows of a decoded batch, by column name."""
    columns = columns_of(source)
    if source.kind == "TABLE":
        columns[DELETED] = BOOLEAN
    for values in python_rows(batch, columns):
        yield dict(zip(columns, values, strict=True))
