"""Dates and times written and read by java.time patterns (`java_pattern`).

Writing goes letter by letter. Reading turns the pattern into one regular expression whose groups become fields; fields
that the pattern lacks are those of 1970-01-01 00:00 in the given zone. As in Java's "smart" style a day beyond the end
of its month is the last of it; case does not matter. Texts of months, days and halves of the day are English.
"""

from __future__ import annotations

import calendar
import datetime
import functools
import re
import zoneinfo
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from penstock.sql.expressions.java_pattern import (
    DATE_LETTERS,
    TIME_LETTERS,
    Letters,
    PatternError,
    Token,
    tokens_of,
)

UTC = datetime.UTC
Moment = datetime.datetime | datetime.date | datetime.time

_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_QUARTERS = ("1st quarter", "2nd quarter", "3rd quarter", "4th quarter")
_ABBREVIATIONS = {
    name: zone
    for zone, names in {
        "America/Los_Angeles": ("PST", "PDT"),
        "America/Denver": ("MST", "MDT"),
        "America/Chicago": ("CST", "CDT"),
        "America/New_York": ("EST", "EDT"),
    }.items()
    for name in names
}
_TWO_DIGIT_BASE = 2000


def zone_of(text: str) -> datetime.tzinfo:
    """`UTC`, `+02:00`, `+0200`, `Europe/London`."""
    bare = re.sub(r"^(UTC|GMT|UT)(?=[+-])", "", text)
    if bare in ("Z", "UTC", "GMT", "UT"):
        return UTC
    offset = re.fullmatch(r"([+-])(\d{1,2}):?(\d{2})?", bare)
    if offset:
        size = datetime.timedelta(hours=int(offset[2]), minutes=int(offset[3] or 0))
        return datetime.timezone(-size if offset[1] == "-" else size)
    try:
        return zoneinfo.ZoneInfo(text)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(f"Unknown time-zone ID: {text}") from error


def format_moment(moment: Moment, pattern: str) -> str:
    return "".join(token if isinstance(token, str) else _written(moment, token) for token in tokens_of(pattern))


def _written(moment: Moment, token: Letters) -> str:
    letter, count = token.letter, token.count
    if letter in DATE_LETTERS:
        if isinstance(moment, datetime.time):
            raise PatternError(f"Unsupported field for a time: {letter}")
        return _DATE_WRITERS[letter](moment, count)
    if letter in TIME_LETTERS:
        if not isinstance(moment, datetime.datetime | datetime.time):
            raise PatternError(f"Unsupported field for a date: {letter}")
        return _TIME_WRITERS[letter](moment, count)
    if not isinstance(moment, datetime.datetime):
        raise PatternError(f"Unsupported field without a time zone: {letter}")
    return _zone_text(moment, letter, count)


def _number(value: int, count: int) -> str:
    return f"{value:0{count}d}"


def _year(date: datetime.date, count: int) -> str:
    return f"{date.year % 100:02d}" if count == 2 else _number(date.year, count)


def _month(date: datetime.date, count: int) -> str:
    name = _MONTHS[date.month - 1]
    return _number(date.month, count) if count <= 2 else name[:3] if count == 3 else name


def _weekday(date: datetime.date, count: int) -> str:
    name = _DAYS[date.weekday()]
    return name[:3] if count <= 3 else name


def _quarter(date: datetime.date, count: int) -> str:
    number = (date.month + 2) // 3
    return _number(number, count) if count <= 2 else f"Q{number}" if count == 3 else _QUARTERS[number - 1]


_DATE_WRITERS: Mapping[str, Callable[[datetime.date, int], str]] = {
    "G": lambda _date, count: "AD" if count <= 3 else "Anno Domini",
    "y": _year,
    "u": _year,
    "M": _month,
    "L": _month,
    "d": lambda date, count: _number(date.day, count),
    "D": lambda date, count: _number(date.timetuple().tm_yday, count),
    "E": _weekday,
    "Q": _quarter,
}

Clock = datetime.datetime | datetime.time

_TIME_WRITERS: Mapping[str, Callable[[Clock, int], str]] = {
    "a": lambda clock, _count: "AM" if clock.hour < 12 else "PM",
    "h": lambda clock, count: _number(clock.hour % 12 or 12, count),
    "H": lambda clock, count: _number(clock.hour, count),
    "k": lambda clock, count: _number(clock.hour or 24, count),
    "K": lambda clock, count: _number(clock.hour % 12, count),
    "m": lambda clock, count: _number(clock.minute, count),
    "s": lambda clock, count: _number(clock.second, count),
    "S": lambda clock, count: f"{clock.microsecond:06d}000"[:count],
}


def _zone_text(moment: datetime.datetime, letter: str, count: int) -> str:
    if letter == "V":
        return str(moment.tzinfo)
    if letter == "z":
        return moment.tzname() or ""
    minutes = int((moment.utcoffset() or datetime.timedelta()).total_seconds()) // 60
    if minutes == 0 and (letter == "X" or (letter == "Z" and count == 5)):
        return "Z"
    sign, hours, rest = "-" if minutes < 0 else "+", abs(minutes) // 60, abs(minutes) % 60
    if letter == "O" or (letter == "Z" and count == 4):
        return "GMT" + (f"{sign}{hours:02d}:{rest:02d}" if minutes else "")
    if letter in "Xx" and count == 1:
        return f"{sign}{hours:02d}" + (f"{rest:02d}" if rest else "")
    colon = ":" if (letter in "Xx" and count in (3, 5)) or count == 5 else ""
    return f"{sign}{hours:02d}{colon}{rest:02d}"


