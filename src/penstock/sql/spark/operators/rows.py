"""The rows of a node: a Spark frame, and what its columns mean.

Beside the columns that expressions may name a frame carries its time, its order, and marks of deletion and window,
each under the name told here. Names that begin with two underscores are made here; no statement can name them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from penstock.sql.expressions.spark_types import quoted
from penstock.sql.formats.decoding import DELETED
from penstock.sql.schema import ROWTIME, WINDOWEND, WINDOWSTART, Kind
from penstock.sql.spark.operators.context import Query
from penstock.sql.types import SqlType

EVENT_TIME = "__EVENT_TIME"
_ORDER = "__ORDER_"
_WATERMARK_METADATA = "spark.watermarkDelayMs"
"""How Spark marks a column that has a watermark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Streams: one row per record. Tables: one row per change, `deleted` says which changes delete.

    `columns` are those that expressions may name. `key` are the names of the primary key of a table.
    `order` tells rows of the same time apart (partition and offset, of each source).
    `event_time` is the column with a watermark, once there is one.
    """

    frame: DataFrame
    kind: Kind
    columns: Mapping[str, SqlType]
    key: tuple[str, ...] = ()
    rowtime: str = ROWTIME
    order: tuple[str, ...] = ()
    deleted: str | None = None
    window: tuple[str, str] | None = None
    event_time: str | None = None

    def carried(self) -> tuple[list[Column], Rows]:
        """The columns that a projection passes on beside its own, and these rows as they are called after it."""
        renamed = {self.rowtime: ROWTIME}
        renamed |= {name: f"{_ORDER}{index}" for index, name in enumerate(self.order)}
        if self.deleted is not None:
            renamed[self.deleted] = DELETED
        if self.window is not None:
            renamed |= dict(zip(self.window, (WINDOWSTART, WINDOWEND), strict=True))
        if self.event_time is not None:
            renamed[self.event_time] = EVENT_TIME
        after = replace(
            self,
            rowtime=ROWTIME,
            order=tuple(renamed[name] for name in self.order),
            deleted=None if self.deleted is None else DELETED,
            window=None if self.window is None else (WINDOWSTART, WINDOWEND),
            event_time=None if self.event_time is None else EVENT_TIME,
        )
        return [column(old).alias(new) for old, new in renamed.items()], after

    @property
    def place_text(self) -> str:
        """A struct that orders the changes of one key: where they stand in their topic."""
        return struct_text(self.order)

    @property
    def order_text(self) -> str:
        """A struct that orders rows of any keys: by time, then by place."""
        return struct_text((self.rowtime, *self.order))


def column(name: str) -> Column:
    return sf.col(quoted(name))


def struct_text(names: tuple[str, ...]) -> str:
    return f"struct({', '.join(map(quoted, names))})"


def with_window_time(query: Query, rows: Rows) -> Rows:
    """The rows with a time that windows are made of, and a watermark; after a join they have both already."""
    if rows.event_time is not None:
        return rows
    frame = rows.frame.withColumn(EVENT_TIME, sf.timestamp_millis(column(rows.rowtime)))
    return replace(rows, frame=_watermarked(frame, EVENT_TIME, query.watermark_delay_ms), event_time=EVENT_TIME)


def with_row_time(query: Query, rows: Rows, name: str = EVENT_TIME) -> Rows:
    """The rows with a time of their own by which Spark drops them when they are late.

    Spark drops what is as old as the watermark, we keep it; and its watermark begins at 0, where rows may be. So the
    time is one millisecond later than the row's, and the watermark waits one more.
    """
    time = sf.timestamp_millis(column(rows.rowtime) + 1)
    if rows.event_time is None:
        frame = _watermarked(rows.frame.withColumn(name, time), name, query.watermark_delay_ms + 1)
    else:
        kept = [column(each) for each in rows.frame.columns if each != rows.event_time]
        frame = rows.frame.select(*kept, marked_event_time(query, time, name))
    return replace(rows, frame=frame, event_time=name)


def _watermarked(frame: DataFrame, name: str, delay_ms: int) -> DataFrame:
    return frame.withWatermark(name, f"{delay_ms} milliseconds")


def marked_event_time(query: Query, time: Column, name: str = EVENT_TIME) -> Column:
    """A computed time that a watermark further down holds for.

    Spark forgets the watermark of what it computes. After a join the larger of two times is at least as new as either,
    and Spark holds back its watermark for rows that a join may still give, so the mark is right.
    """
    return time.alias(name, metadata={_WATERMARK_METADATA: query.watermark_delay_ms})
