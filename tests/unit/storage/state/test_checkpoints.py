"""Text checkpoints: Kafka's form, and what happens with files that break it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.base.system import SystemFiles
from penstock.base.types import TopicPartition
from penstock.storage.checkpoints import (
    RECOVERY_POINTS,
    MalformedCheckpointError,
    OffsetCheckpoint,
    decode_epochs,
    decode_offsets,
    encode_epochs,
    encode_offsets,
)

OFFSETS = {TopicPartition("orders", 0): 17, TopicPartition("a.b-c", 12): 0}


def test_offsets_are_written_as_kafka_writes_them() -> None:
    assert encode_offsets(OFFSETS) == b"0\n2\norders 0 17\na.b-c 12 0\n"


def test_epochs_are_written_as_kafka_writes_them() -> None:
    assert encode_epochs([(0, 0), (3, 120)]) == b"0\n2\n0 0\n3 120\n"


@given(
    st.dictionaries(
        st.tuples(st.from_regex(r"[a-zA-Z0-9._-]{1,20}", fullmatch=True), st.integers(0, 999)),
        st.integers(0, 2**63 - 1),
    )
)
def test_offsets_round_trip(raw: dict[tuple[str, int], int]) -> None:
    offsets = {TopicPartition(*key): value for key, value in raw.items()}
    assert decode_offsets(encode_offsets(offsets)) == offsets


@pytest.mark.parametrize("data", [b"", b"0\n", b"0\n0\n", b"0\n0"])
def test_an_unfilled_file_is_an_empty_checkpoint(data: bytes) -> None:
    assert decode_offsets(data) == {}


@pytest.mark.parametrize(
    "data",
    [
        b"1\n0\n",
        b"x\n0\n",
        b"0\nx\n",
        b"0\n2\na 0 1\n",
        b"0\n1\na 0 1\nb 0 1\n",
        b"0\n1\na 0\n",
        b"0\n1\na 0 1 2\n",
        b"0\n1\na zero 1\n",
        b"0\n1\na 0 99999999999999999999\n",
        b"0\n1\na 0 \xff\n",
        b"0\n1\n\n",
        b"\0\0\0\0\0\0\0\0",
    ],
)
def test_a_broken_form_is_malformed(data: bytes) -> None:
    with pytest.raises(MalformedCheckpointError):
        decode_offsets(data)


@given(st.binary(max_size=60))
def test_garbage_is_read_or_malformed(data: bytes) -> None:
    for decode in (decode_offsets, decode_epochs):
        try:
            decode(data)
        except MalformedCheckpointError:
            pass


def test_missing_and_malformed_files_hold_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    checkpoint = OffsetCheckpoint(str(tmp_path), RECOVERY_POINTS, SystemFiles())
    assert checkpoint.read() == {}
    assert not caplog.records
    checkpoint.write(OFFSETS)
    assert checkpoint.read() == OFFSETS
    (tmp_path / RECOVERY_POINTS).write_bytes(b"0\n7\ntorn")
    assert checkpoint.read() == {}
    assert RECOVERY_POINTS in caplog.text
