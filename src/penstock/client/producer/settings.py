"""A producer's configuration, read once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from penstock.client.config import ClientConfig, producer_keys
from penstock.records.compression import Codec

BULK_BATCH_BYTES: Final = 512 * 1024
"""Batches of `send_many` are made larger than `batch.size`: all their records are there already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerSettings:
    acks: int = -1
    batch_size: int = 16_384
    bulk_batch_size: int = BULK_BATCH_BYTES
    linger_ms: int = 5
    buffer_memory: int = 33_554_432
    max_block_ms: int = 60_000
    max_request_size: int = 1_048_576
    max_in_flight: int = 5
    delivery_timeout_ms: int = 120_000
    request_timeout_ms: int = 30_000
    retries: int = 2**31 - 1
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    codec: Codec = Codec.NONE
    level: int | None = None
    idempotent: bool = True
    transactional_id: str | None = None
    transaction_timeout_ms: int = 60_000
    keyless: str = "sticky"
    adaptive: bool = True
    ignore_keys: bool = False

    @property
    def keeps_order_by_muting(self) -> bool:
        """Without sequences, one request at a time is what keeps the order (as Java does)."""
        return self.max_in_flight == 1 and not self.idempotent


def read_settings(config: ClientConfig) -> ProducerSettings:
    keys = producer_keys
    request_bytes = max(config[keys.MAX_REQUEST_SIZE], 1)
    memory = config[keys.BUFFER_MEMORY]
    # 0 turns batching off: a batch is full with its first record.
    batch_size = max(min(config[keys.BATCH_SIZE], request_bytes, memory), 1)
    codec = Codec.from_name(config[keys.COMPRESSION_TYPE])
    acks = config[keys.ACKS]
    return ProducerSettings(
        acks=-1 if acks == "all" else int(acks),
        batch_size=batch_size,
        bulk_batch_size=max(batch_size, min(BULK_BATCH_BYTES, request_bytes // 2, memory // 8)),
        linger_ms=config[keys.LINGER_MS],
        buffer_memory=memory,
        max_block_ms=config[keys.MAX_BLOCK_MS],
        max_request_size=request_bytes,
        max_in_flight=config[keys.MAX_IN_FLIGHT_REQUESTS_PER_CONNECTION],
        delivery_timeout_ms=config[keys.DELIVERY_TIMEOUT_MS],
        request_timeout_ms=config[keys.REQUEST_TIMEOUT_MS],
        retries=config[keys.RETRIES],
        retry_backoff_ms=config[keys.RETRY_BACKOFF_MS],
        retry_backoff_max_ms=config[keys.RETRY_BACKOFF_MAX_MS],
        codec=codec,
        level=_level(config, codec),
        idempotent=config[keys.ENABLE_IDEMPOTENCE],
        transactional_id=config[keys.TRANSACTIONAL_ID],
        transaction_timeout_ms=config[keys.TRANSACTION_TIMEOUT_MS],
        keyless=config[keys.PARTITIONER_KEYLESS],
        adaptive=config[keys.PARTITIONER_ADAPTIVE_PARTITIONING_ENABLE],
        ignore_keys=config[keys.PARTITIONER_IGNORE_KEYS],
    )


def _level(config: ClientConfig, codec: Codec) -> int | None:
    if codec is Codec.GZIP:
        level = config[producer_keys.COMPRESSION_GZIP_LEVEL]
        return None if level < 0 else level
    if codec is Codec.LZ4:
        return config[producer_keys.COMPRESSION_LZ4_LEVEL]
    return config[producer_keys.COMPRESSION_ZSTD_LEVEL] if codec is Codec.ZSTD else None
