"""The records of `__cluster_metadata` and `__remote_log_metadata` as Kafka's own dump tool shows them.

Both have no keys, and one frame: three unsigned varints (the frame's version, the kind of the record, the version of
the kind's layout), then the message and nothing behind it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from penstock.cli.kafka import record_json
from penstock.cli.kafka.cluster_metadata_layouts import KINDS, MetadataKind
from penstock.cli.kafka.remote_log_layouts import KINDS as REMOTE_KINDS
from penstock.cli.kafka.remote_log_layouts import text_of
from penstock.protocol.codec import reader
from penstock.protocol.errors import DecodeError
from penstock.protocol.primitives import read_varint
from penstock.protocol.schema import Message

_FRAME_VERSION: Final = 1


def decode_cluster_metadata_record(offset: int, _key: bytes | None, value: bytes | None) -> tuple[None, str]:
    """A record of the controllers' log, or of a snapshot of it."""
    try:
        kind, version, message = _read(KINDS, value)
    except DecodeError as error:
        return None, f"Error at {offset}, skipping. {error}"
    shown = {"type": kind.name, "version": version, "data": record_json.fields(message, version)}
    return None, record_json.dumps(shown)


def decode_remote_log_metadata_record(offset: int, _key: bytes | None, value: bytes | None) -> tuple[None, str]:
    """A record of tiered storage (KIP-405)."""
    try:
        return None, text_of(_read(REMOTE_KINDS, value)[2])
    except DecodeError as error:
        return None, f"Error at offset {offset}, skipping. {error}"


def _read(kinds: Mapping[int, MetadataKind], value: bytes | None) -> tuple[MetadataKind, int, Message]:
    data = value or b""
    frame_version, position = _number(data, 0, "frame's version")
    if frame_version != _FRAME_VERSION:
        raise DecodeError(f"version {frame_version} of the frame is unknown; only {_FRAME_VERSION} is known")
    number, position = _number(data, position, "kind")
    version, position = _number(data, position, "version")
    kind = kinds.get(number)
    if kind is None:
        raise DecodeError(f"kind {number} of records is unknown")
    if version > kind.version_max:
        raise DecodeError(f"version {version} of {kind.name} is unknown; the newest known is {kind.version_max}")
    message, end = reader(kind.layout, version, True)(data, position, len(data))
    if end < len(data):
        raise DecodeError(f"{len(data) - end} bytes are left behind {kind.name}")
    return kind, version, message


def _number(data: bytes, position: int, what: str) -> tuple[int, int]:
    try:
        first = data[position]
        return (first, position + 1) if first < 128 else read_varint(data, position + 1, first)
    except IndexError:
        raise DecodeError(f"the record ends before its {what}") from None
