"""The console consumer's formatters for Kafka's own topics: a record as one JSON document.

Kafka's OffsetsMessageFormatter and its relatives. The documents are those of the dump tool but for two things: types
and versions are numbers, and what members bring along stays bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final

from penstock.base.errors import KafkaError
from penstock.cli.kafka.internal_records import OFFSETS, SHARES, TRANSACTIONS, Kind, key_fields
from penstock.cli.kafka.record_json import dumps, fields
from penstock.coordinator.records.errors import RecordFormatError
from penstock.coordinator.records.values import decode_value, read_type
from penstock.protocol.errors import DecodeError

FORMATTERS: Final[Mapping[str, Mapping[int, Kind]]] = {
    "OffsetsMessageFormatter": {number: OFFSETS[number] for number in (0, 1)},
    "GroupMetadataMessageFormatter": {number: OFFSETS[number] for number in (2,)},
    "TransactionLogMessageFormatter": TRANSACTIONS,
    "ShareGroupStateMessageFormatter": SHARES,
}
"""By their names without the package: the kinds of records that each shows. It passes over all others."""


class UnreadableError(Exception):
    """A record that is none of its topic's."""


def format_record(formatter: str, key: bytes | None, value: bytes | None) -> str | None:
    """The record as JSON; None if it is not of the formatter's kinds."""
    if key is None:
        return None
    try:
        number = read_type(key)
        kind = FORMATTERS[formatter].get(number)
        if kind is None:
            return None
        shown_key = {"type": number, "data": key_fields(kind, key)}
        return dumps({"key": shown_key, "value": None if value is None else _value(kind, value)})
    except (RecordFormatError, DecodeError, KafkaError) as error:
        raise UnreadableError(f"{formatter} cannot read it: {error}") from None


def _value(kind: Kind, value: bytes) -> dict[str, object]:
    layout = decode_value(kind.value, value, kind.version_max, kind.flexible_from)
    (version,) = struct.unpack_from(">h", value)
    return {"version": version, "data": fields(layout, version)}
