"""The formats by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

from penstock.sql.errors import NotSupportedError, SemanticError
from penstock.sql.formats.codec import Codec, Columns
from penstock.sql.formats.delimited_format import DelimitedCodec
from penstock.sql.formats.json_format import JsonCodec
from penstock.sql.formats.kafka_format import KafkaCodec
from penstock.sql.schema import ColumnSchema, Format

FORMATS: Final = ("JSON", "KAFKA", "DELIMITED", "NONE")
LATER_FORMATS: Final = ("AVRO", "JSON_SR", "PROTOBUF", "PROTOBUF_NOSR")


class NoneCodec:
    """Nothing is read and nothing is written."""

    def read(self, data: pa.Array) -> Columns:
        return Columns(arrays=[])

    def write(self, columns: Sequence[Sequence[Any]], count: int) -> list[bytes | None]:
        return [None] * count


def key_codec(form: Format, columns: Sequence[ColumnSchema]) -> Codec:
    """A single key column is never wrapped."""
    return _make(form, columns, wrapped=len(columns) != 1) if columns else NoneCodec()


def value_codec(form: Format, columns: Sequence[ColumnSchema]) -> Codec:
    return _make(form, columns, wrapped=form.wrap_single or len(columns) != 1)


def _make(form: Format, columns: Sequence[ColumnSchema], *, wrapped: bool) -> Codec:
    match form.name:
        case "JSON":
            return JsonCodec(columns, wrapped=wrapped)
        case "KAFKA":
            return KafkaCodec(columns)
        case "DELIMITED":
            return DelimitedCodec(columns, form.delimiter)
        case "NONE":
            return _none(columns)
    if form.name in LATER_FORMATS:
        raise NotSupportedError(
            f"The format {form.name} is not supported.", hint=f"Supported are {', '.join(FORMATS)}."
        )
    raise SemanticError(f"Unknown format {form.name}.", hint=f"Formats are {', '.join(FORMATS)}.")


def _none(columns: Sequence[ColumnSchema]) -> Codec:
    if columns:
        named = ", ".join(column.name for column in columns)
        raise SemanticError(f"The NONE format holds no columns, but there is {named}.")
    return NoneCodec()
