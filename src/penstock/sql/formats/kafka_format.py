"""KAFKA: one column, the bytes of Kafka's own serializers: big-endian numbers, UTF-8 text, plain bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow as pa

from penstock.serde.errors import SerializationError
from penstock.serde.simple import SIMPLE, SimpleSerde
from penstock.sql.errors import SemanticError
from penstock.sql.formats.codec import BadValueError, Columns, read_rows
from penstock.sql.schema import ColumnSchema
from penstock.sql.types import STRING

_SERDES: Final[dict[str, SimpleSerde]] = {
    "INTEGER": SIMPLE["int"],
    "BIGINT": SIMPLE["long"],
    "DOUBLE": SIMPLE["double"],
    "STRING": SIMPLE["string"],
    "BYTES": SIMPLE["bytes"],
}


class KafkaCodec:
    def __init__(self, columns: Sequence[ColumnSchema]) -> None:
        check_kafka_columns(columns)
        self._columns = tuple(columns)
        self._serde = _SERDES[str(columns[0].type)]
        self._read_row = _row_reader(columns[0].name, self._serde.decode)

    def read(self, data: pa.Array) -> Columns:
        if self._columns[0].type == STRING:
            try:
                return Columns(arrays=[data.cast(pa.string())])
            except pa.ArrowException:
                pass  # some of it is no text: the slow way tells which
        return read_rows(data.to_pylist(), self._columns, self._read_row)

    def write(self, columns: Sequence[Sequence[Any]], count: int) -> list[bytes | None]:
        encode = self._serde.encode
        try:
            return [None if value is None else encode(value) for value in columns[0]]
        except SerializationError as error:
            raise BadValueError(f"column {self._columns[0].name}: {error}") from error


def check_kafka_columns(columns: Sequence[ColumnSchema]) -> None:
    """Raises SemanticError when the KAFKA format cannot hold them."""
    if len(columns) != 1:
        named = ", ".join(column.name for column in columns) or "none"
        raise SemanticError(
            f"The KAFKA format holds exactly one column, but there are {len(columns)} ({named}).",
            hint="Use another format, such as JSON.",
        )
    if str(columns[0].type) not in _SERDES:
        raise SemanticError(
            f"The KAFKA format does not hold {columns[0].type}, the type of column {columns[0].name}.",
            hint=f"It holds {', '.join(_SERDES)}; use another format, such as JSON.",
        )


def _row_reader(name: str, decode: Callable[[bytes], Any]) -> Callable[[bytes], tuple[Any]]:
    def read_row(data: bytes) -> tuple[Any]:
        try:
            return (decode(data),)
        except SerializationError as error:
            raise BadValueError(f"column {name}: {error}") from error

    return read_row
