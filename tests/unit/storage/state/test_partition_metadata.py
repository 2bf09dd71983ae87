"""The topic id beside the segments."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.base.system import SystemFiles
from penstock.storage.directories.partition_metadata import (
    FILE_NAME,
    MalformedPartitionMetadataError,
    decode_partition_metadata,
    encode_partition_metadata,
    read_partition_metadata,
    write_partition_metadata,
)

TOPIC_ID = UUID("b8a3ee2c-3c0f-4bd8-9a0b-9d8f20ab4c11")


def test_the_bytes_are_kafkas() -> None:
    assert encode_partition_metadata(TOPIC_ID) == b"version: 0\ntopic_id: uKPuLDwPS9iaC52PIKtMEQ"
    assert decode_partition_metadata(b"version: 1\ntopic_id: uKPuLDwPS9iaC52PIKtMEQ\n") == TOPIC_ID


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"version: 0",
        b"version: x\ntopic_id: uKPuLDwPS9iaC52PIKtMEQ",
        b"version: 0\ntopic_id: short",
        b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA",
        b"version: -1\ntopic_id: uKPuLDwPS9iaC52PIKtMEQ",
        b"\xff\xfe",
    ],
)
def test_anything_else_is_malformed(data: bytes) -> None:
    with pytest.raises(MalformedPartitionMetadataError):
        decode_partition_metadata(data)


@given(st.binary(max_size=60))
def test_garbage_never_escapes(data: bytes) -> None:
    try:
        decode_partition_metadata(data)
    except MalformedPartitionMetadataError:
        pass


def test_the_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    files = SystemFiles()
    assert read_partition_metadata(str(tmp_path), files) is None
    write_partition_metadata(str(tmp_path), TOPIC_ID, files)
    assert read_partition_metadata(str(tmp_path), files) == TOPIC_ID
    (tmp_path / FILE_NAME).write_bytes(b"torn")
    assert read_partition_metadata(str(tmp_path), files) is None
    assert FILE_NAME in caplog.text
