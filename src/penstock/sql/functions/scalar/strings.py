"""Text: cutting, joining, searching, padding. Most of it works on BYTES too. Positions count from 1."""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Sequence
from functools import partial
from typing import Any

from penstock.sql.expressions.casting import BLANKS
from penstock.sql.expressions.spark_types import integer_value, literal_value, string_literal, trimmed
from penstock.sql.functions.scalar.declaring import scalar
from penstock.sql.types import BYTES, SqlType

_string = partial(scalar, "STRING")

_SPECIAL = re.compile(r"([\\^$.|?*+()\[\]{}])")
"""What means something in a regular expression, and `_QUOTED` the same with a backslash before it."""
_QUOTED = r"\\\1"


def _concat(*values: Any) -> Any:
    present = [value for value in values if value is not None]
    return (b"" if present and isinstance(present[0], bytes) else "").join(present)


def _spark_concat(arguments: Sequence[str], types: Sequence[SqlType]) -> str:
    if types and types[0] == BYTES:
        return f"concat({', '.join(f'''coalesce({each}, x'')''' for each in arguments)})"
    return f"concat_ws('', {', '.join(arguments)})"


def _concat_with(separator: Any, *values: Any) -> Any:
    return None if separator is None else separator.join(value for value in values if value is not None)


def _spark_concat_with(arguments: Sequence[str], types: Sequence[SqlType]) -> str | None:
    return None if types[0] == BYTES else f"concat_ws({', '.join(arguments)})"


def _character(code: int | str) -> str | None:
    if isinstance(code, int):
        return chr(code) if 0 <= code <= 0x10FFFF else None
    if not re.fullmatch(r"(\\u[0-9a-fA-F]{4})+", code):
        return None
    units = bytes.fromhex(code.replace("\\u", ""))
    return units.decode("utf-16-be")


def _element(position: int | None, *values: str | None) -> str | None:
    return values[position - 1] if position is not None and 1 <= position <= len(values) else None


def _position_among(text: str | None, *values: str | None) -> int:
    return values.index(text) + 1 if text is not None and text in values else 0


def _spark_position_among(arguments: Sequence[str], _types: Sequence[SqlType]) -> str:
    text, *values = arguments
    return f"cast(coalesce(array_position(array({', '.join(values)}), {text}), 0) as int)" if values else "0"


def _capitalized(text: str) -> str:
    """Blanks before the first word go, those between words stay."""
    return "".join(word[0].upper() + word[1:] for word in re.findall(r"\S+\s*", text.lower()))


def _find(text: str | None, part: str | None, position: int = 1, occurrence: int = 1) -> int:
    """A negative position searches backwards from there, counted from the end."""
    if text is None or part is None or not 1 <= abs(position) <= len(text):
        return 0
    if position > 0:
        return _nth_find(text, part, position - 1, occurrence) + 1
    start = _nth_find(text[::-1], part[::-1], -position - 1, occurrence)
    return len(text) - start - len(part) + 1 if start >= 0 else 0


def _nth_find(text: str, part: str, start: int, occurrence: int) -> int:
    place = start - 1
    for _ in range(max(1, occurrence)):
        place = text.find(part, place + 1)
        if place < 0:
            return -1
    return place


def _spark_find(arguments: Sequence[str], _types: Sequence[SqlType]) -> str | None:
    return f"coalesce(instr({arguments[0]}, {arguments[1]}), 0)" if len(arguments) == 2 else None


