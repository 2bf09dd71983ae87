"""Session windows that show their changes.

A session is a run of rows of one key with no gap longer than the window's. A row may extend a session, begin one, or
join several into one. The bounds of a session are part of its key in the result, so a session that grew is a deletion
under its old bounds and a row under its new ones.

The open sessions of a key are kept together. A session is closed when the watermark passes its end; the watermark's
delay is the gap and the grace period.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pyspark.sql import Row
from pyspark.sql.types import BooleanType, LongType, StructField, StructType

from penstock.sql.expressions.casting import fitter
from penstock.sql.formats.decoding import DELETED
from penstock.sql.functions.model import AggregateFunction
from penstock.sql.plan.nodes import Window
from penstock.sql.schema import ROWTIME, WINDOWEND, WINDOWSTART
from penstock.sql.spark.operators.context import Query
from penstock.sql.spark.operators.grouping import Aggregate, Grouping
from penstock.sql.spark.operators.rows import EVENT_TIME, Rows, column, with_row_time
from penstock.sql.spark.operators.stateful import Processor, place
from penstock.sql.spark.types import spark_type
from penstock.sql.spark.values import arrow_value
from penstock.sql.types import SqlType


def session_changes(query: Query, grouping: Grouping, window: Window) -> Rows:
    rows = with_row_time(query, grouping.rows)
    names = (*grouping.keys, *grouping.argument_names, ROWTIME, *rows.order, EVENT_TIME)
    frame = rows.frame.select(*map(column, names))
    processor = SessionProcessor(
        gap_ms=window.size_ms,
        keys=tuple(grouping.keys),
        aggregates=tuple(map(_python_aggregate, grouping.aggregates)),
        order=(ROWTIME, *rows.order),
    )
    changed = frame.groupBy(*map(column, grouping.keys)).transformWithState(
        processor, _output(grouping, frame.schema), query.output_mode, "eventTime"
    )
    return Rows(
        frame=changed,
        kind="TABLE",
        columns=grouping.result_columns(window),
        key=tuple(grouping.keys),
        deleted=DELETED,
        window=(WINDOWSTART, WINDOWEND),
    )


def _output(grouping: Grouping, given: StructType) -> StructType:
    keys = [StructField(name, given[name].dataType) for name in grouping.keys]
    results = [StructField(each.name, spark_type(each.type)) for each in grouping.aggregates]
    times = [StructField(name, LongType()) for name in (WINDOWSTART, WINDOWEND, ROWTIME)]
    return StructType([*keys, *results, *times, StructField(DELETED, BooleanType())])


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonAggregate:
    """An aggregate as a processor runs it. An argument is a column's name, or a value that is the same for all rows."""

    name: str
    function: AggregateFunction
    arguments: tuple[tuple[str | None, Any], ...]
    type: SqlType


def _python_aggregate(aggregate: Aggregate) -> PythonAggregate:
    arguments = tuple((each.name, each.value) for each in aggregate.arguments)
    return PythonAggregate(name=aggregate.name, function=aggregate.function, arguments=arguments, type=aggregate.type)


def _ready(sql_type: SqlType) -> Callable[[Any], Any]:
    """A result as it goes out: numbers fitted into their type, maps as Arrow takes them."""
    return arrow_value(sql_type) or fitter(sql_type)


class Session(NamedTuple):
    start: int
    end: int
    states: tuple[Any, ...]


Bounds = tuple[int, int]


class SessionProcessor(Processor):
    """The state is the list of open sessions; all of them have been shown."""

    def __init__(
        self, *, gap_ms: int, keys: Sequence[str], aggregates: Sequence[PythonAggregate], order: Sequence[str]
    ) -> None:
        self._gap_ms = gap_ms
        self._keys = tuple(keys)
        self._aggregates = tuple(aggregates)
        self._order = tuple(order)

    def prepare(self) -> None:
        self._place = place(self._order)
        self._ready = [_ready(each.type) for each in self._aggregates]
        names = (each.name for each in self._aggregates)
        self._result = Row(*self._keys, *names, WINDOWSTART, WINDOWEND, ROWTIME, DELETED)

    def process(self, key: tuple[Any, ...], rows: Iterator[Row]) -> Iterator[Row]:
        before = self._load()
        sessions = dict(before)
        touched: set[Bounds] = set()
        for row in sorted(rows, key=self._place):
            session = self._with_row(sessions, row)
            touched = {each for each in touched if each in sessions} | {session}
        self._store(sessions)
        gone = sorted(before.keys() - sessions.keys())
        yield from self._changes(key, gone, [sessions[bounds] for bounds in sorted(touched)])

    def _with_row(self, sessions: dict[Bounds, Session], row: Row) -> Bounds:
        """Join all sessions that the row touches into one that has the row; `sessions` is changed."""
        time = row[ROWTIME]
        met = [each for each in sessions.values() if each.start - self._gap_ms <= time <= each.end + self._gap_ms]
        met.sort()
        states = met[0].states if met else tuple(each.function.initial() for each in self._aggregates)
        for later in met[1:]:
            states = self._merged(states, later.states)
        for each in met:
            del sessions[each.start, each.end]
        start = min([time, *(each.start for each in met)])
        end = max([time, *(each.end for each in met)])
        sessions[start, end] = Session(start, end, self._added(states, row))
        return start, end

    def _merged(self, older: tuple[Any, ...], newer: tuple[Any, ...]) -> tuple[Any, ...]:
        pairs = zip(self._aggregates, older, newer, strict=True)
        return tuple(each.function.merge(one, other) for each, one, other in pairs)

    def _added(self, states: tuple[Any, ...], row: Row) -> tuple[Any, ...]:
        order = self._place(row)
        return tuple(
            each.function.add(state, [row[name] if name else value for name, value in each.arguments], order)
            for each, state in zip(self._aggregates, states, strict=True)
        )

    def _changes(self, key: tuple[Any, ...], gone: list[Bounds], touched: list[Session]) -> Iterator[Row]:
        nothing = (None,) * len(self._aggregates)
        for start, end in gone:
            yield self._result(*key, *nothing, start, end, end, True)
        for session in touched:
            self.call_at(session.end + 1)
            yield self._result(*key, *self._values(session), session.start, session.end, session.end, False)

    def _values(self, session: Session) -> Iterator[Any]:
        for aggregate, ready, state in zip(self._aggregates, self._ready, session.states, strict=True):
            value = aggregate.function.result(state)
            yield None if value is None else ready(value)

    def forget(self, watermark_ms: int) -> None:
        self._store({bounds: session for bounds, session in self._load().items() if session.end >= watermark_ms})

    def _load(self) -> dict[Bounds, Session]:
        return {(start, end): Session(start, end, states) for start, end, states in self.load() or ()}

    def _store(self, sessions: dict[Bounds, Session]) -> None:
        self.store([tuple(session) for session in sessions.values()])