_NUMBER_WIDTHS = {"y": 9, "u": 9, "D": 3}
_TEXTS = {
    "a": "AM|PM",
    "G": "AD|Anno Domini",
    "E": "|".join((*_DAYS, *(name[:3] for name in _DAYS))),
    "M": "|".join((*_MONTHS, *(name[:3] for name in _MONTHS))),
    "Q": "|".join((*_QUARTERS, "Q1", "Q2", "Q3", "Q4")),
    "X": r"Z|[+-]\d{2}(?::?\d{2})?",
    "z": r"[A-Za-z][A-Za-z0-9_/]*(?:[+-]\d{1,2}(?::?\d{2})?)?|[+-]\d{2}:?\d{2}",
}
_TEXTS |= {"L": _TEXTS["M"], "x": _TEXTS["X"], "Z": _TEXTS["X"], "V": _TEXTS["z"], "O": _TEXTS["z"]}


@functools.lru_cache(maxsize=1024)
def _reader(pattern: str, lenient: bool) -> re.Pattern[str]:
    tokens = tokens_of(pattern)
    parts = []
    for index, token in enumerate(tokens):
        following = tokens[index + 1] if index + 1 < len(tokens) else None
        adjacent = isinstance(following, Letters) and following.is_numeric
        parts.append(re.escape(token) if isinstance(token, str) else _group(token, index, adjacent, lenient))
    return re.compile("".join(parts), re.IGNORECASE)


def _group(token: Letters, index: int, adjacent: bool, lenient: bool) -> str:
    name = f"{token.letter}{index}"
    if not token.is_numeric:
        return f"(?P<{name}>{_TEXTS[token.letter]})"
    return f"(?P<{name}>{_digits(token, adjacent, lenient)})"


def _digits(token: Letters, adjacent: bool, lenient: bool) -> str:
    """A number is as long as its letters when another follows at once; else one letter allows more digits."""
    widest = _NUMBER_WIDTHS.get(token.letter, 2)
    if token.letter == "S":
        return rf"\d{{{token.count}}}"
    if adjacent or (token.count == 2 and not lenient):
        return rf"\d{{{token.count}}}"
    return rf"\d{{1,{widest}}}" if lenient or token.count == 1 else rf"\d{{{token.count},{max(widest, token.count)}}}"


def parse_moment(text: str, pattern: str, zone: datetime.tzinfo = UTC, *, lenient: bool = False) -> datetime.datetime:
    """In UTC. `lenient` allows fewer digits than letters."""
    found = _reader(pattern, lenient).fullmatch(text)
    if found is None:
        raise ValueError(f"Text '{text}' could not be parsed with the pattern '{pattern}'")
    fields = _Fields(found, tokens_of(pattern))
    local = datetime.datetime.combine(fields.date(), fields.time(), tzinfo=fields.zone() or zone)
    return local.astimezone(UTC)


@dataclass(frozen=True, slots=True)
class _Fields:
    """What was read, by letter."""

    found: re.Match[str]
    tokens: tuple[Token, ...]

    def text(self, letters: str) -> tuple[Letters, str] | None:
        """The last field with one of these letters."""
        for index in range(len(self.tokens) - 1, -1, -1):
            token = self.tokens[index]
            if isinstance(token, Letters) and token.letter in letters:
                return token, self.found[f"{token.letter}{index}"]
        return None

    def number(self, letters: str, default: int) -> int:
        read = self.text(letters)
        return default if read is None else int(read[1])

    def date(self) -> datetime.date:
        year, month = self._year(), self._month()
        if self.text("D") and not self.text("ML"):
            return datetime.date(year, 1, 1) + datetime.timedelta(days=self.number("D", 1) - 1)
        day = self.number("d", 1)
        if not 1 <= day <= 31:
            raise ValueError(f"{day} is no day of a month")
        return datetime.date(year, month, min(day, calendar.monthrange(year, month)[1]))

    def _year(self) -> int:
        read = self.text("yu")
        if read is None:
            return 1970
        token, digits = read
        return _TWO_DIGIT_BASE + int(digits) if token.count == 2 and len(digits) == 2 else int(digits)

    def _month(self) -> int:
        read = self.text("ML")
        if read is None:
            return 1
        token, text = read
        return int(text) if token.is_numeric else _index_of(text, _MONTHS)

    def time(self) -> datetime.time:
        fraction = self.text("S")
        microsecond = int(f"{fraction[1]:0<6}"[:6]) if fraction else 0
        millisecond = microsecond // 1000
        return datetime.time(self._hour(), self.number("m", 0), self.number("s", 0), millisecond * 1000)

    def _hour(self) -> int:
        half = self.text("a")
        if half is not None:
            return self.number("hK", 0) % 12 + (12 if half[1].upper() == "PM" else 0)
        return self.number("H", self.number("k", self.number("hK", 0)) % 24)

    def zone(self) -> datetime.tzinfo | None:
        read = self.text("zVOXxZ")
        if read is None:
            return None
        return UTC if read[1] == "z" else zone_of(_ABBREVIATIONS.get(read[1].upper(), read[1]))


def _index_of(text: str, names: tuple[str, ...]) -> int:
    return next(index for index, name in enumerate(names, 1) if name.lower().startswith(text.lower()))
