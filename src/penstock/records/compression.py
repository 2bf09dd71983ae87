"""The codecs of record batches, with an upper bound on what a batch may unfold to.

All codecs come from cramjam. Decompression always writes into a buffer of a known size: the size is guessed from what
the frame says about itself, and grows until the data fits or `max_bytes` is reached, so a small batch can never make
the process allocate more than the caller allowed. What a frame claims is only trusted up to a modest ratio; beyond it
the buffer grows as real output appears.

Two formats need care. Snappy is written in the xerial framing that Java reads and writes, and is read both framed and
raw, because librdkafka sends it raw. LZ4 frames are written with independent blocks, because Java refuses linked ones;
its default level, 9, means the fast method in Java, and only other levels the thorough one, which takes ten times as
long.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from enum import IntEnum

import cramjam

from penstock.base.errors import ErrorCode, KafkaError
from penstock.records.buffers import Buffer


class Codec(IntEnum):
    """Compression types with Kafka's ids; `config_name` is what `compression.type` calls them."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4

    @property
    def config_name(self) -> str:
        return self.name.lower()

    @classmethod
    def from_name(cls, name: str) -> Codec:
        """The codec that `compression.type` names; both `none` and `uncompressed` mean no codec."""
        try:
            return _CODECS_BY_NAME[name]
        except KeyError:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Unknown compression type: {name!r}.") from None


_CODECS_BY_NAME = {codec.config_name: codec for codec in Codec} | {"uncompressed": Codec.NONE}


class DecompressionFailed(Exception):  # noqa: N818 - it reports data, not a fault of the program
    """The compressed bytes are not what their codec requires."""


class DecompressedTooLarge(Exception):  # noqa: N818 - see above
    """The data unfolds to more than the caller allows."""


DECOMPRESSED_SIZE_FIRST_GUESS = 16 * 1024
"""Smallest output buffer to begin with: most batches of small records fit at once."""
_TRUSTED_RATIO = 32
_GROWTH = 4

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_BYTES = 32 * 1024
_XERIAL_MAGIC_AS_SIZE = struct.unpack(">i", _XERIAL_MAGIC[:4])[0]
_INT32 = struct.Struct(">i")
_OUTPUT_TOO_SMALL = "failed to write whole buffer"

_LZ4_MAGIC = b"\x04\x22\x4d\x18"
_LZ4_INDEPENDENT_BLOCKS = 0x20
_LZ4_BLOCK_CHECKSUM = 0x10
_LZ4_CONTENT_SIZE = 0x08
_LZ4_CONTENT_CHECKSUM = 0x04
_LZ4_DICTIONARY_ID = 0x01
_LZ4_BLOCK_SIZE = struct.Struct("<I")
_LZ4_LEVEL_DEFAULT = 9
_LZ4_FAST = 1
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"


def compress(codec: Codec, data: Buffer, level: int | None = None) -> bytes:
    """Compress the records part of a batch. `level` None is the codec's default."""
    match codec:
        case Codec.NONE:
            return bytes(data)
        case Codec.GZIP:
            return bytes(cramjam.gzip.compress(data, level if level is not None and level >= 0 else None))
        case Codec.SNAPPY:
            return _compress_xerial(data)
        case Codec.LZ4:
            level = _LZ4_FAST if level is None or level == _LZ4_LEVEL_DEFAULT else level
            compressor = cramjam.lz4.Compressor(level=level, content_checksum=False, block_linked=False)
            compressor.compress(bytes(data))
            return bytes(compressor.finish())
        case Codec.ZSTD:
            return bytes(cramjam.zstd.compress(data, level))


def decompress(codec: Codec, data: Buffer, *, max_bytes: int) -> Buffer:
    """The plain bytes, never more than `max_bytes` of them.

    Raises `DecompressedTooLarge` beyond that and `DecompressionFailed` when the data is damaged.
    """
    match codec:
        case Codec.NONE:
            if len(data) > max_bytes:
                raise DecompressedTooLarge
            return data
        case Codec.GZIP:
            return _decompress_growing(cramjam.gzip.decompress_into, data, _gzip_size_hint(data), max_bytes)
        case Codec.SNAPPY:
            return _decompress_snappy(data, max_bytes)
        case Codec.LZ4:
            return _decompress_growing(cramjam.lz4.decompress_into, data, _lz4_size_hint(data), max_bytes)
        case Codec.ZSTD:
            return _decompress_growing(cramjam.zstd.decompress_into, data, _zstd_size_hint(data), max_bytes)