def _padded(left: bool, value: Any, length: int, padding: Any) -> Any:
    """Too long a value is cut at the end, on whichever side it is padded."""
    if length < 0 or not padding:
        return None
    missing = max(0, length - len(value))
    fill = (padding * (missing // len(padding) + 1))[:missing]
    return (fill + value if left else value + fill)[:length]


def _spark_padded(function: str) -> str:
    return f"case when {{1}} >= 0 and length({{2}}) > 0 then {function}({{0}}, {{1}}, {{2}}) end"


def _spark_replace(arguments: Sequence[str], _types: Sequence[SqlType]) -> str | None:
    """Spark finds no empty text, Java finds it everywhere."""
    return f"replace({', '.join(arguments)})" if literal_value(arguments[1]) else None


def _split(value: Any, delimiter: Any) -> list[Any]:
    if delimiter:
        return list(value.split(delimiter))
    if not value:
        return [value]
    return [value[index : index + 1] for index in range(len(value))]


def _spark_split(arguments: Sequence[str], types: Sequence[SqlType]) -> str | None:
    value, delimiter = arguments
    if types[0] == BYTES:
        return None
    literal = literal_value(delimiter)
    if literal is not None:
        return f"split({value}, {string_literal(_SPECIAL.sub(_QUOTED, literal))})"
    replacement = string_literal("\\\\$1")
    return f"split({value}, regexp_replace({delimiter}, {string_literal(_SPECIAL.pattern)}, {replacement}))"


def _split_to_map(text: str, between_entries: str, in_entry: str) -> dict[str, str] | None:
    if not between_entries or not in_entry or between_entries == in_entry:
        return None
    entries = (entry.split(in_entry) for entry in text.split(between_entries) if in_entry in entry)
    return {entry[0]: entry[1] for entry in entries}


def _substring(value: Any, position: int, length: int | None = None) -> Any:
    """A negative position counts from the end."""
    size = len(value)
    start = max(size + position, 0) if position < 0 else max(min(position - 1, size), 0)
    return value[start:] if length is None else value[start : max(min(start + length, size), start)]


def _spark_substring(arguments: Sequence[str], _types: Sequence[SqlType]) -> str:
    value, position, *length = arguments
    number = integer_value(position)
    start = position
    if number is None or number < 0:
        start = f"case when {position} < 0 then greatest(length({value}) + {position}, 0) + 1 else {position} end"
    return f"substring({', '.join([value, start, *length])})"


def _uuid(*value: bytes) -> str | None:
    if not value:
        return str(uuid.uuid4())
    return str(uuid.UUID(bytes=value[0])) if len(value[0]) == 16 else None


def _spark_uuid(arguments: Sequence[str], _types: Sequence[SqlType]) -> str:
    if not arguments:
        return "uuid()"
    groups = string_literal("(.{8})(.{4})(.{4})(.{4})(.{12})")
    text = f"regexp_replace(lower(hex({arguments[0]})), {groups}, {string_literal('$1-$2-$3-$4-$5')})"
    return f"case when length({arguments[0]}) = 16 then {text} end"


FUNCTIONS = (
    _string(
        "CHR",
        "The character with this Unicode number, given as a number or as text such as '\\u004b'. Null for any other "
        "number or text.",
        "code INTEGER -> STRING",
        "code STRING -> STRING",
        python=_character,
    ),
    _string(
        "CONCAT",
        "The values one after the other. Nulls are left out.",
        "values STRING... -> STRING",
        "values BYTES... -> BYTES",
        python=_concat,
        spark=_spark_concat,
        strict=False,
    ),
    _string(
        "CONCAT_WS",
        "The values one after the other, the separator between them. Nulls are left out; a null separator gives null.",
        "separator STRING, value STRING, others STRING... -> STRING",
        "separator BYTES, value BYTES, others BYTES... -> BYTES",
        python=_concat_with,
        spark=_spark_concat_with,
        strict=False,
    ),
    _string(
        "ELT",
        "The value at this position, the first is 1; null when there is none. See FIELD.",
        "position INTEGER, value STRING, others STRING... -> STRING",
        python=_element,
        spark=lambda arguments, _types: f"elt({', '.join(arguments)})",
        strict=False,
    ),
    _string(
        "FIELD",
        "The position of the text among the values, the first is 1; 0 when it is not there or null. See ELT.",
        "text STRING, values STRING... -> INTEGER",
        python=_position_among,
        spark=_spark_position_among,
        strict=False,
    ),
    _string(
        "INITCAP",
        "Every word with a capital first letter, all other letters small. Words are separated by blanks.",
        "text STRING -> STRING",
        python=_capitalized,
    ),
    _string(
        "INSTR",
        "The position of a part in the text, 0 when it is not there. The search starts at `position`; a negative one "
        "counts from the end and searches backwards. `occurrence` takes the n-th find.",
        "text STRING, part STRING -> INTEGER",
        "text STRING, part STRING, position INTEGER -> INTEGER",
        "text STRING, part STRING, position INTEGER, occurrence INTEGER -> INTEGER",
        python=_find,
        spark=_spark_find,
        strict=False,
    ),
    _string("LCASE", "The text in small letters.", "text STRING -> STRING", python=str.lower, spark="lower({0})"),
    _string(
        "LEN",
        "How many characters or bytes it has.",
        "text STRING -> INTEGER",
        "bytes BYTES -> INTEGER",
        python=len,
        spark="length({0})",
    ),
    _string(
        "LPAD",
        "The value made `length` long: filled from the left with the padding, or cut. Null for a negative length or an "
        "empty padding.",
        "value STRING, length INTEGER, padding STRING -> STRING",
        "value BYTES, length INTEGER, padding BYTES -> BYTES",
        python=partial(_padded, True),
        spark=_spark_padded("lpad"),
    ),
    _string(
        "MD5",
        "The MD5 hash of the text, in hexadecimal digits.",
        "text STRING -> STRING",
        python=lambda text: hashlib.md5(text.encode(), usedforsecurity=False).hexdigest(),
        spark="md5({0})",
    ),
    _string(
        "REPLACE",
        "The text with every `old` in it replaced by `new`.",
        "text STRING, old STRING, new STRING -> STRING",
        python=str.replace,
        spark=_spark_replace,
    ),
    _string(
        "RPAD",
        "The value made `length` long: filled from the right with the padding, or cut. Null for a negative length or "
        "an empty padding.",
        "value STRING, length INTEGER, padding STRING -> STRING",
        "value BYTES, length INTEGER, padding BYTES -> BYTES",
        python=partial(_padded, False),
        spark=_spark_padded("rpad"),
    ),
    _string(
        "SPLIT",
        "An array of the parts between the delimiters; empty parts too. An empty delimiter splits everywhere.",
        "value STRING, delimiter STRING -> ARRAY<STRING>",
        "value BYTES, delimiter BYTES -> ARRAY<BYTES>",
        python=_split,
        spark=_spark_split,
    ),
    _string(
        "SPLIT_TO_MAP",
        "A map from text such as 'a=1;b=2'. Entries without the inner delimiter are left out, of equal keys the last "
        "one counts. Null when a delimiter is empty or both are the same.",
        "text STRING, entryDelimiter STRING, kvDelimiter STRING -> MAP<STRING, STRING>",
        python=_split_to_map,
    ),
    _string(
        "SUBSTRING",
        "The part from this position on, of at most this length. The first position is 1; a negative one counts from "
        "the end.",
        "value STRING, position INTEGER -> STRING",
        "value STRING, position INTEGER, length INTEGER -> STRING",
        "value BYTES, position INTEGER -> BYTES",
        "value BYTES, position INTEGER, length INTEGER -> BYTES",
        python=_substring,
        spark=_spark_substring,
    ),
    _string(
        "TRIM",
        "The text without the blanks at both ends.",
        "text STRING -> STRING",
        python=lambda text: text.strip(BLANKS),
        spark=trimmed("{0}"),
    ),
    _string("UCASE", "The text in capital letters.", "text STRING -> STRING", python=str.upper, spark="upper({0})"),
    _string(
        "UUID",
        "A new random UUID, or the one that 16 bytes stand for.",
        "-> STRING",
        "bytes BYTES -> STRING",
        python=_uuid,
        spark=_spark_uuid,
    ),
)
