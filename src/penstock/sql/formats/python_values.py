"""Python values of SQL types on their way out: into JSON, and out of Arrow.

The values are those the whole engine uses: `datetime` for TIMESTAMP (UTC), `date`, `time`, `Decimal`, `bytes`, lists
and dicts. JSON has them as ksqlDB writes them: numbers for times, base64 for bytes, text for the keys of maps.
"""

from __future__ import annotations

import base64
import datetime
import math
from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from penstock.sql.types import Array, Map, Scalar, SqlType, Struct

JsonWriter = Callable[[Any], Any]
"""A value that is not None to one that the JSON encoder writes right by itself."""

_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_EPOCH_DAY: Final = datetime.date(1970, 1, 1).toordinal()
_MILLISECOND: Final = datetime.timedelta(milliseconds=1)


def timestamp_ms(value: datetime.datetime) -> int:
    return (value - _EPOCH) // _MILLISECOND


def date_days(value: datetime.date) -> int:
    return value.toordinal() - _EPOCH_DAY


def time_ms(value: datetime.time) -> int:
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1000 + value.microsecond // 1000


def base64_text(value: bytes) -> str:
    return base64.b64encode(value).decode()


def json_double(value: float) -> float | str:
    """JSON has no number for these: they are text, as in Java."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")


_SCALAR_WRITERS: Final[dict[str, JsonWriter]] = {
    "DOUBLE": json_double,
    "BYTES": base64_text,
    "TIME": time_ms,
    "DATE": date_days,
    "TIMESTAMP": timestamp_ms,
}


def make_json_writer(sql_type: SqlType) -> JsonWriter | None:
    """None: the value is written as it is."""
    match sql_type:
        case Scalar(name):
            return _SCALAR_WRITERS.get(name)
        case Array(element):
            return _array_writer(make_json_writer(element))
        case Map(_, value):
            return _map_writer(make_json_writer(value))
        case Struct(fields):
            return _struct_writer({field.name: make_json_writer(field.type) for field in fields})
    return None


def _array_writer(element: JsonWriter | None) -> JsonWriter | None:
    if element is None:
        return None
    return lambda value: [None if each is None else element(each) for each in value]


def _map_writer(element: JsonWriter | None) -> JsonWriter:
    def write(value: dict[Any, Any]) -> dict[str, Any]:
        return {
            _key_text(key): each if each is None or element is None else element(each) for key, each in value.items()
        }

    return write


def _key_text(key: Any) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    return str(key)


def _struct_writer(fields: dict[str, JsonWriter | None]) -> JsonWriter:
    def write(value: dict[str, Any]) -> dict[str, Any]:
        written: dict[str, Any] = {}
        for name, writer in fields.items():
            each = value.get(name)
            written[name] = each if each is None or writer is None else writer(each)
        return written

    return write


def to_python(column: pa.Array | pa.ChunkedArray, sql_type: SqlType) -> list[Any]:
    """The Python values of an Arrow column; maps come as dicts at every depth."""
    if isinstance(sql_type, Scalar) and sql_type.name in _BY_NUMPY and not column.null_count:
        return _numbers(column)
    if sql_type == Scalar("TIMESTAMP"):
        column = pc.cast(column, pa.timestamp("us", "UTC"), safe=False)
    if sql_type == Scalar("TIME"):
        column = pc.cast(column, pa.time64("us"), safe=False)
    values: list[Any] = column.to_pylist()
    convert = _from_arrow(sql_type)
    return values if convert is None else [None if value is None else convert(value) for value in values]


_BY_NUMPY: Final = frozenset({"INTEGER", "BIGINT", "DOUBLE"})


def _numbers(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    numbers: list[Any] = column.to_numpy().tolist() if len(column) else []
    return numbers


def _from_arrow(sql_type: SqlType) -> JsonWriter | None:
    """What `to_pylist` leaves to do: pairs of maps become dicts. None: nothing."""
    match sql_type:
        case Array(element):
            return _array_writer(_from_arrow(element))
        case Map(_, value):
            convert = _from_arrow(value)
            return lambda pairs: {
                key: each if each is None or convert is None else convert(each) for key, each in pairs
            }
        case Struct(fields):
            converts = {field.name: _from_arrow(field.type) for field in fields}
            return None if not any(converts.values()) else _struct_writer(converts)
    return None
