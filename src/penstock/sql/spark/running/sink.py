"""The end of a persistent query: each batch of Spark becomes one Kafka transaction.

    wait until the tables this query looks into are current
    run the batch (also when its output is there already: only running it moves Spark's state)
    the marker says it is committed: done
    drop what changes nothing, encode, send the records and the marker, commit
    wait until the query's own table has it, because the next batch compares with it

The transaction is the only commit. If it fails the batch raises, Spark repeats it with the same number and the same
offsets, and the marker tells what became of it. `sql.md` calls this the rules of exactly once.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow
from msgspec.structs import replace
from pyspark.sql import DataFrame

import penstock
from penstock.sql import processing_log
from penstock.sql.formats.encoding import RowEncoder
from penstock.sql.plan.nodes import Sink
from penstock.sql.spark.running.checkpoints import Checkpoint
from penstock.sql.spark.running.closing import BatchDoor
from penstock.sql.spark.running.markers import Marker, send_marker, verdict
from penstock.sql.stores.deletions import without_needless_deletions
from penstock.sql.stores.stores import OpenTable

log = logging.getLogger(__name__)

_COMMIT_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The largest record the topic takes, and where records that are larger are told."""

    max_bytes: int
    tell: Callable[[list[bytes]], None]


class TopicSink:
    """Called by Spark with each batch. `table` is the store of the result when it is a table."""

    def __init__(
        self,
        *,
        query_id: str,
        service_id: str,
        sink: Sink,
        producer: penstock.Producer,
        marker: Marker,
        checkpoint: Checkpoint,
        table: OpenTable | None,
        looked_up: Sequence[OpenTable],
        refused: Refused,
    ) -> None:
        self.door = BatchDoor()
        self.failure: Exception | None = None
        self.rows_written = 0
        self.batches_done = 0
        self._query_id = query_id
        self._service_id = service_id
        self._sink = sink
        self._encoder = RowEncoder(sink)
        self._producer = producer
        self._marker = marker
        self._checkpoint = checkpoint
        self._table = table
        self._looked_up = looked_up
        self._refused = refused

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        with self.door.batch():
            try:
                self._write(frame, batch_id)
                self.batches_done += 1
            except Exception as error:
                self.failure = error
                raise

    def _write(self, frame: DataFrame, batch_id: int) -> None:
        for table in self._looked_up:
            table.wait_until_current()
        rows = frame.toArrow()
        offsets = self._checkpoint.offsets(batch_id)
        if verdict(self._marker, batch_id=batch_id, offsets=offsets) == "done":
            log.info("%s: batch %d is committed already", self._query_id, batch_id)
            return
        records = self._records(rows)
        if records.num_rows:
            self._commit(records, replace(self._marker, batch_id=batch_id, offsets=offsets))
            self.rows_written += records.num_rows

    def _records(self, rows: pyarrow.Table) -> pyarrow.Table:
        """What is to be sent: key, value and timestamp of each row that changes something."""
        if self._table is not None:
            rows = without_needless_deletions(rows, self._sink, self._table.store)
        encoded = self._encoder.encode(rows)
        if encoded.errors:
            self._tell([f"{error}" for error in encoded.errors])
        columns = {
            "key": pyarrow.array(encoded.keys, pyarrow.binary()),
            "value": pyarrow.array(encoded.values, pyarrow.binary()),
            "timestamp": pyarrow.array(encoded.timestamps, pyarrow.int64()),
        }
        return self._fitting(pyarrow.table(columns))

    def _fitting(self, records: pyarrow.Table) -> pyarrow.Table:
        """Records the topic would refuse for their size are told, not sent: a refusal would end the transaction."""
        compute = pyarrow.compute
        sizes = compute.add(_lengths(records["key"]), _lengths(records["value"]))
        fits = compute.less_equal(sizes, self._refused.max_bytes)
        refused = records.num_rows - (compute.sum(fits).as_py() or 0)
        if not refused:
            return records
        topic, limit = self._sink.topic, self._refused.max_bytes
        self._tell([f"{refused} record(s) larger than the {limit} bytes that the topic {topic} takes were left out."])
        return records.filter(fits)

    def _tell(self, reasons: list[str]) -> None:
        now_ms = time.time_ns() // 1_000_000
        logger = f"processing.{self._query_id}"
        self._refused.tell(
            [processing_log.production_error(logger=logger, time_ms=now_ms, reason=reason) for reason in reasons]
        )

    def _commit(self, records: pyarrow.Table, marker: Marker) -> None:
        """Send and commit. A failure needs no abort: the query starts anew, and its new producer ends what is open."""
        producer = self._producer
        producer.begin_transaction()
        deliveries = producer.send_many(self._sink.topic, records)
        send_marker(producer, self._service_id, self._query_id, marker)
        producer.commit_transaction(_COMMIT_TIMEOUT_S)
        self._marker = marker
        if self._table is not None:
            ends: dict[int, int] = {}
            for delivery in deliveries:
                written = delivery.result(0)
                ends[delivery.partition] = max(ends.get(delivery.partition, 0), written.base_offset + delivery.count)
            self._table.wait_for(ends)


def _lengths(column: pyarrow.ChunkedArray) -> pyarrow.ChunkedArray:
    return pyarrow.compute.fill_null(pyarrow.compute.binary_length(column), 0)
