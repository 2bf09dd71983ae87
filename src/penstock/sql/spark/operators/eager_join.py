"""Outer joins of streams that do not wait.

Without a GRACE PERIOD a row of the outer side goes out with nulls as soon as it comes and finds no partner; when one
comes later, the pair goes out too. Spark's own join cannot do that, so the rows of both sides are kept here by key.

A row is kept while the watermark has not passed the last time at which a partner could have come.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from penstock.sql.plan.nodes import StreamStreamJoinNode
from penstock.sql.spark.operators.context import Query
from penstock.sql.spark.operators.join_sides import JoinSide, joined_rows
from penstock.sql.spark.operators.rows import EVENT_TIME, Rows, column, with_row_time
from penstock.sql.spark.operators.stateful import Processor, fields, place

_SIDE = "__SIDE"
_KEY = "__KEY"
_TIME = "__TIME"
_LEFT, _RIGHT = 0, 1


def eager_join(query: Query, node: StreamStreamJoinNode, left: JoinSide, right: JoinSide) -> Rows:
    tagged = [_tagged(query, side, number) for number, side in enumerate((left, right))]
    both = tagged[_LEFT].unionByName(tagged[_RIGHT], allowMissingColumns=True)
    processor = EagerJoinProcessor(
        left=Side(
            names=_carried(left),
            order=left.rows.order,
            outer=node.kind in ("LEFT", "FULL"),
            before_ms=node.before_ms,
            after_ms=node.after_ms,
        ),
        right=Side(
            names=_carried(right),
            order=right.rows.order,
            outer=node.kind in ("RIGHT", "FULL"),
            before_ms=node.after_ms,
            after_ms=node.before_ms,
        ),
    )
    output = StructType([both.schema[name] for name in (*_carried(left), *_carried(right))])
    joined = both.groupBy(column(_KEY)).transformWithState(processor, output, query.output_mode, "eventTime")
    return joined_rows(query, left, right, joined)


def _carried(side: JoinSide) -> tuple[str, ...]:
    return (*side.columns, side.rows.rowtime, *side.rows.order)


def _tagged(query: Query, side: JoinSide, number: int) -> DataFrame:
    timed = with_row_time(query, side.rows)
    return timed.frame.select(
        column(side.key).alias(_KEY),
        sf.lit(number).alias(_SIDE),
        column(side.rows.rowtime).alias(_TIME),
        column(EVENT_TIME),
        *map(column, _carried(side)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """Partners of a row lie from `before_ms` before to `after_ms` after it. `outer`: its rows go out alone too."""

    names: tuple[str, ...]
    order: tuple[str, ...]
    outer: bool
    before_ms: int
    after_ms: int


Kept = tuple[int, tuple[Any, ...]]
"""A row that is kept: its time, its values."""


class EagerJoinProcessor(Processor):
    """The state is a pair: the rows that are kept of the left side, and of the right."""

    def __init__(self, *, left: Side, right: Side) -> None:
        self._sides = (left, right)

    def prepare(self) -> None:
        left, right = self._sides
        self._values = [fields(side.names) for side in self._sides]
        self._places = [place(side.order) for side in self._sides]
        self._result = Row(*left.names, *right.names)

    def process(self, key: tuple[Any, ...], rows: Iterator[Row]) -> Iterator[Row]:
        if key[0] is None:
            # Equal to no key: such a row finds nobody, and nobody finds it.
            for row in rows:
                yield from self._pairs(row[_SIDE], self._values[row[_SIDE]](row), [])
            return
        kept: tuple[list[Kept], list[Kept]] = self.load() or ([], [])
        for row in sorted(rows, key=self._place):
            side, time = row[_SIDE], row[_TIME]
            values = self._values[side](row)
            yield from self._pairs(side, values, self._partners(side, time, kept[1 - side]))
            kept[side].append((time, values))
            self.call_at(time + self._sides[side].after_ms + 1)
        self.store(kept)

    def _place(self, row: Row) -> tuple[int, ...]:
        return (row[_TIME], row[_SIDE], *self._places[row[_SIDE]](row))

    def _partners(self, side: int, time: int, others: list[Kept]) -> list[tuple[Any, ...]]:
        first, last = time - self._sides[side].before_ms, time + self._sides[side].after_ms
        return [values for other, values in others if first <= other <= last]

    def _pairs(self, side: int, values: tuple[Any, ...], partners: list[tuple[Any, ...]]) -> Iterator[Row]:
        if not partners and self._sides[side].outer:
            partners = [(None,) * len(self._sides[1 - side].names)]
        for partner in partners:
            yield self._result(*values, *partner) if side == _LEFT else self._result(*partner, *values)

    def forget(self, watermark_ms: int) -> None:
        kept = [
            [each for each in rows if each[0] + side.after_ms >= watermark_ms]
            for side, rows in zip(self._sides, self.load() or ([], []), strict=True)
        ]
        self.store(tuple(kept) if any(kept) else None)
