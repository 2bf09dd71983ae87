"""Messages as JSON, in the shape of Kafka's own dump tool."""

from __future__ import annotations

import base64
import json
from typing import Any
from uuid import UUID

from penstock.base.config.text import format_double
from penstock.base.types import uuid_to_text
from penstock.protocol.codegen.source import default_of
from penstock.protocol.schema import Message, wire_fields


def dumps(document: object) -> str:
    """JSON without spaces; numbers with a fraction are written as Java writes them."""
    if isinstance(document, dict):
        return "{" + ",".join(f"{dumps(name)}:{dumps(value)}" for name, value in document.items()) + "}"
    if isinstance(document, list):
        return "[" + ",".join(dumps(each) for each in document) + "]"
    if isinstance(document, float):
        return format_double(document)
    return json.dumps(document, ensure_ascii=False)


def fields(message: Message, version: int) -> dict[str, Any]:
    """The fields that a version has, by Kafka's names; tagged ones only if they say something."""
    found = {}
    for field, wire in wire_fields(type(message)):
        value = getattr(message, field.name)
        if wire.exists_in(version) and (wire.tag is None or value != default_of(field)):
            first, *rest = field.name.split("_")
            found[first + "".join(part.capitalize() for part in rest)] = shown(value, version)
    return found


def shown(value: Any, version: int) -> Any:
    if isinstance(value, Message):
        return fields(value, version)
    if isinstance(value, list):
        return [shown(each, version) for each in value]
    if isinstance(value, UUID):
        return uuid_to_text(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode()
    return value
