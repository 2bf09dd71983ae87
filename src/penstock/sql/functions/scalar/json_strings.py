"""Text that holds JSON. Numbers keep their digits: 1.50 stays 1.50."""

from __future__ import annotations

import base64
import datetime
import decimal
import functools
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from penstock.sql.expressions.text_form import decimal_text, double_text, time_text, timestamp_text
from penstock.sql.functions.scalar.declaring import scalar

_json = partial(scalar, "JSON")

_decoder = msgspec.json.Decoder(float_hook=decimal.Decimal)


def parse(text: str) -> Any:
    try:
        return _decoder.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(f"Invalid JSON format: {text} ({error})") from error


def write(value: Any) -> str:
    """Without blanks."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{_quoted(str(name))}:{write(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(write, value)) + "]"
    return _WRITERS[type(value)](value)


def _quoted(text: str) -> str:
    return msgspec.json.encode(text).decode()


_WRITERS: dict[type, Callable[[Any], str]] = {
    type(None): lambda _value: "null",
    bool: lambda value: "true" if value else "false",
    int: str,
    float: double_text,
    decimal.Decimal: decimal_text,
    str: _quoted,
    bytes: lambda value: _quoted(base64.b64encode(value).decode()),
    datetime.datetime: lambda value: _quoted(timestamp_text(value)),
    datetime.date: lambda value: _quoted(value.isoformat()),
    datetime.time: lambda value: _quoted(time_text(value)),
}


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else write(value)


_STEP = re.compile(r"\.\"([^\"]*)\"|\.([^.\[]+)|\[\s*'([^']*)'\s*\]|\[\s*\"([^\"]*)\"\s*\]|\[\s*(\d+)\s*\]")


@functools.lru_cache(maxsize=1024)
def _path(text: str) -> tuple[str, ...]:
    """`$.log.cloud`, `$.list[0]`, `$['a b']` as steps."""
    steps: list[str] = []
    place = 1
    while place < len(text):
        step = _STEP.match(text, place)
        if step is None:
            raise ValueError(f"Invalid JSON path: {text}")
        steps.append(next(part for part in step.groups() if part is not None))
        place = step.end()
    if not text.startswith("$"):
        raise ValueError(f"Invalid JSON path: {text}")
    return tuple(steps)


_ABSENT = object()


def _extract(text: str, path: str) -> str | None:
    value = parse(text)
    for step in _path(path):
        value = _child(value, step)
        if value is _ABSENT:
            return None
    return _as_text(value)


def _child(value: Any, step: str) -> Any:
    if isinstance(value, list):
        return value[int(step)] if step.isdecimal() and int(step) < len(value) else _ABSENT
    return value.get(step, _ABSENT) if isinstance(value, dict) else _ABSENT


def _is_json(text: str | None) -> bool:
    try:
        parse(text or "")
    except ValueError:
        return False
    return True


def _array_contains(text: str | None, wanted: Any) -> bool:
    """Numbers match numbers of their kind only: 1 is not 1.0, '1' is neither."""
    try:
        values = parse(text or "")
    except ValueError:
        return False
    return isinstance(values, list) and any(_same(value, wanted) for value in values)


def _same(value: Any, wanted: Any) -> bool:
    if isinstance(value, decimal.Decimal) and isinstance(wanted, float):
        return float(value) == wanted
    return type(value) is type(wanted) and bool(value == wanted)


def _array(text: str) -> list[Any] | None:
    values = parse(text)
    return values if isinstance(values, list) else None


def _object(text: str) -> dict[str, Any] | None:
    value = parse(text)
    return value if isinstance(value, dict) else None


def _length(text: str) -> int | None:
    values = _array(text)
    return None if values is None else len(values)


def _items(text: str) -> list[str] | None:
    values = _array(text)
    return None if values is None else [write(value) for value in values]


def _keys(text: str) -> list[str] | None:
    found = _object(text)
    return None if found is None else list(found)


def _records(text: str) -> dict[str, str] | None:
    found = _object(text)
    return None if found is None else {name: _as_text(value) for name, value in found.items()}


def _concat(*texts: str) -> str:
    values = [parse(text) for text in texts]
    if all(isinstance(value, dict) for value in values):
        return write(functools.reduce(lambda one, other: {**one, **other}, values))
    if len(values) == 1:
        return write(values[0])
    lists = (value if isinstance(value, list) else [value] for value in values)
    return write([each for items in lists for each in items])


def _sorted_names(value: Any) -> Any:
    """Names in order, as text is compared."""
    if isinstance(value, dict):
        return {name: _sorted_names(value[name]) for name in sorted(value, key=str)}
    return [_sorted_names(each) for each in value] if isinstance(value, list) else value


FUNCTIONS = (
    _json(
        "EXTRACTJSONFIELD",
        "The value at this path in JSON text, as text; null when there is none. Paths are such as '$.log.cloud', "
        "'$.list[0]', '$.list.0', '$[''a name'']'.",
        "json STRING, path STRING -> STRING",
        python=_extract,
    ),
    _json(
        "IS_JSON_STRING",
        "Whether the text is JSON. False for null.",
        "json STRING -> BOOLEAN",
        python=_is_json,
        strict=False,
    ),
    _json(
        "JSON_ARRAY_CONTAINS",
        "Whether the JSON array has this value. False when the text is no JSON array.",
        "json STRING, value ANY -> BOOLEAN",
        python=_array_contains,
        strict=False,
    ),
    _json(
        "JSON_ARRAY_LENGTH",
        "How many elements the JSON array has; null when the text is no JSON array.",
        "json STRING -> INTEGER",
        python=_length,
        spark="json_array_length({0})",
    ),
    _json(
        "JSON_CONCAT",
        "JSON values joined: objects become one, in which the last of equal names counts; else all become one array. "
        "Null when one is null or no JSON.",
        "json STRING, others STRING... -> STRING",
        python=_concat,
    ),
    _json(
        "JSON_ITEMS",
        "The elements of a JSON array, each as JSON text; null when the text is no JSON array.",
        "json STRING -> ARRAY<STRING>",
        python=_items,
    ),
    _json(
        "JSON_KEYS",
        "The names in a JSON object; null when the text is no JSON object.",
        "json STRING -> ARRAY<STRING>",
        python=_keys,
        spark="json_object_keys({0})",
    ),
    _json(
        "JSON_RECORDS",
        "A map of the names and values in a JSON object, the values as text; null when the text is no JSON object.",
        "json STRING -> MAP<STRING, STRING>",
        python=_records,
    ),
    _json(
        "TO_JSON_STRING",
        "The value as JSON text. Names are in alphabetical order; dates and times are text, bytes base64.",
        "value ANY -> STRING",
        python=lambda value: write(_sorted_names(value)),
        strict=False,
    ),
)
