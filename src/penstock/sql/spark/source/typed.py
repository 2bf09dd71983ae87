"""Fetched records as rows of a declared source; what cannot be read goes to the processing log.

Records are read whole, so that a bad one is found whatever a query uses of it; Spark gets the columns that are used.
Decoders are kept per process: they learn how records are spelled.
"""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Collection, Iterable, Iterator
from typing import Final

import msgspec
import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from penstock import KafkaError
from penstock.sql.formats.bad_records import BadRecord, log_entry, summary_entry
from penstock.sql.formats.decoding import RowDecoder
from penstock.sql.plan.nodes import SourceNode
from penstock.sql.spark.source.clients import PRODUCERS
from penstock.sql.spark.types import source_schema

log = logging.getLogger(__name__)

TOLD_MAX: Final = 1_000
"""Bad records of one task that are told one by one; the rest is counted."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """A declared source, and those of its columns that nothing asks for."""

    source: SourceNode
    unused: tuple[str, ...] = ()

    @classmethod
    def of(cls, source: SourceNode, used: Collection[str] | None = None) -> Wanted:
        """Keys and technical columns are always wanted. `used` has names with the source's prefix; None: all."""
        if used is None:
            return cls(source=source)
        keys = {each.name for each in source.schema.key}
        names = [source.prefix + each.name for each in source.schema.columns if each.name not in keys]
        return cls(source=source, unused=tuple(name for name in names if name not in used))

    @classmethod
    def from_json(cls, text: str) -> Wanted:
        return msgspec.json.decode(text, type=cls)

    def to_json(self) -> str:
        return msgspec.json.encode(self).decode()

    @property
    def schema(self) -> StructType:
        return StructType([each for each in source_schema(self.source) if each.name not in self.unused])


class TypedRows:
    """`wanted` is the JSON of one; `log_topic` None: bad records are only counted in the worker's log."""

    def __init__(self, wanted: str, *, client: dict[str, str], log_topic: str | None, logger: str) -> None:
        self._decoder, self._schema = _decoder(wanted)
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
        used = batch.select(self._schema.names)
        return used if used.schema.equals(self._schema) else used.cast(self._schema)

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


@functools.lru_cache(maxsize=256)
def _decoder(text: str) -> tuple[RowDecoder, pa.Schema]:
    wanted = Wanted.from_json(text)
    return RowDecoder(wanted.source), to_arrow_schema(wanted.schema, timezone="UTC")
