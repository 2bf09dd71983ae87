"""Records to rows and back, by format, kind of source, window and header."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

import pyarrow as pa
import pytest

from penstock.sql.errors import NotSupportedError, SemanticError
from penstock.sql.formats.codec import BadValueError
from penstock.sql.formats.codecs import key_codec, value_codec
from penstock.sql.formats.decoding import Decoded, RowDecoder
from penstock.sql.formats.encoding import RowEncoder
from penstock.sql.plan.nodes import Sink, SourceNode
from penstock.sql.schema import ColumnSchema, Format, HeaderColumn, Schema, TimestampColumn, WindowedKey
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

KAFKA, JSON, DELIMITED = Format("KAFKA"), Format("JSON"), Format("DELIMITED")


def columns(**types: SqlType) -> tuple[ColumnSchema, ...]:
    return tuple(ColumnSchema(name, kind) for name, kind in types.items())


SCHEMA = Schema(key=columns(ID=BIGINT), value=columns(NAME=STRING))


def source(schema: Schema = SCHEMA, **more: Any) -> SourceNode:
    settings = {"kind": "STREAM", "key_format": KAFKA, "value_format": JSON, **more}
    return SourceNode(name="S", topic="t", schema=schema, **settings)


def sink(schema: Schema = SCHEMA, **more: Any) -> Sink:
    settings = {"kind": "STREAM", "key_format": KAFKA, "value_format": JSON, **more}
    return Sink(name="S", topic="t", schema=schema, **settings)


def raw(
    *records: tuple[bytes | None, bytes | None], headers: list[Any] | None = None, time_ms: int = 5
) -> pa.RecordBatch:
    count = len(records)
    found = {
        "topic": pa.array(["t"] * count).dictionary_encode(),
        "partition": pa.array([3] * count, pa.int32()),
        "offset": pa.array(range(10, 10 + count), pa.int64()),
        "timestamp": pa.array([time_ms] * count, pa.timestamp("ms", "UTC")),
        "key": pa.array([key for key, _ in records], pa.binary()),
        "value": pa.array([value for _, value in records], pa.binary()),
    }
    if headers is not None:
        header = pa.struct([("key", pa.string()), ("value", pa.binary())])
        found["headers"] = pa.array(headers, pa.list_(header))
    return pa.RecordBatch.from_pydict(found)


def long(number: int) -> bytes:
    return number.to_bytes(8, "big", signed=True)


def rows(decoded: Decoded) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = decoded.batch.to_pylist()
    return found


# Reading.


def test_a_stream_gives_one_row_per_record_with_its_place_and_time() -> None:
    decoded = RowDecoder(source()).decode(raw((long(1), b'{"name":"x"}'), (None, b'{"name":"y"}')))
    place = {"ROWTIME": 5, "ROWPARTITION": 3}
    assert rows(decoded) == [
        {"ID": 1, "NAME": "x", **place, "ROWOFFSET": 10},
        {"ID": None, "NAME": "y", **place, "ROWOFFSET": 11},
    ]
    assert not decoded.errors


def test_every_column_gets_the_prefix() -> None:
    decoded = RowDecoder(source(prefix="O_")).decode(raw((long(1), b'{"name":"x"}')))
    assert decoded.batch.schema.names == ["O_ID", "O_NAME", "O_ROWTIME", "O_ROWPARTITION", "O_ROWOFFSET"]


@pytest.mark.parametrize("nothing", [None, b"null"])
def test_a_record_without_a_value_is_no_row_of_a_stream(nothing: bytes | None) -> None:
    decoded = RowDecoder(source()).decode(raw((long(1), nothing), (long(2), b"{}")))
    assert [row["ID"] for row in rows(decoded)] == [2]
    assert not decoded.errors


@pytest.mark.parametrize("nothing", [None, b"null"])
def test_a_record_without_a_value_goes_on_where_a_stream_keeps_it(nothing: bytes | None) -> None:
    kept = source(keeps_empty=True)
    decoded = RowDecoder(kept).decode(raw((long(1), nothing), (None, nothing), (long(2), b'{"name":"x"}')))
    assert [(row["ID"], row["NAME"], row["__DELETED"]) for row in rows(decoded)] == [
        (1, None, True),
        (None, None, True),
        (2, "x", False),
    ]
    encoded = RowEncoder(sink()).encode(pa.Table.from_batches([decoded.batch]))
    assert encoded.keys == [long(1), None, long(2)]
    assert encoded.values == [None, None, b'{"NAME":"x"}']


@pytest.mark.parametrize("nothing", [None, b"null"])
def test_a_record_without_a_value_deletes_in_a_table(nothing: bytes | None) -> None:
    decoded = RowDecoder(source(kind="TABLE")).decode(raw((long(1), nothing), (long(2), b"{}")))
    assert [(row["ID"], row["__DELETED"]) for row in rows(decoded)] == [(1, True), (2, False)]


def test_a_null_primary_key_is_told_and_left_out() -> None:
    decoded = RowDecoder(source(kind="TABLE")).decode(raw((None, b"{}"), (long(2), b"{}")))
    assert [row["ID"] for row in rows(decoded)] == [2]
    assert [(bad.target, bad.offset) for bad in decoded.errors] == [("key", 10)]


def test_bad_records_are_told_with_their_place_and_bytes() -> None:
    decoded = RowDecoder(source()).decode(raw((b"short", b"{}"), (long(2), b"{"), (long(3), b"{}")))
    assert [row["ID"] for row in rows(decoded)] == [3]
    first, second = decoded.errors
    assert (first.topic, first.partition, first.offset, first.target, first.key) == ("t", 3, 10, "key", b"short")
    assert (second.offset, second.target, second.value) == (11, "value", b"{")
    assert "JSON" in second.message


def test_headers_are_columns() -> None:
    schema = Schema(value=columns(NAME=STRING), headers=(HeaderColumn("ALL"), HeaderColumn("ONE", "a")))
    given = [[{"key": "a", "value": b"1"}, {"key": "b", "value": None}, {"key": "a", "value": b"2"}], []]
    decoded = RowDecoder(source(schema)).decode(raw((None, b"{}"), (None, b"{}"), headers=given))
    assert rows(decoded)[0]["ALL"][:2] == [{"KEY": "a", "VALUE": b"1"}, {"KEY": "b", "VALUE": None}]
    assert [row["ONE"] for row in rows(decoded)] == [b"2", None]


@pytest.mark.parametrize(
    ("kind", "size_ms", "suffix", "window"),
    [("TUMBLING", 1000, long(5000), (5000, 6000)), ("SESSION", None, long(7000) + long(5000), (5000, 7000))],
)
def test_windows_stand_behind_the_key(kind: Any, size_ms: int | None, suffix: bytes, window: tuple[int, int]) -> None:
    windowed = WindowedKey(kind, size_ms)
    decoded = RowDecoder(source(kind="TABLE", windowed=windowed)).decode(raw((long(1) + suffix, b"{}"), (b"x", b"{}")))
    assert [(row["ID"], row["WINDOWSTART"], row["WINDOWEND"]) for row in rows(decoded)] == [(1, *window)]
    assert [bad.target for bad in decoded.errors] == ["key"]
    key, _ = RowEncoder(sink(kind="TABLE", windowed=windowed)).encode_row({"ID": 1}, {}, window)
    assert key == long(1) + suffix


def test_the_row_time_comes_from_the_column_that_is_named() -> None:
    schema = Schema(value=columns(AT=BIGINT))
    decoded = RowDecoder(source(schema, timestamp=TimestampColumn("AT"))).decode(
        raw((None, b'{"at":77}'), (None, b"{}"), (None, b'{"at":-1}'))
    )
    assert [row["ROWTIME"] for row in rows(decoded)] == [77]
    assert [bad.offset for bad in decoded.errors] == [11, 12]


def test_the_row_time_may_be_text_in_a_form() -> None:
    schema = Schema(value=columns(AT=STRING))
    for form, text in (("yyyy-MM-dd HH:mm:ss", "1970-01-01 00:00:07"), (None, "1970-01-01T00:00:07Z")):
        decoded = RowDecoder(source(schema, timestamp=TimestampColumn("AT", form))).decode(
            raw((None, b'{"at":"%s"}' % text.encode()), (None, b'{"at":"soon"}'))
        )
        assert [row["ROWTIME"] for row in rows(decoded)] == [7000]
        assert [bad.offset for bad in decoded.errors] == [11]


def test_a_deletion_keeps_the_time_of_its_record_when_the_row_time_is_a_column() -> None:
    schema = Schema(key=columns(ID=BIGINT), value=columns(AT=TIMESTAMP))
    decoded = RowDecoder(source(schema, kind="TABLE", timestamp=TimestampColumn("AT"))).decode(
        raw((long(1), None), (long(1), b'{"at":77}'))
    )
    assert [row["ROWTIME"] for row in rows(decoded)] == [5, 77]
    assert not decoded.errors


@pytest.mark.parametrize(
    ("kind", "data", "value"),
    [
        (INTEGER, b"\x00\x00\x00\x07", 7),
        (BIGINT, long(-7), -7),
        (DOUBLE, b"\x3f\xf0" + bytes(6), 1.0),
        (STRING, "é".encode(), "é"),
        (BYTES, b"\xff", b"\xff"),
    ],
)
def test_the_kafka_format_is_what_kafkas_serializers_write(kind: SqlType, data: bytes, value: Any) -> None:
    codec = key_codec(KAFKA, columns(K=kind))
    assert codec.read(pa.array([data, None], pa.binary())).arrays[0].to_pylist() == [value, None]
    assert codec.write([[value, None]], 2) == [data, None]


def test_text_that_is_no_unicode_is_an_error_of_its_record_alone() -> None:
    found = key_codec(KAFKA, columns(K=STRING)).read(pa.array([b"\xff", b"x"], pa.binary()))
    assert found.arrays[0].to_pylist() == [None, "x"]
    assert list(found.errors) == [0]


DELIMITED_COLUMNS = columns(A=INTEGER, B=STRING, C=DOUBLE, D=BOOLEAN, E=Decimal(5, 2))


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("1,x,2.5,true,3.10", [1, "x", 2.5, True, decimal.Decimal("3.10")]),
        (' 1 ,"x, y",,FALSE,', [1, "x, y", None, False, None]),
        (',"say ""hi""",,,', [None, 'say "hi"', None, None, None]),
    ],
)
def test_delimited_lines(line: str, values: list[Any]) -> None:
    codec = value_codec(DELIMITED, DELIMITED_COLUMNS)
    found = codec.read(pa.array([line.encode()]))
    assert [each.to_pylist()[0] for each in found.arrays] == values
    written = codec.write([[value] for value in values], 1)
    again = codec.read(pa.array(written, pa.binary()))
    assert [each.to_pylist()[0] for each in again.arrays] == values


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ((7, "a b", 1.0), "7,a b,1.0"),
        ((-7, "-b", -1.0), '"-7",-b,-1.0'),
        ((1, "#x", None), '1,"#x",'),
        ((1, "x#", 1e7), "1,x#,1.0E7"),
        ((1, "!", 0.0001), '1,"!",1.0E-4'),
        ((1, " x", 123456.5), '1," x",123456.5'),
        ((1, "x ", None), '1,"x ",'),
        ((1, "a\nb", None), '1,"a\nb",'),
        ((1, 'say "hi"', None), '1,"say ""hi""",'),
        ((None, "", float("nan")), ",,NaN"),
    ],
)
def test_delimited_values_are_quoted_where_ksqldb_quotes_them(values: tuple[Any, ...], line: str) -> None:
    codec = value_codec(DELIMITED, columns(A=INTEGER, B=STRING, C=DOUBLE))
    assert codec.write([[value] for value in values], 1) == [line.encode()]


