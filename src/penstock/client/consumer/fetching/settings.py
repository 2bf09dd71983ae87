"""The consumer's keys that fetching reads, once."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.client.config import ClientConfig, consumer_keys

READ_UNCOMMITTED = 0
READ_COMMITTED = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchSettings:
    min_bytes: int = 1
    max_bytes: int = 52_428_800
    max_wait_ms: int = 500
    partition_bytes_max: int = 1_048_576
    prefetch_bytes_max: int = 67_108_864
    check_crcs: bool = True
    isolation_level: int = READ_UNCOMMITTED
    rack: str = ""
    retry_backoff_s: float = 0.1
    replica_lease_s: float = 300.0
    """How long a follower is read from before the leader is asked again which one to read."""
    request_timeout_ms: int = 30_000

    @property
    def read_committed(self) -> bool:
        return self.isolation_level == READ_COMMITTED

    @classmethod
    def of(cls, config: ClientConfig) -> FetchSettings:
        committed = config[consumer_keys.ISOLATION_LEVEL].lower() == "read_committed"
        return cls(
            min_bytes=config[consumer_keys.FETCH_MIN_BYTES],
            max_bytes=config[consumer_keys.FETCH_MAX_BYTES],
            max_wait_ms=config[consumer_keys.FETCH_MAX_WAIT_MS],
            partition_bytes_max=config[consumer_keys.MAX_PARTITION_FETCH_BYTES],
            prefetch_bytes_max=config[consumer_keys.PREFETCH_BYTES],
            check_crcs=config[consumer_keys.CHECK_CRCS],
            isolation_level=READ_COMMITTED if committed else READ_UNCOMMITTED,
            rack=config[consumer_keys.CLIENT_RACK],
            retry_backoff_s=config[consumer_keys.RETRY_BACKOFF_MS] / 1000,
            replica_lease_s=config[consumer_keys.METADATA_MAX_AGE_MS] / 1000,
            request_timeout_ms=config[consumer_keys.REQUEST_TIMEOUT_MS],
        )
