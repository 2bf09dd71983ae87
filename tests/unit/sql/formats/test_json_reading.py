"""JSON to columns: ksqlDB's rules, one by one, and the two ways of reading against each other."""

from __future__ import annotations

import datetime
import decimal
import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.sql.formats import json_arrow
from penstock.sql.formats.codec import Columns
from penstock.sql.formats.json_format import JsonCodec
from penstock.sql.schema import ColumnSchema
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


def read(sql_type: SqlType, *texts: str | None, name: str = "A") -> tuple[list[object], dict[int, str]]:
    codec = JsonCodec([ColumnSchema(name, sql_type)], wrapped=True)
    data = pa.array([None if text is None else text.encode() for text in texts], pa.binary())
    found = codec.read(data)
    return found.arrays[0].to_pylist(), dict(found.errors)


def value_of(sql_type: SqlType, text: str) -> object:
    values, errors = read(sql_type, f'{{"a":{text}}}')
    assert not errors
    return values[0]


@pytest.mark.parametrize(
    ("sql_type", "text", "expected"),
    [
        (BOOLEAN, "true", True),
        (INTEGER, "49", 49),
        (INTEGER, '"49"', 49),
        (INTEGER, "1.9", 1),
        (INTEGER, "-1.9", -1),
        (INTEGER, "null", None),
        (BIGINT, "9223372036854775807", 9223372036854775807),
        (BIGINT, '"-5"', -5),
        (DOUBLE, "1", 1.0),
        (DOUBLE, '"1.5"', 1.5),
        (STRING, '"x"', "x"),
        (STRING, "1", "1"),
        (STRING, "true", "true"),
        (STRING, '{"b":[1,2.5]}', '{"b":[1,2.5]}'),
        (STRING, "[1]", "[1]"),
        (BYTES, '"AQI="', b"\x01\x02"),
        (Decimal(5, 2), "1.10", decimal.Decimal("1.10")),
        (Decimal(5, 2), '"7"', decimal.Decimal("7.00")),
        (Decimal(38, 10), "0.1234567891", decimal.Decimal("0.1234567891")),
        (DATE, "1", datetime.date(1970, 1, 2)),
        (TIME, "1000", datetime.time(0, 0, 1)),
        (TIMESTAMP, "1500", datetime.datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=datetime.UTC)),
        (Array(INTEGER), '[1,"2",null]', [1, 2, None]),
        (Map(STRING, BIGINT), '{"x":1,"Y":null}', [("x", 1), ("Y", None)]),
        (Map(INTEGER, STRING), '{"1":"x"}', [(1, "x")]),
        (Struct((Field("X", INTEGER), Field("y", STRING))), '{"x":1,"y":"b","z":3}', {"X": 1, "y": "b"}),
        (Struct((Field("X", INTEGER),)), "{}", {"X": None}),
    ],
)
def test_a_value_means_what_ksqldb_says(sql_type: SqlType, text: str, expected: object) -> None:
    assert value_of(sql_type, text) == expected


@pytest.mark.parametrize(
    ("sql_type", "text"),
    [
        (BOOLEAN, "1"),
        (BOOLEAN, '"true"'),
        (INTEGER, "2147483648"),
        (INTEGER, "true"),
        (INTEGER, '"x"'),
        (BIGINT, "9223372036854775808"),
        (DOUBLE, "true"),
        (DOUBLE, '"x"'),
        (BYTES, '"?"'),
        (BYTES, "1"),
        (Decimal(3, 2), "10.00"),
        (Decimal(5, 2), "1.234"),
        (DATE, '"2020-01-01"'),
        (TIME, "86400000"),
        (TIMESTAMP, "999999999999999999"),
        (Array(INTEGER), "{}"),
        (Array(INTEGER), '["x"]'),
        (Map(STRING, INTEGER), "[]"),
        (Struct((Field("X", INTEGER),)), "1"),
    ],
)
def test_what_does_not_fit_is_an_error_that_names_the_column(sql_type: SqlType, text: str) -> None:
    values, errors = read(sql_type, f'{{"a":{text}}}', '{"a":null}')
    assert values == [None, None]
    assert list(errors) == [0]
    assert errors[0].startswith("column A: ")


def test_names_are_matched_without_regard_to_case() -> None:
    assert read(BIGINT, '{"a":1}', '{"A":2}', '{"b":3}')[0] == [1, 2, None]


def test_a_name_quoted_in_lower_case_is_matched_exactly() -> None:
    assert read(BIGINT, '{"a":1}', '{"A":2}', name="a")[0] == [1, None]


