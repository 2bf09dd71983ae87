"""What people and programs give the engine beside statements: JSON rows, times as text, settings."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

import pytest

from penstock.sql.engine.json_input import column_value
from penstock.sql.engine.properties import check_property, is_settable, query_properties
from penstock.sql.errors import SemanticError
from penstock.sql.plan.instants import parse_instant_ms
from penstock.sql.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
    Array,
    Decimal,
    Field,
    Map,
    SqlType,
    Struct,
)

POINT = Struct((Field("X", INTEGER), Field("y", STRING)))


@pytest.mark.parametrize(
    ("value", "sql_type", "expected"),
    [
        (None, INTEGER, None),
        (1, INTEGER, 1),
        (1.0, BIGINT, 1),
        (-(2**63), BIGINT, -(2**63)),
        (1, DOUBLE, 1.0),
        (True, BOOLEAN, True),
        ("x", STRING, "x"),
        ("aGk=", BYTES, b"hi"),
        ("1.25", Decimal(5, 2), decimal.Decimal("1.25")),
        (1.5, Decimal(5, 2), decimal.Decimal("1.50")),
        ("2020-01-02", DATE, datetime.date(2020, 1, 2)),
        ("10:20:30", TIME, datetime.time(10, 20, 30)),
        ("2020-01-02T03:04:05.678", TIMESTAMP, datetime.datetime(2020, 1, 2, 3, 4, 5, 678000, tzinfo=datetime.UTC)),
        ([1, None], Array(INTEGER), [1, None]),
        ({"a": 1}, Map(STRING, BIGINT), {"a": 1}),
        ({"x": 1, "y": "b"}, POINT, {"X": 1, "y": "b"}),
        ({}, POINT, {"X": None, "y": None}),
    ],
)
def test_json_becomes_the_value_of_a_column(value: Any, sql_type: SqlType, expected: Any) -> None:
    assert column_value(value, sql_type) == expected


@pytest.mark.parametrize(
    ("value", "sql_type"),
    [
        (2**31, INTEGER),
        (1.5, INTEGER),
        (True, INTEGER),
        ("x", INTEGER),
        (float("inf"), BIGINT),
        (1, STRING),
        (1, BOOLEAN),
        ("?", BYTES),
        ("yesterday", DATE),
        ("12345.678", Decimal(3, 2)),
        ({}, Array(INTEGER)),
        ([], POINT),
        ({"z": 1}, POINT),
        ([["x"]], Array(Array(INTEGER))),
    ],
)
def test_json_of_another_type_is_refused(value: Any, sql_type: SqlType) -> None:
    with pytest.raises(ValueError, match=r"coerce|no field"):
        column_value(value, sql_type)


@pytest.mark.parametrize(
    ("text", "expected_ms"),
    [
        ("1970-01-01", 0),
        ("1970-01-01T00:00:01.5", 1_500),
        ("1970-01-02T01", 90_000_000),
        ("1970", 0),
        ("1970-01-01T01:00:00+0100", 0),
        ("1969-12-31T23:59:59", -1_000),
    ],
)
def test_times_may_be_written_in_part(text: str, expected_ms: int) -> None:
    assert parse_instant_ms(text) == expected_ms


def test_a_time_that_is_none_is_refused() -> None:
    with pytest.raises(SemanticError, match="Failed to parse timestamp 'noon'"):
        parse_instant_ms("noon")


def test_settings_of_a_request_override_the_servers_under_one_name() -> None:
    server = {"ksql.streams.auto.offset.reset": "earliest", "listeners": "http://x"}
    assert query_properties(server, {}) == {"auto.offset.reset": "earliest"}
    assert query_properties(server, {"auto.offset.reset": "latest"}) == {"auto.offset.reset": "latest"}


def test_unknown_settings_and_values_are_refused() -> None:
    assert is_settable("ksql.streams.commit.interval.ms")
    with pytest.raises(SemanticError, match="Not recognizable"):
        check_property("nope", 1)
    with pytest.raises(SemanticError, match="must be one of: earliest, latest"):
        check_property("auto.offset.reset", "nearest")
    with pytest.raises(SemanticError, match=r"penstock\.rows\.per\.batch: it is a number of records"):
        check_property("penstock.rows.per.batch", "0")
