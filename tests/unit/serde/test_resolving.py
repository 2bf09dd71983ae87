"""Every way to name a serializer, and what happens when it fails."""

from __future__ import annotations

import json
from typing import Any

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.serde import (
    SerializationError,
    close_serde,
    default_serialize,
    resolve_deserializer,
    resolve_serializer,
)

JAVA = "org.apache.kafka.common.serialization."


class Upper:
    """Both directions, with the topic in front."""

    closed = False

    def serialize(self, topic: str, value: Any, headers: Any) -> bytes | None:
        return f"{topic}:{value}".upper().encode()

    def deserialize(self, topic: str, data: bytes | None, headers: Any) -> Any:
        return (topic, data, headers)

    def close(self) -> None:
        self.closed = True


def test_without_a_serializer_bytes_and_text_pass() -> None:
    assert resolve_serializer() is default_serialize
    assert [default_serialize("t", value) for value in (b"x", "ż", None, bytearray(b"y"))] == [
        b"x", "ż".encode(), None, b"y",
    ]  # fmt: skip
    with pytest.raises(SerializationError, match="bytes or text is wanted, not int 7"):
        default_serialize("t", 7)


@pytest.mark.parametrize("spec", ["string", " String ", JAVA + "StringSerializer", "StringSerializer"])
def test_names_short_and_java(spec: str) -> None:
    assert resolve_serializer(spec)("t", "x", ()) == b"x"


@pytest.mark.parametrize("spec", ["long", JAVA + "LongDeserializer"])
def test_names_to_read(spec: str) -> None:
    read = resolve_deserializer(spec)
    assert read is not None
    assert read("t", b"\x00" * 7 + b"\x05", ()) == 5


@pytest.mark.parametrize("spec", [None, "bytes", JAVA + "ByteArrayDeserializer"])
def test_bytes_that_stay_bytes_need_no_function(spec: str | None) -> None:
    assert resolve_deserializer(spec) is None


def test_a_plain_callable_is_not_called_for_none() -> None:
    write = resolve_serializer(str.encode)
    assert (write("t", "x", ()), write("t", None, ())) == (b"x", None)
    read = resolve_deserializer(json.loads)
    assert read is not None
    assert (read("t", b"[1]", ()), read("t", None, ())) == ([1], None)


@pytest.mark.parametrize("spec", [Upper, Upper()])
def test_an_object_or_its_class_gets_topic_and_headers(spec: object) -> None:
    assert resolve_serializer(spec)("t", None, ()) == b"T:NONE"
    read = resolve_deserializer(spec)
    assert read is not None
    assert read("t", b"x", [("h", b"1")]) == ("t", b"x", [("h", b"1")])


def test_close_reaches_the_object() -> None:
    spec = Upper()
    close_serde(resolve_serializer(spec))
    assert spec.closed
    close_serde(None)
    close_serde(default_serialize)
    close_serde(resolve_serializer("int"))


def test_whatever_a_users_code_raises_is_typed() -> None:
    def broken(value: object) -> bytes:
        raise ZeroDivisionError("oh")

    with pytest.raises(SerializationError, match="broken failed for a record of topic 'orders': ZeroDivisionError: oh"):
        resolve_serializer(broken)("orders", 1, ())


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("strin", "did you mean 'string'"),
        ("nothing.like.it", "no serializer is known as 'nothing.like.it'"),
        (JAVA + "StringDeserializer", "no serializer is known"),
        (17, "17 cannot serialize"),
    ],
)
def test_what_is_no_serializer_is_refused(spec: object, says: str) -> None:
    with pytest.raises(KafkaError, match=says) as caught:
        resolve_serializer(spec)
    assert caught.value.code is ErrorCode.INVALID_CONFIG


def test_a_class_that_needs_arguments_is_refused() -> None:
    class Needy(Upper):
        def __init__(self, schema: str) -> None:
            self.schema = schema

    with pytest.raises(KafkaError, match="Needy cannot be made without arguments"):
        resolve_serializer(Needy)
