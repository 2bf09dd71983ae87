"""Fetched records as rows of a declared source; what cannot be read goes to the processing log.

Decoders are kept per process: they learn how records are spelled.
"""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec
import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema

from penstock import KafkaError
from penstock.sql.formats.bad_records import BadRecord, log_entry, summary_entry
from penstock.sql.formats.decoding import RowDecoder
from penstock.sql.plan.nodes import SourceNode
from penstock.sql.spark.source.clients import PRODUCERS
from penstock.sql.spark.types import source_schema

log = logging.getLogger(__name__)

TOLD_MAX: Final = 1_000
"""Bad records of one task that are told one by one; the rest is counted."""


class TypedRows:
    """`source` is the JSON of a SourceNode; `log_topic` None: bad records are only counted in the worker's log."""

    def __init__(self, source: str, *, client: dict[str, str], log_topic: str | None, logger: str) -> None:
        self._decoder, self._schema = _decoder(source)
        self._client = client
        self._log_topic = log_topic
        self._logger = logger

    @property
    def needs_headers(self) -> bool:
        return self._decoder.needs_headers

    def decode(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        bad: list[BadRecord] = []
        untold = 0
        for raw in batches:
            decoded = self._decoder.decode(raw)
            room = TOLD_MAX - len(bad)
            bad += decoded.errors[:room]
            untold += len(decoded.errors[room:])
            if decoded.batch.num_rows:
                yield self._fitting(decoded.batch)
        if bad:
            self._tell(bad, untold)

    def _fitting(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch if batch.schema.equals(self._schema) else batch.cast(self._schema)

    def _tell(self, bad: list[BadRecord], untold: int) -> None:
        log.warning("%d records could not be read, first %s", len(bad) + untold, bad[0].text)
        if self._log_topic is None:
            return
        now_ms = int(time.time() * 1000)
        entries = [log_entry(each, self._logger, now_ms) for each in bad]
        if untold:
            entries.append(summary_entry(bad[-1].topic, untold, self._logger, now_ms))
        try:
            with PRODUCERS.lent(dict(self._client)) as producer:
                for delivery in producer.send_many(self._log_topic, entries):
                    delivery.result()
        except KafkaError as error:
            # The log tells of bad records; that it cannot be written must not stop the good ones.
            log.warning("the processing log %s could not be written: %s", self._log_topic, error)


def source_to_json(source: SourceNode) -> str:
    return msgspec.json.encode(source).decode()


def source_from_json(text: str) -> SourceNode:
    return msgspec.json.decode(text, type=SourceNode)


@functools.lru_cache(maxsize=256)
def _decoder(source: str) -> tuple[RowDecoder, pa.Schema]:
    node = source_from_json(source)
    return RowDecoder(node), to_arrow_schema(source_schema(node), timezone="UTC")
