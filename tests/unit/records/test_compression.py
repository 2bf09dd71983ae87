"""Codecs: round trips, the framings that clients really send, and data that unfolds too far."""

from __future__ import annotations

import gzip
import struct
import tracemalloc

import cramjam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka import codec as kafka_python  # type: ignore[import-untyped]

from penstock.base.errors import ErrorCode, KafkaError
from penstock.records.compression import (
    Codec,
    DecompressedTooLarge,
    DecompressionFailed,
    compress,
    decompress,
    lz4_frame_defect,
)

MIB = 1 << 20
REAL_CODECS = [codec for codec in Codec if codec is not Codec.NONE]
payloads = st.one_of(
    st.binary(max_size=2000),
    st.builds(lambda unit, times: unit * times, st.binary(min_size=1, max_size=50), st.integers(1, 4000)),
)


@pytest.mark.parametrize("codec", list(Codec))
@settings(deadline=None, max_examples=50)
@given(data=payloads)
def test_round_trip(codec: Codec, data: bytes) -> None:
    packed = compress(codec, data)
    assert bytes(decompress(codec, packed, max_bytes=len(data))) == data
    assert bytes(decompress(codec, memoryview(packed), max_bytes=MIB)) == data
    assert compress(codec, memoryview(data)) == packed


