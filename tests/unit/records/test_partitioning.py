"""Keys go where Java's client sends them, one by one and in bulk."""

from __future__ import annotations

from types import SimpleNamespace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.records.strategies import binary_column, per_kernel

JAVA_HASHES = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}
optional_keys = st.lists(st.none() | st.binary(max_size=20), max_size=50)


@pytest.mark.parametrize("key", JAVA_HASHES)
def test_murmur2_is_javas(client_kernel: SimpleNamespace, key: bytes) -> None:
    assert client_kernel.murmur2(key) == JAVA_HASHES[key]
    assert client_kernel.murmur2(bytearray(key)) == JAVA_HASHES[key]
    assert client_kernel.partition_for_key(key, 10) == (JAVA_HASHES[key] & 0x7FFFFFFF) % 10


@per_kernel
@given(key=st.binary(max_size=64))
def test_both_hashes_agree(both_kernels: tuple[SimpleNamespace, SimpleNamespace], key: bytes) -> None:
    pure, compiled = both_kernels
    assert pure.murmur2(key) == compiled.murmur2(key)


@per_kernel
@given(keys=optional_keys, count=st.integers(1, 2**31 - 1), cut=st.integers(0, 60))
def test_bulk_is_one_by_one(client_kernel: SimpleNamespace, keys: list[bytes | None], count: int, cut: int) -> None:
    expected = [-1 if key is None else client_kernel.partition_for_key(key, count) for key in keys]
    assert client_kernel.partition_keys(keys, count).tolist() == expected
    assert client_kernel.partition_keys(tuple(keys), count).tolist() == expected
    column = binary_column(pa.array(keys, pa.binary())[cut:])
    assert client_kernel.partition_column(column, count).tolist() == expected[cut:]


@per_kernel
@given(partitions=st.lists(st.integers(-1, 6), max_size=60))
def test_rows_are_grouped_in_their_order(client_kernel: SimpleNamespace, partitions: list[int]) -> None:
    rows, bounds = client_kernel.group_rows(pa.array(partitions, pa.int32()).buffers()[1], 7)
    assert len(bounds) == 9
    # Arrow pads its buffers to 64 bytes in some versions; what is asked for here is the exact size.
    rows, bounds = client_kernel.group_rows(b"".join(p.to_bytes(4, "little", signed=True) for p in partitions), 7)
    assert bounds[0] == 0
    assert bounds[-1] == len(partitions)
    for slot in range(8):
        expected = [row for row, partition in enumerate(partitions) if partition == (slot if slot < 7 else -1)]
        assert rows[bounds[slot] : bounds[slot + 1]].tolist() == expected


def test_what_cannot_be_partitioned(client_kernel: SimpleNamespace) -> None:
    for count in (0, -1, 2**31):
        for call in (
            lambda count=count: client_kernel.partition_for_key(b"k", count),
            lambda count=count: client_kernel.partition_keys([b"k"], count),
            lambda count=count: client_kernel.group_rows(b"", count),
        ):
            with pytest.raises(ValueError, match="partitions"):
                call()
    for partition in (-2, 3, 2**31 - 1):
        with pytest.raises(ValueError, match="row 0 has the partition"):
            client_kernel.group_rows(partition.to_bytes(4, "little", signed=True), 3)
    with pytest.raises(TypeError):
        client_kernel.group_rows(b"123", 3)
    with pytest.raises(TypeError):
        client_kernel.partition_keys([b"k", "text"], 3)
    with pytest.raises(TypeError):
        client_kernel.murmur2("text")