@pytest.mark.parametrize(
    ("text", "line"), [("", b'""'), (None, b""), ("é", '"é"'.encode()), ("_a", b'"_a"'), ("0", b"0")]
)
def test_the_first_delimited_value_is_quoted_more_often(text: str | None, line: bytes) -> None:
    assert value_codec(DELIMITED, columns(A=STRING)).write([[text]], 1) == [line]


@pytest.mark.parametrize("line", ["1,x", "1,x,2,true,1,7", "x,x,2,true,1", '1,"x,2,true,1', "1,x,2,true,12345"])
def test_a_delimited_line_that_does_not_fit_is_an_error(line: str) -> None:
    assert list(value_codec(DELIMITED, DELIMITED_COLUMNS).read(pa.array([line.encode()])).errors) == [0]


def test_other_delimiters() -> None:
    for name, character in (("|", b"|"), ("TAB", b"\t"), ("SPACE", b" ")):
        codec = value_codec(Format("DELIMITED", delimiter=name), columns(A=INTEGER, B=STRING))
        assert codec.write([[1], ["x"]], 1) == [b"1" + character + b"x"]


@pytest.mark.parametrize(
    ("form", "chosen"),
    [
        (KAFKA, columns(A=INTEGER, B=STRING)),
        (KAFKA, columns(A=Array(INTEGER))),
        (DELIMITED, columns(A=Array(INTEGER))),
        (Format("NONE"), columns(A=INTEGER)),
        (Format("XML"), columns(A=INTEGER)),
    ],
)
def test_columns_a_format_cannot_hold_are_refused(form: Format, chosen: tuple[ColumnSchema, ...]) -> None:
    with pytest.raises(SemanticError):
        value_codec(form, chosen)


