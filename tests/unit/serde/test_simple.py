"""The built-in pairs: Java's bytes, both ways, and clear refusals."""

from __future__ import annotations

import math
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.serde import SIMPLE, SerializationError

JAVA_BYTES = [
    ("string", "zażółć", "zażółć".encode()),
    ("short", -2, b"\xff\xfe"),
    ("int", 258, b"\x00\x00\x01\x02"),
    ("long", -1, b"\xff" * 8),
    ("float", 1.5, b"\x3f\xc0\x00\x00"),
    ("double", -2.0, b"\xc0\x00\x00\x00\x00\x00\x00\x00"),
    ("uuid", UUID(int=1), b"00000000-0000-0000-0000-000000000001"),
    ("bool", True, b"\x01"),
    ("bool", False, b"\x00"),
    ("json", {"a": [1, None, "ż"]}, '{"a":[1,null,"ż"]}'.encode()),
    ("bytes", b"x", b"x"),
]


@pytest.mark.parametrize(("name", "value", "data"), JAVA_BYTES)
def test_the_bytes_are_javas(name: str, value: Any, data: bytes) -> None:
    assert SIMPLE[name].serialize("t", value) == data
    assert SIMPLE[name].deserialize("t", data) == value


@pytest.mark.parametrize("name", sorted(SIMPLE))
def test_none_stays_none(name: str) -> None:
    assert SIMPLE[name].serialize("t", None) is None
    assert SIMPLE[name].deserialize("t", None) is None


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("string", b"x", "takes str, not bytes"),
        ("string", "\ud800", "UTF-8"),
        ("short", 32768, "does not fit into the 2 bytes"),
        ("int", True, "takes int, not bool"),
        ("int", 1 << 31, "does not fit"),
        ("int", 1.0, "takes int, not float"),
        ("long", "7", "takes int, not str"),
        ("float", 1e39, "does not fit into the 4 bytes"),
        ("double", "x", "takes float"),
        ("double", 1 << 1100, "does not fit"),
        ("uuid", "x", "takes uuid.UUID"),
        ("bool", 1, "True or False"),
        ("json", object(), "cannot be written as JSON"),
        ("json", math.nan, "cannot be written as JSON"),
        ("void", 1, "None only"),
        ("bytes", "text", "bytes are wanted, not str"),
    ],
)
def test_what_cannot_be_written_is_named(name: str, value: Any, says: str) -> None:
    with pytest.raises(SerializationError, match=says):
        SIMPLE[name].serialize("t", value)


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("string", b"\xff", "not UTF-8"),
        ("int", b"\x00" * 5, "is 4 bytes, but there are 5"),
        ("double", b"", "is 8 bytes, but there are 0"),
        ("uuid", b"nothing", "no UUID"),
        ("bool", b"\x02", "0 or 1"),
        ("json", b"{" * 100, "not JSON"),
        ("void", b"x", "no bytes, but there are 1"),
    ],
)
def test_what_cannot_be_read_is_named(name: str, data: bytes, says: str) -> None:
    with pytest.raises(SerializationError, match=says):
        SIMPLE[name].deserialize("t", data)


@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_longs_come_back(value: int) -> None:
    assert SIMPLE["long"].decode(SIMPLE["long"].encode(value)) == value


@given(st.floats(allow_nan=False))
def test_doubles_come_back(value: float) -> None:
    assert SIMPLE["double"].decode(SIMPLE["double"].encode(value)) == value


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner, max_size=4)))
def test_json_comes_back(value: Any) -> None:
    try:
        data = SIMPLE["json"].serialize("t", value)
    except SerializationError:  # lone surrogates are no UTF-8
        return
    assert SIMPLE["json"].deserialize("t", data) == value


@pytest.mark.parametrize("name", sorted(SIMPLE))
@given(data=st.binary(max_size=40))
def test_any_bytes_give_a_value_or_the_typed_error(name: str, data: bytes) -> None:
    try:
        SIMPLE[name].deserialize("t", data)
    except SerializationError:
        pass
