"""Changes of a table as rows with a sign: what a row gave before with -1, what it gives now with +1.

A group of a table is the sum over the rows the table has now. When a row changes, what it had contributed must be taken
back, from another group perhaps. So the last contribution of every row is kept, by the primary key of the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as sf
from pyspark.sql.types import IntegerType, LongType, StructField, StructType

from penstock.sql.formats.decoding import DELETED
from penstock.sql.schema import ROWTIME
from penstock.sql.spark.operators.context import Query
from penstock.sql.spark.operators.grouping import Grouping
from penstock.sql.spark.operators.rows import column
from penstock.sql.spark.operators.stateful import Processor, fields, place

SIGN = "__SIGN"


def signed_changes(query: Query, grouping: Grouping) -> DataFrame:
    """The key, the arguments and ROWTIME of each change, twice if it replaces a row."""
    rows = grouping.rows
    given = [*grouping.keys, *grouping.argument_names]
    deleted = sf.lit(False) if rows.deleted is None else column(rows.deleted)
    names = (*grouping.primary, *given, ROWTIME, *rows.order)
    frame = rows.frame.select(*map(column, names), deleted.alias(DELETED))
    output = StructType(
        [
            *(StructField(name, frame.schema[name].dataType) for name in given),
            StructField(ROWTIME, LongType()),
            StructField(SIGN, IntegerType()),
        ]
    )
    grouped = frame.groupBy(*map(column, grouping.primary))
    return grouped.transformWithState(UndoProcessor(given, rows.order), output, query.output_mode, "none")


class UndoProcessor(Processor):
    """Of several changes of a row in one batch only the last contributes: those between took themselves back."""

    def __init__(self, given: Sequence[str], order: Sequence[str]) -> None:
        self._given = tuple(given)
        self._order = tuple(order)

    def prepare(self) -> None:
        self._place = place(self._order)
        self._contribution = fields(self._given)
        self._result = Row(*self._given, ROWTIME, SIGN)

    def process(self, key: tuple[Any, ...], rows: Iterator[Row]) -> Iterator[Row]:
        last = max(rows, key=self._place)
        before = self.load()
        # Kept inside a list: an empty contribution (COUNT of all rows, no key) is one too.
        now = None if last[DELETED] else [self._contribution(last)]
        self.store(now)
        if before is not None:
            yield self._result(*before[0], last[ROWTIME], -1)
        if now is not None:
            yield self._result(*now[0], last[ROWTIME], 1)
