"""The types of the language, as values.

A type is a frozen struct: comparable, hashable, and JSON in a plan without further code. `str(type)` gives the text a
person writes; `describe()` gives the form REST clients know.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

ScalarName = Literal["BOOLEAN", "INTEGER", "BIGINT", "DOUBLE", "STRING", "BYTES", "TIME", "DATE", "TIMESTAMP", "NULL"]


class Scalar(msgspec.Struct, frozen=True, tag="scalar", tag_field="kind"):
    name: ScalarName

    def __str__(self) -> str:
        return self.name


class Decimal(msgspec.Struct, frozen=True, tag="decimal", tag_field="kind"):
    precision: int
    scale: int

    def __str__(self) -> str:
        return f"DECIMAL({self.precision}, {self.scale})"


class Array(msgspec.Struct, frozen=True, tag="array", tag_field="kind"):
    element: SqlType

    def __str__(self) -> str:
        return f"ARRAY<{self.element}>"


class Map(msgspec.Struct, frozen=True, tag="map", tag_field="kind"):
    key: SqlType
    value: SqlType

    def __str__(self) -> str:
        return f"MAP<{self.key}, {self.value}>"


class Field(msgspec.Struct, frozen=True):
    name: str
    type: SqlType


class Struct(msgspec.Struct, frozen=True, tag="struct", tag_field="kind"):
    fields: tuple[Field, ...]

    def __str__(self) -> str:
        return "STRUCT<" + ", ".join(f"`{field.name}` {field.type}" for field in self.fields) + ">"

    def field(self, name: str) -> Field | None:
        return next((field for field in self.fields if field.name == name), None)


SqlType = Scalar | Decimal | Array | Map | Struct

BOOLEAN = Scalar("BOOLEAN")
INTEGER = Scalar("INTEGER")
BIGINT = Scalar("BIGINT")
DOUBLE = Scalar("DOUBLE")
STRING = Scalar("STRING")
BYTES = Scalar("BYTES")
TIME = Scalar("TIME")
DATE = Scalar("DATE")
TIMESTAMP = Scalar("TIMESTAMP")
NULL = Scalar("NULL")
"""The type of a bare NULL, before its surroundings give it another."""

MAX_DECIMAL_PRECISION = 38
"""Spark's limit."""


def describe(sql_type: SqlType) -> dict[str, Any]:
    """The shape of a type in REST answers."""
    match sql_type:
        case Array(element):
            return {"type": "ARRAY", "fields": None, "memberSchema": describe(element)}
        case Map(_, value):
            return {"type": "MAP", "fields": None, "memberSchema": describe(value)}
        case Struct(fields):
            described = [{"name": field.name, "schema": describe(field.type)} for field in fields]
            return {"type": "STRUCT", "fields": described, "memberSchema": None}
        case Decimal(precision, scale):
            parameters = {"precision": precision, "scale": scale}
            return {"type": "DECIMAL", "parameters": parameters, "fields": None, "memberSchema": None}
        case Scalar(name):
            return {"type": name, "fields": None, "memberSchema": None}
