"""How rows lie in a store: packed whole with msgpack, and each key column once more in a form SQLite compares.

Packed rows hold every column, so the storage form of a key is never read back: it only has to compare as the value
does. Types without such an order (DECIMAL and the nested ones) are stored packed: equal values are equal, ranges are
not asked.
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable, Sequence
from types import GenericAlias
from typing import Any, TypedDict

import msgspec

from penstock.sql.types import Array, Decimal, Map, Scalar, SqlType, Struct

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_SCALARS: dict[str, Any] = {
    "BOOLEAN": bool,
    "INTEGER": int,
    "BIGINT": int,
    "DOUBLE": float,
    "STRING": str,
    "BYTES": bytes,
    "TIME": datetime.time,
    "DATE": datetime.date,
    "TIMESTAMP": datetime.datetime,
    "NULL": None,
}
_pack = msgspec.msgpack.Encoder().encode


def python_type(sql_type: SqlType) -> Any:
    """The type of a value as msgspec decodes it; every value may be null."""
    match sql_type:
        case Array(element):
            return GenericAlias(list, (python_type(element),)) | None
        case Map(key, value):
            return GenericAlias(dict, (_SCALARS[str(key)], python_type(value))) | None
        case Struct(fields):
            members = {field.name: python_type(field.type) for field in fields}
            return TypedDict("row", members) | None  # type: ignore[operator]
        case Decimal():
            return decimal.Decimal | None
        case Scalar(name):
            return _SCALARS[name] | None


class RowPacker:
    """Rows as tuples of their columns' values, to bytes and back."""

    def __init__(self, types: Sequence[SqlType]) -> None:
        members = tuple(python_type(sql_type) for sql_type in types)
        self._decoder = msgspec.msgpack.Decoder(tuple[members] if members else tuple[()])  # type: ignore[valid-type]

    def pack(self, values: Sequence[Any]) -> bytes:
        return _pack(values)

    def unpack(self, packed: bytes) -> tuple[Any, ...]:
        values: tuple[Any, ...] = self._decoder.decode(packed)
        return values


def _timestamp_ms(value: datetime.datetime) -> int:
    return (value - _EPOCH) // datetime.timedelta(milliseconds=1)


def _time_us(value: datetime.time) -> int:
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond


def as_it_is(value: Any) -> Any:
    return value


_STORAGE: dict[str, Callable[[Any], Any]] = {
    "BOOLEAN": int,
    "INTEGER": as_it_is,
    "BIGINT": as_it_is,
    "DOUBLE": as_it_is,
    "STRING": as_it_is,
    "BYTES": as_it_is,
    "TIME": _time_us,
    "DATE": datetime.date.toordinal,
    "TIMESTAMP": _timestamp_ms,
}


def storage_form(sql_type: SqlType) -> Callable[[Any], Any]:
    """The function that gives a key value the form SQLite compares."""
    return _STORAGE.get(sql_type.name, _pack) if isinstance(sql_type, Scalar) else _pack


def is_ordered(sql_type: SqlType) -> bool:
    """Whether storage forms of this type compare as the values do."""
    return isinstance(sql_type, Scalar) and sql_type.name in _STORAGE
