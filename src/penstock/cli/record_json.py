"""Records as lines of JSON, both ways: what `consume -o json` writes, `produce --json` reads.

Bytes that are UTF-8 are text; others stand under the same name with `_base64` behind it, so nothing is lost.

    {"topic":"orders","partition":0,"offset":7,"timestamp":1790000000000,"key":"k","value":"v",
     "headers":[{"name":"trace","value":"1"}]}
"""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from typing import Any

Headers = tuple[tuple[str, bytes | None], ...]


class BadRecord(ValueError):  # noqa: N818 - named for what it is
    """A line that is no record; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputRecord:
    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    partition: int | None = None
    timestamp_ms: int | None = None


def named_bytes(name: str, data: bytes | None) -> dict[str, str | None]:
    if data is None:
        return {name: None}
    try:
        return {name: data.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(data).decode()}


def record_document(record: Any) -> dict[str, Any]:
    """Of a `ConsumerRecord`."""
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        **named_bytes("key", record.key),
        **named_bytes("value", record.value),
        "headers": [{"name": name, **named_bytes("value", value)} for name, value in record.headers],
    }


def parse_record(line: bytes | str) -> InputRecord:
    """A line of JSON. A value that is no text is written as the JSON it is."""
    try:
        found = json.loads(line)
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise BadRecord(f"not valid JSON: {error}") from None
    if not isinstance(found, dict):
        raise BadRecord('not an object: a record is written {"key": "k", "value": "v"}')
    if "value" not in found and "value_base64" not in found:
        raise BadRecord("the record has no value (write null for a tombstone)")
    return InputRecord(
        value=_bytes(found, "value"),
        key=_bytes(found, "key"),
        headers=_headers(found.get("headers")),
        partition=_number(found, "partition"),
        timestamp_ms=_number(found, "timestamp"),
    )


def _bytes(found: dict[str, Any], name: str) -> bytes | None:
    coded = found.get(f"{name}_base64")
    if coded is not None:
        try:
            return base64.b64decode(coded, validate=True)
        except (binascii.Error, TypeError, ValueError):
            raise BadRecord(f"{name}_base64 is not base64") from None
    value = found.get(name)
    if value is None or isinstance(value, str):
        return None if value is None else value.encode()
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _headers(found: Any) -> Headers:
    if found is None:
        return ()
    if isinstance(found, dict):
        found = [{"name": name, "value": value} for name, value in found.items()]
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise BadRecord("headers must be an object, or a list of objects with name and value")
    headers = []
    for each in found:
        if not isinstance(each.get("name"), str):
            raise BadRecord("a header has no name")
        headers.append((each["name"], _bytes(each, "value")))
    return tuple(headers)


def _number(found: dict[str, Any], name: str) -> int | None:
    value = found.get(name)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
        raise BadRecord(f"{name} is {value!r}, not a number from 0")
    return value
