"""Fetched records as rows of a declared source; what cannot be read goes to the processing log.

Records are read whole, so that a bad one is found whatever a query uses of it; Spark gets the columns that are used.
Decoders are kept per process: they learn how records are spelled.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Iterator

import msgspec
import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from penstock.sql.formats.bad_records import BadRecord
from penstock.sql.formats.decoding import RowDecoder
from penstock.sql.plan.nodes import SourceNode
from penstock.sql.spark.types import source_schema
from penstock.sql.spark.worker_log import TOLD_MAX, WorkerLog


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
    """`wanted` is the JSON of one."""

    def __init__(self, wanted: str, log: WorkerLog) -> None:
        self._decoder, self._schema = _decoder(wanted)
        self._log = log

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
            self._log.tell_bad_records(bad, untold)

    def _fitting(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        used = batch.select(self._schema.names)
        return used if used.schema.equals(self._schema) else used.cast(self._schema)


@functools.lru_cache(maxsize=256)
def _decoder(text: str) -> tuple[RowDecoder, pa.Schema]:
    wanted = Wanted.from_json(text)
    return RowDecoder(wanted.source), to_arrow_schema(wanted.schema, timezone="UTC")
