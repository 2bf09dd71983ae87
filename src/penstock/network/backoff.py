"""How long to wait before the next attempt: doubled with each failure, up to a maximum, with jitter (KIP-580)."""

from __future__ import annotations

import random
from typing import Final

JITTER: Final = 0.2
_DOUBLINGS_MAX: Final = 32


def backoff_ms(initial_ms: int, max_ms: int, failures: int, rng: random.Random) -> float:
    """The delay behind the `failures`-th failure in a row (from 1); the jitter never lifts it above the maximum."""
    exponent = min(max(failures, 1) - 1, _DOUBLINGS_MAX)
    delay_ms = min(float(initial_ms << exponent), float(max_ms))
    return min(delay_ms * rng.uniform(1 - JITTER, 1 + JITTER), float(max_ms))