@pytest.mark.parametrize("text", ["", "{", "[1]", "1", '"x"', '{"a":1} {"a":2}', "{'a':1}"])
def test_what_is_no_object_is_an_error(text: str) -> None:
    values, errors = read(BIGINT, text, '{"a":1}')
    assert values == [None, 1]
    assert list(errors) == [0]


def test_bytes_that_are_no_unicode_are_an_error() -> None:
    codec = JsonCodec([ColumnSchema("A", STRING)], wrapped=True)
    found = codec.read(pa.array([b'{"a":"\xff"}', b'{"a":"x"}']))
    assert found.arrays[0].to_pylist() == [None, "x"]
    assert list(found.errors) == [0]


def test_a_single_column_that_is_not_wrapped_is_the_bare_value() -> None:
    codec = JsonCodec([ColumnSchema("A", BIGINT)], wrapped=False)
    found = codec.read(pa.array([b"7", b'"8"', b"null", None]))
    assert found.arrays[0].to_pylist() == [7, 8, None, None]


# The fast way.

COLUMNS = [
    ColumnSchema("ID", BIGINT),
    ColumnSchema("NAME", STRING),
    ColumnSchema("AMOUNT", DOUBLE),
    ColumnSchema("OK", BOOLEAN),
    ColumnSchema("N", INTEGER),
]


def both_ways(values: list[bytes], rounds: int = 2) -> Columns:
    """Read by the fast way (if it will) and by the slow one; they must agree."""
    data = pa.array(values, pa.binary())
    slow = JsonCodec(COLUMNS, wrapped=True)
    slow._arrow = None
    expected = slow.read(data)
    fast = JsonCodec(COLUMNS, wrapped=True)
    for _ in range(rounds):
        found = fast.read(data)
        assert [each.to_pylist() for each in found.arrays] == [each.to_pylist() for each in expected.arrays]
        assert set(found.errors) == set(expected.errors)
    return expected


def fast_alone(values: list[bytes]) -> list[pa.Array] | None:
    return json_arrow.ArrowJson(COLUMNS).read(pa.array(values, pa.binary()))


def plain(number: int) -> bytes:
    return json.dumps({"id": number, "name": f"n{number}", "amount": number / 2, "ok": True, "n": 1}).encode()


def test_plain_objects_are_read_the_fast_way() -> None:
    assert fast_alone([plain(number) for number in range(100)]) is not None


@pytest.mark.parametrize(
    "odd",
    [
        b'{"id":"7"}',
        b'{"ID":7,"id":8}',
        b'{"Id":7}',
        b'{"id":1.5}',
        b'{"name":1}',
        b'{"name":{"x":1}}',
        b'{"n":3000000000}',
        b'{"amount":1e400}',
        b'{"other":1e400}',
        b'{"id":1',
        b'{"id":1}{"id":2}',
        b'{"id":1}\n{"id":2}',
        b"[]",
        b"{}",
        b"{}}",
        b'{"other":[1,"x",{"y":null}]}',
        b' {"id":1} ',
        b'{"name":"line\\nfeed \\u00e9 \xc3\xa9"}',
        b'{"name":"\xff"}',
        b'{"name":"a\nb"}',
        b'{"id":[',
        b'{"id":}',
        b"",
    ],
)
def test_an_odd_record_among_plain_ones_is_read_the_same_both_ways(odd: bytes) -> None:
    values = [plain(number) for number in range(60)]
    both_ways([*values[:30], odd, *values[30:]])


def test_records_that_only_together_are_objects_do_not_slip_through() -> None:
    """`{"id":` and `{"x":1}` would be one object, and `{}{}` two: the count alone would be right."""
    values = [plain(number) for number in range(60)]
    both_ways([*values, b'{"name":"}', b'{"}', b"{}{}", b'{"x":[{}', b"{}]}", b"{}{}"])


def test_spellings_that_change_from_batch_to_batch_are_followed() -> None:
    codec = JsonCodec(COLUMNS, wrapped=True)
    for spelling in ("id", "ID", "Id", "id"):
        data = pa.array([json.dumps({spelling: number}).encode() for number in range(50)], pa.binary())
        assert codec.read(data).arrays[0].to_pylist() == list(range(50))


_JSON_VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=5), st.lists(st.integers(0, 3), max_size=2), st.dictionaries(st.text(max_size=2), st.none()),
)  # fmt: skip
_NAMES = st.sampled_from(["id", "ID", "name", "Name", "amount", "ok", "n", "other"])


@given(st.lists(st.dictionaries(_NAMES, _JSON_VALUES, max_size=4), min_size=1, max_size=4))
def test_both_ways_agree_on_any_objects(objects: list[dict[str, object]]) -> None:
    values = [json.dumps(each).encode() for each in objects]
    both_ways((values * 40)[:40], rounds=1)
