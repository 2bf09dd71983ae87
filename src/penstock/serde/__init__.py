"""Serializers and deserializers: values to bytes and back, before a record is sent and after it is read.

A user names one in any of these ways, for keys and for values alike:

- a short name: ``"string"``, ``"json"``, ``"int"``, ``"long"``, ``"short"``, ``"float"``, ``"double"``, ``"uuid"``,
  ``"bool"``, ``"bytes"``, ``"void"``; or the Java class of the same (``org.apache.kafka.common.serialization...``);
- a plain callable ``value -> bytes`` (``data -> value`` to read); it is not called for None, which stays None;
- an object with ``serialize(topic, value, headers)`` / ``deserialize(topic, data, headers)``, or a class of such
  objects; these are called for None as well, as Java calls its own;
- nothing: bytes are sent as they are, text as UTF-8; what is read stays bytes.

Clients call `resolve_serializer` or `resolve_deserializer` once and the function that they get for every record:
``function(topic, value, headers)``. Whatever goes wrong inside comes out as `SerializationError`.

This package knows nothing of clients, of the network or of schemas.
"""

from penstock.serde.errors import SerializationError
from penstock.serde.interface import Deserialize, Deserializer, Headers, Serialize, Serializer
from penstock.serde.resolving import (
    close_serde,
    default_serialize,
    resolve_deserializer,
    resolve_serializer,
)
from penstock.serde.simple import SIMPLE, SimpleSerde

__all__ = [
    "SIMPLE",
    "Deserialize",
    "Deserializer",
    "Headers",
    "SerializationError",
    "Serialize",
    "Serializer",
    "SimpleSerde",
    "close_serde",
    "default_serialize",
    "resolve_deserializer",
    "resolve_serializer",
]
