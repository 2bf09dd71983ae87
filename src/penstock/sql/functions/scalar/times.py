"""Dates, times and timestamps: written, read, moved.

Writing runs in Spark when the pattern is written in the statement and means the same there. Reading runs the rule book:
Spark's own reader refuses what Java's accepts. Moments outside the years 1 to 9999 are null.
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from penstock.sql.expressions.instants import from_days, from_ms, time_from_ms, time_to_ms, to_days, to_ms
from penstock.sql.expressions.java_pattern import check_letters, spark_pattern
from penstock.sql.expressions.java_time import UTC, format_moment, parse_moment, zone_of
from penstock.sql.expressions.spark_types import literal_value, string_literal
from penstock.sql.functions.model import ScalarFunction
from penstock.sql.functions.scalar.declaring import scalar
from penstock.sql.types import SqlType

_time = partial(scalar, "DATE / TIME")

_DAY_MS = 86_400_000
_UNITS_MS = {
    "MILLISECOND": 1,
    "SECOND": 1000,
    "MINUTE": 60_000,
    "HOUR": 3_600_000,
    "DAY": _DAY_MS,
    "WEEK": 7 * _DAY_MS,
}
_FIRST_MS, _LAST_MS = -62_135_596_800_000, 253_402_300_799_999
"""From the year 1 to the year 9999."""


def _unit_ms(unit: str) -> int:
    size = _UNITS_MS.get(unit.upper().removesuffix("S"))
    if size is None:
        raise ValueError(f"The unit must be one of {', '.join(f'{name}S' for name in _UNITS_MS)}, not '{unit}'.")
    return size


def _spark_unit_ms(text: str) -> int | None:
    return _UNITS_MS.get((literal_value(text) or "").upper().removesuffix("S"))


def _spark_moment(ms: str) -> str:
    return f"case when {ms} between {_FIRST_MS}L and {_LAST_MS}L then timestamp_millis({ms}) end"


def _spark_date(days: str) -> str:
    inside = f"{days} between {_FIRST_MS // _DAY_MS}L and {_LAST_MS // _DAY_MS}L"
    return f"case when {inside} then date_from_unix_date(cast({days} as int)) end"


def _moved_moment(sign: int, unit: str, count: int, moment: datetime.datetime) -> datetime.datetime:
    return from_ms(to_ms(moment) + sign * count * _unit_ms(unit))


def _moved_date(sign: int, unit: str, count: int, date: datetime.date) -> datetime.date:
    """Parts of a day are cut off, towards 1970."""
    moved = to_days(date) * _DAY_MS + sign * count * _unit_ms(unit)
    return from_days(abs(moved) // _DAY_MS * (1 if moved >= 0 else -1))


def _moved_time(sign: int, unit: str, count: int, clock: datetime.time) -> datetime.time:
    """Around midnight and on."""
    return time_from_ms((time_to_ms(clock) + sign * count * _unit_ms(unit)) % _DAY_MS)


def _spark_moved(template: str, finish: Callable[[str], str], sign: str) -> Any:
    """`template` counts the value in milliseconds, `finish` makes a value of them again."""

    def form(arguments: Sequence[str], _types: Sequence[SqlType]) -> str | None:
        unit, count, value = arguments
        size = _spark_unit_ms(unit)
        if size is None:
            return None
        return finish(f"({template.format(value)} {sign} cast({count} as bigint) * {size}L)")

    return form


_MOVES: dict[str, tuple[Callable[..., Any], str, Callable[[str], str]]] = {
    "DATE": (
        _moved_date,
        f"cast(unix_date({{0}}) as bigint) * {_DAY_MS}L",
        lambda ms: _spark_date(f"({ms} div {_DAY_MS}L)"),
    ),
    "TIME": (_moved_time, "time_to_millis({0})", lambda ms: f"time_from_millis(pmod({ms}, {_DAY_MS}L))"),
    "TIMESTAMP": (_moved_moment, "unix_millis({0})", _spark_moment),
}


def _moving(kind: str, forwards: bool) -> ScalarFunction:
    python, template, finish = _MOVES[kind]
    return _time(
        f"{kind}{'ADD' if forwards else 'SUB'}",
        f"The {kind} so many units {'later' if forwards else 'earlier'}. Units are MILLISECONDS, SECONDS, MINUTES, "
        "HOURS, DAYS and WEEKS.",
        f"unit STRING, interval INTEGER, value {kind} -> {kind}",
        python=partial(python, 1 if forwards else -1),
        spark=_spark_moved(template, finish, "+" if forwards else "-"),
    )


def _format_timestamp(moment: datetime.datetime, pattern: str, zone: str = "UTC") -> str:
    return format_moment(moment.astimezone(zone_of(zone)), pattern)


def _format_time(clock: datetime.time, pattern: str) -> str:
    check_letters(pattern, date=False, time=True)
    return format_moment(clock, pattern)


def _format_date(date: datetime.date, pattern: str) -> str:
    check_letters(pattern, date=True, time=False)
    return format_moment(date, pattern)


def _known_zone(text: str | None) -> str | None:
    """The zone that is written in the statement, if it is one."""
    zone = "UTC" if text is None else literal_value(text)
    try:
        zone_of(zone or "")
    except ValueError:
        return None
    return zone


def _known_pattern(text: str, *, date: bool = True, time: bool = True, zoned: bool = False) -> str | None:
    pattern = literal_value(text)
    try:
        check_letters(pattern or "", date=date, time=time)
        return spark_pattern(pattern, zoned=zoned) if pattern else None
    except ValueError:
        return None


def _spark_format_timestamp(arguments: Sequence[str], _types: Sequence[SqlType]) -> str | None:
    moment, pattern_text, *zone_text = arguments
    zone = _known_zone(zone_text[0] if zone_text else None)
    if zone is None:
        return None
    zoned = zone_of(zone) is not UTC
    pattern = _known_pattern(pattern_text, zoned=zoned)
    if pattern is None:
        return None
    local = f"from_utc_timestamp({moment}, {string_literal(zone)})" if zoned else moment
    return f"date_format({local}, {string_literal(pattern)})"


def _spark_format(date: bool) -> Any:
    def form(arguments: Sequence[str], _types: Sequence[SqlType]) -> str | None:
        pattern = _known_pattern(arguments[1], date=date, time=not date)
        return None if pattern is None else f"date_format({arguments[0]}, {string_literal(pattern)})"

    return form


def _parse_timestamp(text: str, pattern: str, zone: str = "UTC") -> datetime.datetime:
    return parse_moment(text, pattern, zone_of(zone))


def _parse_date(text: str, pattern: str) -> datetime.date:
    check_letters(pattern, date=True, time=False)
    return parse_moment(text, pattern, lenient=True).date()


def _parse_time(text: str, pattern: str) -> datetime.time:
    check_letters(pattern, date=False, time=True)
    return parse_moment(text, pattern).time()


def _convert(moment: datetime.datetime, source: str, target: str) -> datetime.datetime:
    """Moved by the difference of the offsets that both zones have at that moment."""
    offsets = [moment.astimezone(zone_of(zone)).utcoffset() or datetime.timedelta() for zone in (source, target)]
    return moment + offsets[1] - offsets[0]


def _spark_convert(arguments: Sequence[str], _types: Sequence[SqlType]) -> str | None:
    moment, source, target = arguments
    if (
        literal_value(source) is None
        or literal_value(target) is None
        or not (_known_zone(source) and _known_zone(target))
    ):
        return None
    there, here = (f"unix_millis(from_utc_timestamp({moment}, {zone}))" for zone in (target, source))
    return _spark_moment(f"(unix_millis({moment}) + {there} - {here})")


def _now_ms() -> int:
    return int(time.time() * 1000)


_PATTERNS = "Patterns are those of java.time, such as yyyy-MM-dd''T''HH:mm:ss.SSS."

FUNCTIONS = (
    _time(
        "CONVERT_TZ",
        "A timestamp that was written in one time zone, in another.",
        "timestamp TIMESTAMP, from STRING, to STRING -> TIMESTAMP",
        python=_convert,
        spark=_spark_convert,
    ),
    *(_moving(kind, forwards) for kind in _MOVES for forwards in (True, False)),
    _time(
        "DATETOSTRING",
        f"The date that is so many days after 1970-01-01, as text. Deprecated: see FORMAT_DATE. {_PATTERNS}",
        "days INTEGER, pattern STRING -> STRING",
        python=lambda days, pattern: _format_date(from_days(days), pattern),
    ),
    _time(
        "FORMAT_DATE",
        f"The date as text. {_PATTERNS}",
        "date DATE, pattern STRING -> STRING",
        python=_format_date,
        spark=_spark_format(date=True),
    ),
    _time(
        "FORMAT_TIME",
        f"The time as text. {_PATTERNS}",
        "time TIME, pattern STRING -> STRING",
        python=_format_time,
        spark=_spark_format(date=False),
    ),
    _time(
        "FORMAT_TIMESTAMP",
        f"The timestamp as text, in UTC or the given time zone. {_PATTERNS}",
        "timestamp TIMESTAMP, pattern STRING -> STRING",
        "timestamp TIMESTAMP, pattern STRING, zone STRING -> STRING",
        python=_format_timestamp,
        spark=_spark_format_timestamp,
    ),
    _time(
        "FROM_DAYS",
        "The date that is so many days after 1970-01-01.",
        "days INTEGER -> DATE",
        python=from_days,
        spark=_spark_date("{0}"),
    ),
    _time(
        "FROM_UNIXTIME",
        "The timestamp that is so many milliseconds after 1970-01-01 00:00 UTC.",
        "milliseconds BIGINT -> TIMESTAMP",
        python=from_ms,
        spark=_spark_moment("{0}"),
    ),
    _time("PARSE_DATE", f"A date from text. {_PATTERNS}", "text STRING, pattern STRING -> DATE", python=_parse_date),
    _time("PARSE_TIME", f"A time from text. {_PATTERNS}", "text STRING, pattern STRING -> TIME", python=_parse_time),
    _time(
        "PARSE_TIMESTAMP",
        f"A timestamp from text, in UTC or the given time zone unless the text has one. {_PATTERNS}",
        "text STRING, pattern STRING -> TIMESTAMP",
        "text STRING, pattern STRING, zone STRING -> TIMESTAMP",
        python=_parse_timestamp,
    ),
    _time(
        "STRINGTODATE",
        f"A date from text, as days after 1970-01-01. Deprecated: see PARSE_DATE. {_PATTERNS}",
        "text STRING, pattern STRING -> INTEGER",
        python=lambda text, pattern: to_days(parse_moment(text, pattern).date()),
    ),
    _time(
        "STRINGTOTIMESTAMP",
        f"A timestamp from text, in milliseconds. Deprecated: see PARSE_TIMESTAMP. {_PATTERNS}",
        "text STRING, pattern STRING -> BIGINT",
        "text STRING, pattern STRING, zone STRING -> BIGINT",
        python=lambda *arguments: to_ms(_parse_timestamp(*arguments)),
    ),
    _time(
        "TIMESTAMPTOSTRING",
        f"A timestamp in milliseconds as text. Deprecated: see FORMAT_TIMESTAMP. {_PATTERNS}",
        "milliseconds BIGINT, pattern STRING -> STRING",
        "milliseconds BIGINT, pattern STRING, zone STRING -> STRING",
        python=lambda milliseconds, *rest: _format_timestamp(from_ms(milliseconds), *rest),
    ),
    _time(
        "UNIX_DATE",
        "The days from 1970-01-01 to the date, or to today.",
        "-> INTEGER",
        "date DATE -> INTEGER",
        python=lambda *date: to_days(date[0]) if date else _now_ms() // _DAY_MS,
        spark=lambda arguments, _types: f"unix_date({arguments[0] if arguments else 'current_date()'})",
    ),
    _time(
        "UNIX_TIMESTAMP",
        "The milliseconds from 1970-01-01 00:00 UTC to the timestamp, or to now.",
        "-> BIGINT",
        "timestamp TIMESTAMP -> BIGINT",
        python=lambda *moment: to_ms(moment[0]) if moment else _now_ms(),
        spark=lambda arguments, _types: f"unix_millis({arguments[0] if arguments else 'current_timestamp()'})",
    ),
)
