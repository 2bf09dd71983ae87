"""ROWTIME from a column of the row: the property TIMESTAMP, with TIMESTAMP_FORMAT for text."""

from __future__ import annotations

import datetime
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from penstock.sql.expressions.java_time import parse_moment
from penstock.sql.formats.python_values import timestamp_ms
from penstock.sql.schema import TimestampColumn

ParseTime = Callable[[str], datetime.datetime]
"""Text to a point in time; raises ValueError."""


def row_times(values: pa.Array, column: TimestampColumn, errors: dict[int, str]) -> pa.Array:
    """Milliseconds as int64; what is no time gets an entry in `errors`."""
    if pa.types.is_timestamp(values.type):
        times = pc.cast(pc.cast(values, pa.timestamp("ms", "UTC"), safe=False), pa.int64())
    elif pa.types.is_string(values.type):
        times = _parsed(values, column, errors)
    else:
        times = pc.cast(values, pa.int64())
    return _checked(times, column, errors)


def _checked(times: pa.Array, column: TimestampColumn, errors: dict[int, str]) -> pa.Array:
    good = pc.fill_null(pc.greater_equal(times, 0), False)
    if not pc.all(good).as_py():
        for index, is_good in enumerate(good.to_pylist()):
            if not is_good:
                shown = times[index].as_py()
                errors.setdefault(index, f"column {column.column}: {'null' if shown is None else shown} is no row time")
    return times


def _parsed(values: pa.Array, column: TimestampColumn, errors: dict[int, str]) -> pa.Array:
    parse = make_parser(column.format)
    times: list[int | None] = []
    for index, text in enumerate(values.to_pylist()):
        try:
            times.append(None if text is None else timestamp_ms(parse(text)))
        except ValueError as error:
            errors[index] = f"column {column.column}: {text!r} is no time in the form {column.format!r}: {error}"
            times.append(None)
    return pa.array(times, pa.int64())


def make_parser(pattern: str | None) -> ParseTime:
    """Without a pattern: ISO 8601. In UTC unless the text says otherwise."""
    if pattern is None:
        return _iso
    return lambda text: parse_moment(text, pattern)


def _iso(text: str) -> datetime.datetime:
    moment = datetime.datetime.fromisoformat(text)
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=datetime.UTC)
