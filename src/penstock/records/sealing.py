"""The last step of a producer's batch: compression, header, checksum; and the change of identity before a retry.

A plain batch from a `BatchWriter` has room for its header in front, so without compression it is finished in place.
"""

from __future__ import annotations

import struct

from penstock.records.batch import (
    CRC_OFFSET,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    PRODUCER_ID_OFFSET,
    TRANSACTIONAL_MASK,
    compute_crc,
)
from penstock.records.compression import Codec, compress

_UINT32 = struct.Struct(">I")
_IDENTITY = struct.Struct(">qhi")


def seal(
    plain: bytearray,
    *,
    count: int,
    base_timestamp: int,
    max_timestamp: int,
    codec: Codec = Codec.NONE,
    level: int | None = None,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
) -> bytearray:
    """The batch as it goes to a broker. Without a codec it is `plain` itself, changed; with one it is a new buffer."""
    batch = plain
    if codec is not Codec.NONE:
        batch = bytearray(HEADER_SIZE)
        with memoryview(plain) as view:
            batch += compress(codec, view[HEADER_SIZE:], level)
    HEADER.pack_into(
        batch,
        0,
        0,
        len(batch) - LOG_OVERHEAD,
        NO_LEADER_EPOCH,
        MAGIC,
        0,
        int(codec) | TRANSACTIONAL_MASK * transactional,
        max(count - 1, 0),
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        count,
    )
    _UINT32.pack_into(batch, CRC_OFFSET, compute_crc(batch, 0, len(batch)))
    return batch


def reseal(batch: bytearray, *, producer_id: int, producer_epoch: int, base_sequence: int) -> None:
    """Give a sealed batch another producer id, epoch and first sequence, in place, with a new checksum.

    No request that still holds the batch may be on its way out.
    """
    _IDENTITY.pack_into(batch, PRODUCER_ID_OFFSET, producer_id, producer_epoch, base_sequence)
    _UINT32.pack_into(batch, CRC_OFFSET, compute_crc(batch, 0, len(batch)))