def test_formats_of_later_are_named() -> None:
    with pytest.raises(NotSupportedError, match="AVRO"):
        value_codec(Format("AVRO"), columns(A=INTEGER))


# Writing.

ALL = Schema(
    key=columns(K=STRING),
    value=columns(
        A=BOOLEAN, B=INTEGER, C=DOUBLE, D=Decimal(5, 2), E=STRING, F=BYTES, G=TIME, H=DATE, I=TIMESTAMP,
        J=Array(DATE), L=Map(STRING, TIMESTAMP), M=Struct((Field("X", BYTES), Field("Y", Map(STRING, INTEGER)))),
    ),
)  # fmt: skip
MOMENT = datetime.datetime(2020, 1, 2, 3, 4, 5, 678_000, tzinfo=datetime.UTC)
ROW: dict[str, Any] = {
    "A": True, "B": 1, "C": 2.5, "D": decimal.Decimal("3.10"), "E": "é", "F": b"\x01", "G": datetime.time(1, 2, 3),
    "H": datetime.date(2020, 1, 2), "I": MOMENT, "J": [datetime.date(1970, 1, 2), None], "L": {"x": MOMENT},
    "M": {"X": b"\x02", "Y": {"q": 1}},
}  # fmt: skip
TEXT = (
    '{"A":true,"B":1,"C":2.5,"D":3.10,"E":"é","F":"AQ==","G":3723000,"H":18263,"I":1577934245678,"J":[1,null],'
    '"L":{"x":1577934245678},"M":{"X":"Ag==","Y":{"q":1}}}'
)


