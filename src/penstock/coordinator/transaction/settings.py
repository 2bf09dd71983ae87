"""What of the broker's configuration the transaction coordinator goes by; asked anew whenever it matters."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionSettings:
    """Defaults are Kafka's."""

    transaction_version: int = 2
    """The finalized feature `transaction.version`: the shape of records (from 1 on) and of what is not a client's end
    of a transaction (from 2 on)."""
    timeout_max_ms: int = 900_000
    id_expiration_ms: int = 604_800_000
    abort_interval_ms: int = 10_000
    """Between two searches for transactions that are open for too long."""
    expiration_interval_ms: int = 3_600_000
    write_timeout_ms: int = 30_000
    marker_timeout_ms: int = 30_000
    marker_backoff_ms: int = 20
    """Before the first repetition of a marker that failed; doubled up to the maximum."""
    marker_backoff_max_ms: int = 1_000
    completion_wait_ms: int = 100
    """How long a request for the next transaction is held while the markers of the last one are being written."""
    markers_per_request_max: int = 1_000
