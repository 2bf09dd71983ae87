"""kio as the second opinion: the same message in its classes, and Hypothesis strategies for messages both can hold."""

from __future__ import annotations

import dataclasses
import datetime
import io
import types
import typing
from functools import cache
from typing import Any

from hypothesis import strategies as st
from kio.index import load_entity_schema
from kio.schema.errors import ErrorCode as KioErrorCode
from kio.schema.index import LoadableEntityType, schema_name_map
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType

from penstock.base.types import ZERO_UUID
from penstock.protocol.apis import APIS, Api
from penstock.protocol.schema import Wire, element_class, wire_fields

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
INTEGERS = {"int8": (-(2**7), 2**7 - 1), "int16": (-(2**15), 2**15 - 1), "uint16": (0, 2**16 - 1)}
INTEGERS |= {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}
# kio holds instants in whole seconds and durations in a float's precision.
SECONDS = st.integers(0, 250_000_000_000).map(lambda seconds: seconds * 1000)
KIO_ERRORS = sorted(int(code) for code in KioErrorCode)


def api_versions() -> list[tuple[Api, int]]:
    return [(api, v) for api in APIS.values() for v in range(api.lowest_version, api.highest_version + 1)]


def message_class(api: Api, role: str) -> type:
    return api.request_class() if role == "request" else api.response_class()


def kio_class(api: Api, version: int, role: str) -> Any:
    kind: LoadableEntityType = EntityType.request if role == "request" else EntityType.response
    return load_entity_schema(api.key.name.lower(), version, kind)


def kio_encode(value: Any) -> bytes:
    buffer = io.BytesIO()
    entity_writer(type(value))(buffer, value)
    return buffer.getvalue()


def kio_decode(cls: Any, data: bytes) -> Any:
    value, size = entity_reader(cls)(data, 0)
    assert size == len(data)
    return value


def to_kio(message: Any, cls: Any) -> Any:
    """The message as kio's class of one version."""
    values = {}
    for field in dataclasses.fields(cls):
        kind = field.metadata.get("kafka_type")
        name = f"{field.name}_ms" if is_time(kind) else field.name
        value = getattr(message, name)
        if isinstance(value, list):
            values[field.name] = tuple(_to_kio_one(one, kind, _structure(field.type)) for one in value)
        else:
            values[field.name] = _to_kio_one(value, kind, _structure(field.type))
    return cls(**values)


def is_time(kind: str | None) -> bool:
    return kind is not None and kind.startswith(("timedelta", "datetime"))


def _structure(annotation: Any) -> Any:
    """The class inside an annotation, through arrays and nulls."""
    while typing.get_origin(annotation) in (types.UnionType, typing.Union, tuple):
        annotation = typing.get_args(annotation)[0]
    return annotation


def _to_kio_one(value: Any, kind: str | None, cls: Any) -> Any:
    if value is None or value == ZERO_UUID:
        return None
    if kind is None:
        return to_kio(value, cls)
    if kind == "error_code":
        return KioErrorCode(value)
    if kind.startswith("timedelta"):
        return datetime.timedelta(milliseconds=value)
    if kind.startswith("datetime"):
        return None if value == -1 else EPOCH + datetime.timedelta(milliseconds=value)
    return value


@cache
def messages(cls: type, version: int, kio: Any) -> st.SearchStrategy[Any]:
    """Messages with random values in what the version has, and defaults in the rest."""
    kinds = {_our_name(field): field for field in dataclasses.fields(kio)}
    values = {
        field.name: _values(cls, wire, version, kinds[field.name])
        for field, wire in wire_fields(cls)
        if wire.exists_in(version)
    }
    assert set(values) == set(kinds)
    return st.builds(cls, **values)


def _our_name(field: dataclasses.Field[Any]) -> str:
    return f"{field.name}_ms" if is_time(field.metadata.get("kafka_type")) else field.name


def _values(owner: type, wire: Wire, version: int, kio_field: Any) -> st.SearchStrategy[Any]:
    nested = element_class(owner, wire)
    kind = kio_field.metadata.get("kafka_type")
    if nested is not None:
        one = messages(nested, version, _structure(kio_field.type))
    else:
        one = _primitives(wire.element_type, kind, "None" in str(kio_field.type))
    values = st.lists(one, max_size=3) if wire.is_array else one
    return st.none() | values if wire.nullable_in(version) else values


def _primitives(kind: str, kio_kind: str, nullable: bool) -> st.SearchStrategy[Any]:
    if kio_kind == "error_code":
        return st.sampled_from(KIO_ERRORS)
    if kio_kind == "datetime_i64":
        return st.just(-1) | SECONDS if nullable else SECONDS
    if kio_kind.startswith("timedelta"):
        return st.integers(-(2**31), 2**31 - 1)
    return PRIMITIVES[kind]


TEXT = st.text(max_size=6) | st.integers(120, 140).map(lambda size: "n" * size)
PRIMITIVES: dict[str, st.SearchStrategy[Any]] = {
    **{kind: st.integers(*bounds) for kind, bounds in INTEGERS.items()},
    "bool": st.booleans(),
    "float64": st.floats(allow_nan=False, allow_infinity=False),
    "string": TEXT,
    "bytes": st.binary(max_size=200),
    "records": st.binary(max_size=200),
    "uuid": st.uuids() | st.just(ZERO_UUID),
}


def known_versions(name: str) -> list[int]:
    return sorted(schema_name_map[name])