def test_a_row_of_python_values_is_written_as_ksqldb_writes_it() -> None:
    assert RowEncoder(sink(ALL)).encode_row({"K": "k"}, ROW) == (b"k", TEXT.encode())


def test_nulls_are_written() -> None:
    assert RowEncoder(sink()).encode_row({"ID": None}, {"NAME": None}) == (None, b'{"NAME":null}')


def test_what_is_written_is_read_back() -> None:
    key, value = RowEncoder(sink(ALL)).encode_row({"K": "k"}, ROW)
    decoded = RowDecoder(source(ALL)).decode(raw((key, value)))
    table = pa.Table.from_batches([decoded.batch])
    encoded = RowEncoder(sink(ALL)).encode(table)
    assert (encoded.keys, encoded.values, encoded.timestamps) == ([b"k"], [TEXT.encode()], [5])


def table_of(**values: list[Any]) -> pa.Table:
    return pa.table({name: pa.array(each) for name, each in values.items()})


def test_a_deleted_row_is_a_tombstone() -> None:
    table = table_of(ID=[1, 2], NAME=["x", None], ROWTIME=[7, 8], __DELETED=[False, True])
    encoded = RowEncoder(sink(kind="TABLE")).encode(table)
    assert encoded.keys == [long(1), long(2)]
    assert encoded.values == [b'{"NAME":"x"}', None]
    assert encoded.timestamps == [7, 8]