@pytest.mark.parametrize(("codec", "level"), [(Codec.GZIP, 1), (Codec.GZIP, 9), (Codec.GZIP, -1), (Codec.LZ4, 1)])
@pytest.mark.parametrize("size", [0, 100_000])
def test_levels(codec: Codec, level: int, size: int) -> None:
    data = bytes(range(256)) * (size // 256)
    assert bytes(decompress(codec, compress(codec, data, level), max_bytes=MIB)) == data


@pytest.mark.parametrize(
    ("codec", "levels"), [(Codec.GZIP, range(1, 10)), (Codec.LZ4, range(1, 18)), (Codec.ZSTD, [-131072, -5, 1, 3, 22])]
)
def test_every_level_that_the_configuration_allows(codec: Codec, levels: list[int]) -> None:
    data = b"some regular text, " * 500
    for level in levels:
        assert bytes(decompress(codec, compress(codec, data, level), max_bytes=MIB)) == data


@pytest.mark.parametrize("codec", REAL_CODECS)
def test_a_bomb_is_refused_and_does_not_fill_the_memory(codec: Codec) -> None:
    packed = compress(codec, bytes(64 * MIB))
    tracemalloc.start()
    with pytest.raises(DecompressedTooLarge):
        decompress(codec, packed, max_bytes=4 * MIB)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10 * MIB


@pytest.mark.parametrize("codec", REAL_CODECS)
def test_the_bound_is_exact(codec: Codec) -> None:
    data = b"abcdefgh" * 50_000
    packed = compress(codec, data)
    assert len(decompress(codec, packed, max_bytes=len(data))) == len(data)
    with pytest.raises(DecompressedTooLarge):
        decompress(codec, packed, max_bytes=len(data) - 1)
    with pytest.raises(DecompressedTooLarge):
        decompress(codec, packed, max_bytes=0)


def test_plain_data_is_bounded_too() -> None:
    with pytest.raises(DecompressedTooLarge):
        decompress(Codec.NONE, b"xxx", max_bytes=2)


@pytest.mark.parametrize("codec", REAL_CODECS)
@settings(deadline=None, max_examples=150)
@given(data=st.binary(max_size=80))
def test_noise_fails_cleanly(codec: Codec, data: bytes) -> None:
    try:
        assert len(decompress(codec, data, max_bytes=MIB)) <= MIB
    except (DecompressionFailed, DecompressedTooLarge):
        pass


@pytest.mark.parametrize("codec", REAL_CODECS)
@settings(deadline=None, max_examples=150)
@given(position=st.integers(0, 10_000), byte=st.integers(0, 255), cut=st.integers(0, 40))
def test_damaged_data_fails_cleanly(codec: Codec, position: int, byte: int, cut: int) -> None:
    packed = bytearray(compress(codec, b"the quick brown fox " * 100))
    packed[position % len(packed)] = byte
    try:
        assert len(decompress(codec, packed[: len(packed) - cut], max_bytes=MIB)) <= MIB
    except (DecompressionFailed, DecompressedTooLarge):
        pass


def test_a_lying_size_hint_costs_nothing() -> None:
    packed = gzip.compress(b"small")[:-4] + struct.pack("<I", 2**31)
    tracemalloc.start()
    with pytest.raises(DecompressionFailed):
        decompress(Codec.GZIP, packed, max_bytes=64 * MIB)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < MIB


def test_gzip_of_the_standard_library_and_of_several_members() -> None:
    packed = gzip.compress(b"one ") + gzip.compress(b"two")
    assert bytes(decompress(Codec.GZIP, packed, max_bytes=MIB)) == b"one two"


class TestSnappy:
    DATA = b"a line that repeats itself, " * 5000

    def test_raw_as_librdkafka_sends_it(self) -> None:
        packed = bytes(cramjam.snappy.compress_raw(self.DATA))
        assert bytes(decompress(Codec.SNAPPY, packed, max_bytes=MIB)) == self.DATA

    def test_ours_is_xerial_framed_in_blocks_of_32_kib(self) -> None:
        packed = compress(Codec.SNAPPY, self.DATA)
        assert packed[:16] == b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"
        (first,) = struct.unpack_from(">i", packed, 16)
        assert cramjam.snappy.decompress_raw_len(packed[20 : 20 + first]) == 32 * 1024

    def test_a_repeated_stream_header_is_skipped(self) -> None:
        packed = compress(Codec.SNAPPY, b"one ") + compress(Codec.SNAPPY, b"two")
        assert bytes(decompress(Codec.SNAPPY, packed, max_bytes=MIB)) == b"one two"

    @pytest.mark.parametrize("rest", [b"\x00", b"\x00\x00\x00", b"\x00\x00\x00\x09abc", struct.pack(">i", -2)])
    def test_a_broken_frame(self, rest: bytes) -> None:
        with pytest.raises(DecompressionFailed):
            decompress(Codec.SNAPPY, compress(Codec.SNAPPY, b"x") + rest, max_bytes=MIB)

    def test_a_block_that_claims_gigabytes(self) -> None:
        with pytest.raises(DecompressedTooLarge):
            decompress(Codec.SNAPPY, b"\xff\xff\xff\xff\x0f", max_bytes=MIB)


class TestLz4:
    DATA = b"a line that repeats itself, " * 10_000

    def test_ours_has_independent_blocks(self) -> None:
        packed = compress(Codec.LZ4, self.DATA)
        assert packed[:4] == b"\x04\x22\x4d\x18"
        assert packed[4] & 0x20
        assert lz4_frame_defect(packed) is None
        assert lz4_frame_defect(compress(Codec.LZ4, b"")) is None

    def test_linked_blocks_can_be_read_but_are_recognised(self) -> None:
        packed = bytes(cramjam.lz4.compress(self.DATA))
        assert bytes(decompress(Codec.LZ4, packed, max_bytes=MIB)) == self.DATA
        assert "linked" in (lz4_frame_defect(packed) or "")

    def test_what_java_would_not_see(self) -> None:
        packed = compress(Codec.LZ4, self.DATA)
        assert "follows" in (lz4_frame_defect(packed + packed) or "")
        assert "follows" in (lz4_frame_defect(packed + b"x") or "")
        assert "cut off" in (lz4_frame_defect(packed[:-1]) or "")
        assert "cut off" in (lz4_frame_defect(packed[:7]) or "")
        assert "begin" in (lz4_frame_defect(b"") or "")

    def test_checksums_and_content_size_are_stepped_over(self) -> None:
        compressor = cramjam.lz4.Compressor(content_checksum=True, block_linked=False)
        compressor.compress(self.DATA)
        packed = bytes(compressor.finish())
        assert packed[4] & 0x04
        assert lz4_frame_defect(packed) is None


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_kafka_python_reads_ours_and_we_read_its(codec: Codec) -> None:
    name = codec.config_name
    if not getattr(kafka_python, f"has_{name}")():
        pytest.skip(f"kafka-python has no {name} here: install its {name} extra")
    data = b"key=value;" * 20_000
    assert getattr(kafka_python, f"{name}_decode")(compress(codec, data)) == data
    assert bytes(decompress(codec, getattr(kafka_python, f"{name}_encode")(data), max_bytes=MIB)) == data


def test_names() -> None:
    assert [codec.config_name for codec in Codec] == ["none", "gzip", "snappy", "lz4", "zstd"]
    assert Codec.from_name("uncompressed") is Codec.NONE
    assert Codec.from_name("zstd") is Codec.ZSTD
    with pytest.raises(KafkaError) as caught:
        Codec.from_name("brotli")
    assert caught.value.code is ErrorCode.INVALID_CONFIG


def test_lz4_is_fast_unless_a_level_is_chosen() -> None:
    data = b"".join(b'{"user": %d}' % (index * 7919) for index in range(1000))
    fast = compress(Codec.LZ4, data)
    assert compress(Codec.LZ4, data, 9) == fast
    assert len(compress(Codec.LZ4, data, 10)) < len(fast)
