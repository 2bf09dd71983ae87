"""DELIMITED: one line of values between delimiters, quoted where they need it. An empty field is null."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow as pa

from penstock.sql.errors import SemanticError
from penstock.sql.expressions.text_form import double_text
from penstock.sql.formats.codec import BadValueError, Columns, read_rows
from penstock.sql.formats.json_values import make_reader
from penstock.sql.formats.python_values import make_json_writer
from penstock.sql.schema import ColumnSchema
from penstock.sql.types import BOOLEAN, DOUBLE, STRING, Decimal, Scalar

_NAMED: Final = {"SPACE": " ", "TAB": "\t"}
_SPACE: Final = " "
_LAST_SPECIAL: Final = "#"


class DelimitedCodec:
    def __init__(self, columns: Sequence[ColumnSchema], delimiter: str) -> None:
        check_delimited_columns(columns)
        self._columns = tuple(columns)
        self._delimiter = _NAMED.get(delimiter, delimiter)
        self._special = re.compile(f'[\r\n"{re.escape(self._delimiter)}]')
        self._readers = [_field_reader(column) for column in columns]
        self._writers = [_field_writer(column) for column in columns]

    def read(self, data: pa.Array) -> Columns:
        return read_rows(data.to_pylist(), self._columns, self._read_row)

    def write(self, columns: Sequence[Sequence[Any]], count: int) -> list[bytes | None]:
        texts = [
            ["" if value is None else self._quoted(write(value), first=index == 0) for value in values]
            for index, (write, values) in enumerate(zip(self._writers, columns, strict=True))
        ]
        rows = zip(*texts, strict=True) if texts else [()] * count
        return [self._delimiter.join(row).encode() for row in rows]

    def _quoted(self, text: str, *, first: bool) -> str:
        """Quotes where ksqlDB writes them, so that lines are the same: more often than a reader would need."""
        if not text:
            return '""' if first else ""
        begins = text[0]
        odd = begins <= _LAST_SPECIAL or (first and not (begins.isascii() and begins.isalnum()))
        if odd or text[-1] <= _SPACE or self._special.search(text):
            doubled = text.replace('"', '""')
            return f'"{doubled}"'
        return text

    def _read_row(self, data: bytes) -> list[Any]:
        fields = self._split(data)
        if len(fields) != len(self._columns):
            raise BadValueError(f"the line has {len(fields)} fields, but {len(self._columns)} columns are declared")
        return [None if text == "" else read(text) for read, text in zip(self._readers, fields, strict=True)]

    def _split(self, data: bytes) -> list[str]:
        try:
            text = data.decode()
            lines = list(csv.reader(io.StringIO(text, newline=""), delimiter=self._delimiter, strict=True))
        except (UnicodeDecodeError, csv.Error) as error:
            raise BadValueError(f"the bytes are no delimited line: {error}") from error
        return lines[0] if lines and lines[0] else [""]


def check_delimited_columns(columns: Sequence[ColumnSchema]) -> None:
    """Raises SemanticError when the DELIMITED format cannot hold them."""
    for column in columns:
        if not isinstance(column.type, Scalar | Decimal):
            raise SemanticError(
                f"The DELIMITED format does not hold {column.type}, the type of column {column.name}.",
                hint="Use another format, such as JSON.",
            )


def _field_reader(column: ColumnSchema) -> Callable[[str], Any]:
    read = _boolean if column.type == BOOLEAN else make_reader(column.type)
    trim = column.type != STRING

    def read_field(text: str) -> Any:
        try:
            return read(text.strip() if trim else text)
        except BadValueError as error:
            raise BadValueError(f"column {column.name}: {error}") from error

    return read_field


def _boolean(text: str) -> bool:
    return text.lower() == "true"


def _field_writer(column: ColumnSchema) -> Callable[[Any], str]:
    convert = double_text if column.type == DOUBLE else make_json_writer(column.type)

    def write(value: Any) -> str:
        plain = value if convert is None else convert(value)
        if isinstance(plain, bool):
            return "true" if plain else "false"
        return format(plain, "f") if isinstance(column.type, Decimal) else str(plain)

    return write
