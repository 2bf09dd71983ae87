"""`partition.metadata`: the id of the topic that a partition directory belongs to (KIP-516).

A directory may lack the file: Kafka before 2.8 wrote none. A name alone cannot tell a topic from its successor with
the same name, which is why a directory whose id differs from the topic's must never be opened for it.
"""

from __future__ import annotations

import logging
from uuid import UUID

from penstock.base.ports import Files
from penstock.base.types import ZERO_UUID, uuid_from_text, uuid_to_text

log = logging.getLogger(__name__)

FILE_NAME = "partition.metadata"
_VERSION = 0


class MalformedPartitionMetadataError(Exception):
    """The file is there but does not say which topic the directory belongs to."""


def encode_partition_metadata(topic_id: UUID) -> bytes:
    return f"version: {_VERSION}\ntopic_id: {uuid_to_text(topic_id)}".encode()


def decode_partition_metadata(data: bytes) -> UUID:
    try:
        lines = [line.split() for line in data.decode().splitlines()]
    except UnicodeDecodeError as error:
        raise MalformedPartitionMetadataError("not text") from error
    if len(lines) < 2 or len(lines[0]) != 2 or len(lines[1]) != 2:
        raise MalformedPartitionMetadataError(f"malformed content {data[:80]!r}")
    # Any later version is read as well, so that a directory can go back to an older release.
    if not (lines[0][1].isascii() and lines[0][1].isdigit()):
        raise MalformedPartitionMetadataError(f"unrecognised version {lines[0][1][:40]!r}")
    try:
        topic_id = uuid_from_text(lines[1][1])
    except ValueError as error:
        raise MalformedPartitionMetadataError(str(error)) from error
    if topic_id == ZERO_UUID:
        raise MalformedPartitionMetadataError("the topic id is zero")
    return topic_id


def read_partition_metadata(directory: str, files: Files) -> UUID | None:
    """The topic id of a partition directory; None when there is no file, or with a warning when it is malformed."""
    path = f"{directory}/{FILE_NAME}"
    try:
        return decode_partition_metadata(files.read(path))
    except FileNotFoundError:
        return None
    except MalformedPartitionMetadataError as error:
        log.warning("%s is ignored: %s", path, error)
        return None


def write_partition_metadata(directory: str, topic_id: UUID, files: Files) -> None:
    files.write_atomically(f"{directory}/{FILE_NAME}", encode_partition_metadata(topic_id))
