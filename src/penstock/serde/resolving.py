"""From what a user wrote to the function that a client calls for every record."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any, Final

from penstock.base.errors import ErrorCode, KafkaError
from penstock.serde.errors import SerializationError
from penstock.serde.interface import Deserialize, Headers, Serialize
from penstock.serde.simple import SIMPLE, SimpleSerde, encode_bytes, encode_string, named

_BY_JAVA_NAME: Final = {java: serde for serde in SIMPLE.values() for java in serde.java}


def default_serialize(topic: str, value: Any, headers: Headers = (), /) -> bytes | None:
    """Without a serializer: bytes as they are, text as UTF-8, None as none."""
    if value is None or type(value) is bytes:
        return value
    if isinstance(value, str):
        return encode_string(value)
    if not isinstance(value, bytearray | memoryview):
        raise SerializationError(
            f"bytes or text is wanted, not {named(value)}: encode it first, or name a serializer for it, such as 'json'"
        )
    return encode_bytes(value)


def resolve_serializer(spec: object = None) -> Serialize:
    """The function ``(topic, value, headers) -> bytes | None`` of a serializer as a user may name it.

    The result is `default_serialize` itself when nothing was named. Raises KafkaError (INVALID_CONFIG) for something
    that cannot serialize.
    """
    if spec is None:
        return default_serialize
    return _resolve(spec, "serialize")


def resolve_deserializer(spec: object = None) -> Deserialize | None:
    """The function ``(topic, data, headers) -> value`` of a deserializer; None where bytes stay as they are."""
    if spec is None or (isinstance(spec, str) and _built_in(spec, "deserialize") is SIMPLE["bytes"]):
        return None
    return _resolve(spec, "deserialize")


def close_serde(function: Serialize | Deserialize | None) -> None:
    """Calls `close()` of the object behind a resolved function, if it has one."""
    close = getattr(getattr(function, "serde", None), "close", None)
    if callable(close):
        close()


def _resolve(spec: object, method: str) -> Callable[[str, Any, Headers], Any]:
    if isinstance(spec, str):
        return _guarded(getattr(_built_in(spec, method), method), spec, spec)
    instance = _instance(spec, method)
    bound = getattr(instance, method, None)
    name = getattr(spec, "__qualname__", type(spec).__qualname__)
    if callable(bound):
        return _guarded(bound, name, instance)
    if callable(instance):
        return _guarded(_of_value(instance), name, instance)
    raise _refused(
        f"{spec!r} cannot {method}: give a function of one value, an object with {method}(topic, value, headers),"
        f" or one of the names {', '.join(sorted(SIMPLE))}"
    )


def _instance(spec: object, method: str) -> object:
    """A class with the method stands for an object of it; other classes (`str`, say) are callables like any other."""
    if not (isinstance(spec, type) and hasattr(spec, method)):
        return spec
    try:
        return spec()
    except TypeError as error:
        raise _refused(f"an object of {spec.__qualname__} cannot be made without arguments: {error}") from error


def _of_value(function: Callable[[Any], Any]) -> Callable[[str, Any, Headers], Any]:
    def call(topic: str, value: Any, headers: Headers) -> Any:
        return None if value is None else function(value)

    return call


def _guarded(function: Callable[..., Any], name: str, serde: object) -> Callable[[str, Any, Headers], Any]:
    """The same function, whose failures are all `SerializationError`."""

    def call(topic: str, value: Any, headers: Headers = (), /) -> Any:
        try:
            return function(topic, value, headers)
        except SerializationError:
            raise
        except Exception as error:  # a user's code may raise anything
            what = f"{type(error).__name__}: {error}"
            raise SerializationError(f"{name} failed for a record of topic {topic!r}: {what}") from error

    call.serde = serde  # type: ignore[attr-defined]
    return call


def _built_in(name: str, method: str) -> SimpleSerde:
    short = SIMPLE.get(name.strip().lower())
    if short is not None:
        return short
    found = _BY_JAVA_NAME.get(_java_stem(name, method))
    if found is not None:
        return found
    near = difflib.get_close_matches(name.lower(), SIMPLE, n=1, cutoff=0.5)
    hint = f": did you mean {near[0]!r}?" if near else "."
    raise _refused(f"no {method}r is known as {name!r}{hint} The names are {', '.join(sorted(SIMPLE))}")


def _java_stem(name: str, method: str) -> str:
    """`String` of `org.apache.kafka.common.serialization.StringSerializer`; no text if it is of the other direction."""
    last = name.strip().rpartition(".")[2]
    suffix = "Deserializer" if method == "deserialize" else "Serializer"
    stem = last.removesuffix(suffix)
    return "" if stem == last else stem


def _refused(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_CONFIG, message)
