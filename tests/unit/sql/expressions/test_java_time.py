"""Patterns of java.time: letters, texts, zones."""

from __future__ import annotations

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.sql.expressions.java_pattern import Letters, PatternError, spark_pattern, tokens_of
from penstock.sql.expressions.java_time import UTC, format_moment, parse_moment, zone_of

MOMENT = datetime.datetime(2021, 3, 4, 5, 6, 7, 89000, tzinfo=UTC)


def test_a_pattern_is_letters_and_text() -> None:
    assert tokens_of("yy'T''s'-") == (Letters("y", 2), "T's", "-")
    assert tokens_of("''") == ("'",)


@pytest.mark.parametrize("pattern", ["yyyy'T", "invalid", "[yyyy]", "yyyy#"])
def test_what_is_no_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError):
        tokens_of(pattern)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("yyyy-MM-dd HH:mm:ss.SSS", "2021-03-04 05:06:07.089"),
        ("y yy yyyyy", "2021 21 02021"),
        ("M MM MMM MMMM", "3 03 Mar March"),
        ("E EEEE", "Thu Thursday"),
        ("D DDD Q QQQ QQQQ G", "63 063 1 Q1 1st quarter AD"),
        ("h hh K k a", "5 05 5 5 AM"),
        ("S SS SSSSSS SSSSSSSSS", "0 08 089000 089000000"),
        ("X XX XXX x Z ZZZZ ZZZZZ O z", "Z Z Z +00 +0000 GMT Z GMT UTC"),
        ("VV", "UTC"),
        ("'at' H 'o''clock'", "at 5 o'clock"),
    ],
)
def test_writing(pattern: str, text: str) -> None:
    assert format_moment(MOMENT, pattern) == text


def test_writing_in_another_zone() -> None:
    local = MOMENT.astimezone(zone_of("America/New_York"))
    assert format_moment(local, "HH:mm X XX XXX O z VV") == "00:06 -05 -0500 -05:00 GMT-05:00 EST America/New_York"
    assert format_moment(MOMENT.astimezone(zone_of("+05:30")), "HH:mm X x") == "10:36 +0530 +0530"


@pytest.mark.parametrize(
    ("text", "pattern", "moment"),
    [
        ("20210304050607", "yyyyMMddHHmmss", "2021-03-04T05:06:07"),
        ("4/3/2021 5:06 am", "d/M/yyyy h:mm a", "2021-03-04T05:06:00"),
        ("12:30 PM", "hh:mm a", "1970-01-01T12:30:00"),
        ("24", "kk", "1970-01-01T00:00:00"),
        ("Thu, 4 mar 21", "EEE, d MMM yy", "2021-03-04T00:00:00"),
        ("2021 063", "yyyy DDD", "2021-03-04T00:00:00"),
        ("2021-02-30", "yyyy-MM-dd", "2021-02-28T00:00:00"),
        ("2020-02-31", "yyyy-MM-dd", "2020-02-29T00:00:00"),
        ("2021-03-04T05:06:07.089999", "yyyy-MM-dd'T'HH:mm:ss.SSSSSS", "2021-03-04T05:06:07.089"),
        ("2021-03-04 05:06 +02:00", "yyyy-MM-dd HH:mm XXX", "2021-03-04T03:06:00"),
        ("2021-07-04 05:06 Europe/Berlin", "yyyy-MM-dd HH:mm VV", "2021-07-04T03:06:00"),
    ],
)
def test_reading(text: str, pattern: str, moment: str) -> None:
    assert parse_moment(text, pattern) == datetime.datetime.fromisoformat(moment + "Z")


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("2021-3-04", "yyyy-MM-dd"),
        ("2021-13-04", "yyyy-MM-dd"),
        ("2021-12-32", "yyyy-MM-dd"),
        ("25:00", "HH:mm"),
        ("2021-03-04 ", "yyyy-MM-dd"),
        ("05:06 Nowhere/City", "HH:mm VV"),
    ],
)
def test_what_does_not_fit_is_refused(text: str, pattern: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_moment(text, pattern)


@given(st.datetimes(min_value=datetime.datetime(1000, 1, 1), max_value=datetime.datetime(9999, 12, 30)))
def test_what_is_written_is_read_again(naive: datetime.datetime) -> None:
    moment = naive.replace(tzinfo=UTC, microsecond=naive.microsecond // 1000 * 1000)
    pattern = "yyyy-MM-dd'T'HH:mm:ss.SSSXXX"
    assert parse_moment(format_moment(moment, pattern), pattern) == moment


def test_spark_gets_only_patterns_it_writes_alike() -> None:
    assert spark_pattern("uuuu-MM-dd'T'HH:mm") == "yyyy'-'MM'-'dd'T'HH':'mm"
    assert spark_pattern("HH:mm z") is None
    assert spark_pattern("HH:mm X") == "HH':'mm' 'X"
    assert spark_pattern("HH:mm X", zoned=True) is None
    assert spark_pattern("MMMMM") is None


@pytest.mark.parametrize("name", ["UTC", "GMT", "Z", "+02:00", "-0800", "UTC+1", "America/Los_Angeles"])
def test_zones(name: str) -> None:
    assert datetime.datetime.now(tz=zone_of(name)).utcoffset() is not None


@pytest.mark.parametrize("name", ["PDT", "wow", "", "../etc/passwd"])
def test_unknown_zones_are_told(name: str) -> None:
    with pytest.raises(ValueError, match="Unknown time-zone ID"):
        zone_of(name)
