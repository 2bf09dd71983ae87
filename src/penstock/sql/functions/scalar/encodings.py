"""Bytes, text that stands for bytes, and numbers in bytes."""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from penstock.sql.expressions.spark_types import literal_value
from penstock.sql.functions.model import ScalarFunction
from penstock.sql.functions.scalar.declaring import scalar
from penstock.sql.types import SqlType

_NAMES = "hex, utf8, ascii and base64"


def _decode_hex(text: str) -> bytes:
    try:
        return binascii.unhexlify(text)
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"'{text}' is not hexadecimal: {error}") from error


def _decode_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"'{text}' is not base64: {error}") from error


_TO_BYTES: dict[str, Callable[[str], bytes]] = {
    "hex": _decode_hex,
    "utf8": str.encode,
    "ascii": lambda text: text.encode("ascii", "replace"),
    "base64": _decode_base64,
}
_FROM_BYTES: dict[str, Callable[[bytes], str]] = {
    "hex": lambda data: data.hex().upper(),
    "utf8": lambda data: data.decode("utf-8", "replace"),
    "ascii": lambda data: data.decode("ascii", "replace"),
    "base64": lambda data: base64.b64encode(data).decode(),
}


def _named(table: dict[str, Any], encoding: str) -> Any:
    if encoding.lower() not in table:
        raise ValueError(f"Unknown encoding type '{encoding}'. Supported are {_NAMES}.")
    return table[encoding.lower()]


def _to_bytes(text: str, encoding: str) -> bytes:
    result: bytes = _named(_TO_BYTES, encoding)(text)
    return result


def _from_bytes(data: bytes, encoding: str) -> str:
    result: str = _named(_FROM_BYTES, encoding)(data)
    return result


_SPARK_TO_BYTES = {"utf8": "cast({0} as binary)"}
_SPARK_FROM_BYTES = {
    "hex": "hex({0})",
    "utf8": "make_valid_utf8(cast({0} as string))",
    # Spark breaks the line after 76 characters.
    "base64": "replace(base64({0}), '\\r\\n', '')",
}


def _native(forms: dict[str, str]) -> Callable[[Sequence[str], Sequence[SqlType]], str | None]:
    def form(arguments: Sequence[str], _types: Sequence[SqlType]) -> str | None:
        template = forms.get((literal_value(arguments[1]) or "").lower())
        return None if template is None else template.format(arguments[0])

    return form


def _stripped_hex(text: str) -> str:
    """`0x12` and `X'12'` are hexadecimal too; after `0x` a digit may be missing in front."""
    if text.lower().startswith("0x"):
        return "0" * (len(text) % 2) + text[2:]
    return text[2:-1] if text.lower().startswith("x'") and text.endswith("'") else text


def _encode(text: str, source: str, target: str) -> str:
    if source.lower() == target.lower():
        raise ValueError(f"'{source}' is both encodings. Supported are {_NAMES}.")
    data = _to_bytes(_stripped_hex(text) if source.lower() == "hex" else text, source)
    result = _from_bytes(data, target)
    return result.lower() if target.lower() == "hex" else result


_ORDERS = {"BIG_ENDIAN": ">", "LITTLE_ENDIAN": "<"}


def _number(code: str) -> Callable[..., Any]:
    """Reads a number of the kind that `struct` calls by this letter."""

    def read(data: bytes, order: str = "BIG_ENDIAN") -> Any:
        if order.upper() not in _ORDERS:
            raise ValueError(f"Byte order must be BIG_ENDIAN or LITTLE_ENDIAN, not '{order}'.")
        if len(data) != struct.calcsize(code):
            raise ValueError(f"Number of bytes must be equal to {struct.calcsize(code)}, but found {len(data)}.")
        return struct.unpack(_ORDERS[order.upper()] + code, data)[0]

    return read


def _from_bytes_function(name: str, code: str, result: str) -> ScalarFunction:
    return scalar(
        "CONVERSIONS",
        name,
        f"The {result} in {struct.calcsize(code)} bytes; null for any other number of bytes. The order is 'BIG_ENDIAN' "
        "unless it is 'LITTLE_ENDIAN'.",
        f"bytes BYTES -> {result}",
        f"bytes BYTES, byteOrder STRING -> {result}",
        python=_number(code),
    )


_string = partial(scalar, "STRING")

FUNCTIONS = (
    _from_bytes_function("BIGINT_FROM_BYTES", "q", "BIGINT"),
    _from_bytes_function("DOUBLE_FROM_BYTES", "d", "DOUBLE"),
    _from_bytes_function("INT_FROM_BYTES", "i", "INTEGER"),
    _string(
        "ENCODE",
        f"Text in one encoding turned into another. Encodings are {_NAMES}. Hexadecimal text may be written 0x12 or "
        "X'12'.",
        "text STRING, inputEncoding STRING, outputEncoding STRING -> STRING",
        python=_encode,
    ),
    _string(
        "FROM_BYTES",
        f"Bytes as text in this encoding: {_NAMES}.",
        "bytes BYTES, encoding STRING -> STRING",
        python=_from_bytes,
        spark=_native(_SPARK_FROM_BYTES),
    ),
    _string(
        "TO_BYTES",
        f"The bytes that text in this encoding stands for: {_NAMES}.",
        "text STRING, encoding STRING -> BYTES",
        python=_to_bytes,
        spark=_native(_SPARK_TO_BYTES),
    ),
)