def lz4_frame_defect(data: Buffer) -> str | None:
    """Why Java clients could not read LZ4 data that is correct as such, or None when they can.

    They read one frame with independent blocks, and take its end for the end of the data.
    """
    if len(data) < 7 or bytes(data[:4]) != _LZ4_MAGIC:
        return "it does not begin with an LZ4 frame"
    flags = data[4]
    if not flags & _LZ4_INDEPENDENT_BLOCKS:
        return "its blocks are linked, and Java reads only independent ones"
    position = 7 + 8 * bool(flags & _LZ4_CONTENT_SIZE) + 4 * (flags & _LZ4_DICTIONARY_ID)
    checksum_bytes = 4 * bool(flags & _LZ4_BLOCK_CHECKSUM)
    end = len(data)
    while position + 4 <= end:
        size = _LZ4_BLOCK_SIZE.unpack_from(data, position)[0] & 0x7FFFFFFF
        position += 4
        if size == 0:
            position += 4 * bool(flags & _LZ4_CONTENT_CHECKSUM)
            return None if position == end else "something follows its first frame"
        position += size + checksum_bytes
    return "it is cut off"


def _decompress_growing(
    decompress_into: Callable[[Buffer, bytearray], int], data: Buffer, hint: int, max_bytes: int
) -> Buffer:
    # A hint is the sender's word: it may save a second attempt, but it may not make us clear megabytes per tiny batch.
    size = hint if 0 < hint <= _TRUSTED_RATIO * len(data) else max(DECOMPRESSED_SIZE_FIRST_GUESS, _GROWTH * len(data))
    while True:
        size = min(size, max_bytes)
        output = bytearray(size)
        try:
            written = decompress_into(data, output)
        except cramjam.DecompressionError as error:
            if _OUTPUT_TOO_SMALL not in str(error):
                raise DecompressionFailed(str(error)) from error
            if size == max_bytes:
                raise DecompressedTooLarge from error
            size *= _GROWTH
            continue
        return memoryview(output)[:written]


def _gzip_size_hint(data: Buffer) -> int:
    """The trailer of a gzip member ends with the plain size."""
    return int.from_bytes(data[-4:], "little") if len(data) >= 18 else 0


def _lz4_size_hint(data: Buffer) -> int:
    if len(data) >= 15 and data[4] & _LZ4_CONTENT_SIZE:
        return int.from_bytes(data[6:14], "little")
    return 0


def _zstd_size_hint(data: Buffer) -> int:
    """The frame header's content size, when its descriptor byte says that it is there."""
    if len(data) < 18 or bytes(data[:4]) != _ZSTD_MAGIC:
        return 0
    descriptor = data[4]
    single_segment = descriptor >> 5 & 1
    width = (single_segment, 2, 4, 8)[descriptor >> 6]
    start = 5 + (1 - single_segment) + (0, 1, 2, 4)[descriptor & 3]
    size = int.from_bytes(data[start : start + width], "little")
    return size + 256 if width == 2 else size


def _compress_xerial(data: Buffer) -> bytes:
    view = memoryview(data)
    parts: list[bytes] = [_XERIAL_HEADER]
    for start in range(0, len(view), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + _XERIAL_BLOCK_BYTES]))
        parts += (_INT32.pack(len(block)), block)
    return b"".join(parts)


def _decompress_snappy(data: Buffer, max_bytes: int) -> Buffer:
    view = memoryview(data)
    blocks = list(_xerial_blocks(view)) if bytes(view[:8]) == _XERIAL_MAGIC else [view]
    sizes = [_snappy_size(block) for block in blocks]
    total = sum(sizes)
    if total > max_bytes:
        raise DecompressedTooLarge
    output = memoryview(bytearray(total))
    position = 0
    for block, size in zip(blocks, sizes, strict=True):
        _decompress_snappy_block(block, output[position : position + size])
        position += size
    return output


def _snappy_size(block: memoryview) -> int:
    try:
        size: int = cramjam.snappy.decompress_raw_len(block)
    except cramjam.DecompressionError as error:
        raise DecompressionFailed(str(error)) from error
    return size


def _decompress_snappy_block(block: memoryview, output: memoryview) -> None:
    try:
        written = cramjam.snappy.decompress_raw_into(block, output)
    except cramjam.DecompressionError as error:
        raise DecompressionFailed(str(error)) from error
    if written != len(output):
        raise DecompressionFailed("a snappy block is shorter than it says")


def _xerial_blocks(view: memoryview) -> list[memoryview]:
    """The raw snappy blocks of a xerial stream; a repeated stream header between blocks is skipped, as in Java."""
    blocks: list[memoryview] = []
    position = len(_XERIAL_HEADER)
    end = len(view)
    while position < end:
        if end - position < 4:
            raise DecompressionFailed("a xerial snappy stream is cut off")
        (size,) = _INT32.unpack_from(view, position)
        if size == _XERIAL_MAGIC_AS_SIZE:
            position += len(_XERIAL_HEADER)
            continue
        position += 4
        if size < 0 or size > end - position:
            raise DecompressionFailed("a xerial snappy block does not fit in the stream")
        blocks.append(view[position : position + size])
        position += size
    return blocks