def test_a_null_primary_key_cannot_be_written() -> None:
    table = table_of(ID=[None, 2], NAME=["x", "y"], ROWTIME=[7, 8], __DELETED=[False, False])
    encoded = RowEncoder(sink(kind="TABLE")).encode(table)
    assert encoded.keys == [long(2)]
    assert [bad.row for bad in encoded.errors] == [0]


def test_a_value_that_does_not_fit_leaves_out_its_row_alone() -> None:
    schema = Schema(key=columns(ID=INTEGER), value=columns(NAME=STRING))
    table = table_of(ID=[1 << 40, 2], NAME=["x", "y"], ROWTIME=[7, 8])
    encoded = RowEncoder(sink(schema)).encode(table)
    assert encoded.values == [b'{"NAME":"y"}']
    assert [bad.row for bad in encoded.errors] == [0]


def test_keys_of_several_columns_are_an_object_and_no_key_if_all_are_null() -> None:
    schema = Schema(key=columns(A=INTEGER, B=STRING), value=columns(NAME=STRING))
    encoder = RowEncoder(sink(schema, key_format=JSON))
    assert encoder.encode_row({"A": 1, "B": None}, {})[0] == b'{"A":1,"B":null}'
    assert encoder.encode_row({}, {})[0] is None
    table = table_of(A=pa.array([1, None], pa.int32()), B=["x", None], NAME=["n", "n"], ROWTIME=[1, 1])
    assert encoder.encode(table).keys == [b'{"A":1,"B":"x"}', None]


@pytest.mark.parametrize("form", [KAFKA, JSON, DELIMITED])
def test_a_single_key_column_that_is_null_is_no_key(form: Format) -> None:
    encoder = RowEncoder(sink(key_format=form))
    assert encoder.encode_row({"ID": None}, {})[0] is None
    assert encoder.encode(table_of(ID=pa.array([None], pa.int64()), NAME=["n"], ROWTIME=[1])).keys == [None]


def test_doubles_that_json_has_no_number_for_are_text() -> None:
    schema = Schema(value=columns(A=DOUBLE, B=Array(DOUBLE), C=Map(STRING, DOUBLE)))
    nan, infinity = float("nan"), float("inf")
    encoder = RowEncoder(sink(schema))
    written = encoder.encode_row({}, {"A": nan, "B": [infinity, None, 1.5], "C": {"x": -infinity}})[1]
    assert written == b'{"A":"NaN","B":["Infinity",null,1.5],"C":{"x":"-Infinity"}}'
    largest = 1.7976931348623157e308
    assert encoder.encode(table_of(A=[largest, largest], B=[None] * 2, C=[None] * 2, ROWTIME=[1, 1])).values[0] == (
        b'{"A":1.7976931348623157e308,"B":null,"C":null}'
    )
    assert rows(RowDecoder(source(schema)).decode(raw((None, written))))[0]["B"] == [infinity, None, 1.5]


def test_a_single_json_key_is_not_wrapped() -> None:
    assert RowEncoder(sink(key_format=JSON)).encode_row({"ID": 1}, {})[0] == b"1"


def test_wrap_single_value_false_writes_the_bare_value() -> None:
    encoder = RowEncoder(sink(value_format=Format("JSON", wrap_single=False)))
    assert encoder.encode_row({"ID": 1}, {"NAME": "x"})[1] == b'"x"'


def test_encode_row_tells_what_does_not_fit() -> None:
    with pytest.raises(BadValueError, match="ID"):
        RowEncoder(sink()).encode_row({"ID": "x"}, {})


def test_no_value_columns() -> None:
    schema = Schema(key=columns(ID=BIGINT))
    assert RowEncoder(sink(schema)).encode_row({"ID": 1}, {})[1] == b"{}"
    assert RowEncoder(sink(schema)).encode(table_of(ID=[1], ROWTIME=[2])).values == [b"{}"]
    assert RowDecoder(source(schema)).decode(raw((long(1), b"{}"))).batch.num_rows == 1
