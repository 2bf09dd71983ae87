"""OAuth tokens: what one is, when a new one is due, and the unsecured kind for development (KIP-255).

A provider gives a `Token`, plain text, or (text, lifetime in seconds); `as_token` makes one shape of these, and reads
the time a token ends from the token itself when it is a JSON Web Token and nobody said otherwise.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from penstock.security.sasl.mechanism import SaslError

_UNSECURED_HEADER: Final = {"alg": "none"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    value: str = field(repr=False)
    started_ms: int
    """Since the epoch: when it was issued, as far as is known."""
    expires_ms: int | None = None
    """Since the epoch; None for a token that is asked for anew with every connection."""
    extensions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshRule:
    """Kafka's `sasl.login.refresh.*`."""

    window_factor: float = 0.8
    window_jitter: float = 0.05
    min_period_s: float = 60
    buffer_s: float = 300


def as_token(given: object, now_ms: int) -> Token:
    """What a provider gave, as a token. `SaslError` when it is none."""
    if isinstance(given, Token):
        return given
    if isinstance(given, str):
        return Token(value=given, started_ms=now_ms, expires_ms=expiry_ms(given))
    if isinstance(given, Sequence) and len(given) == 2 and isinstance(given[0], str):
        lifetime_s: Any = given[1]
        if isinstance(lifetime_s, int | float):
            return Token(value=given[0], started_ms=now_ms, expires_ms=now_ms + int(lifetime_s * 1000))
    raise SaslError(
        f"the token provider gave {type(given).__name__}: give a Token, its text, or (text, lifetime in seconds)"
    )


def refresh_at_ms(token: Token, rule: RefreshRule, chance: float) -> int:
    """When the next token is due; `chance` is in [0, 1). Kafka's rule: a share of the life, but not in its last minutes
    and not too often; where a short life has no room for those two, the share alone decides."""
    if token.expires_ms is None:
        return token.started_ms
    life_ms = max(0, token.expires_ms - token.started_ms)
    share_ms = token.started_ms + life_ms * (rule.window_factor + rule.window_jitter * chance)
    earliest_ms = token.started_ms + rule.min_period_s * 1000
    latest_ms = token.expires_ms - rule.buffer_s * 1000
    if earliest_ms > latest_ms:
        return int(share_ms)
    return int(min(max(share_ms, earliest_ms), latest_ms))


def claims_of(token: str) -> Mapping[str, Any]:
    """The claims of a JSON Web Token, unchecked; empty for a token of another kind."""
    parts = token.split(".")
    if len(parts) != 3:
        return {}
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (binascii.Error, ValueError):
        return {}
    return claims if isinstance(claims, dict) else {}


def expiry_ms(token: str) -> int | None:
    """The `exp` claim, if there is one."""
    seconds = claims_of(token).get("exp")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < 1e11:
        return None
    return int(seconds * 1000)


def unsecured_token(claims: Mapping[str, Any], *, now_ms: int, lifetime_s: float = 3600) -> Token:
    """A JSON Web Token that nobody signed: for development, with a broker that takes such."""
    all_claims = {"iat": now_ms / 1000, "exp": now_ms / 1000 + lifetime_s, **claims}
    text = f"{_segment(_UNSECURED_HEADER)}.{_segment(all_claims)}."
    return Token(value=text, started_ms=now_ms, expires_ms=expiry_ms(text))


def _segment(value: Mapping[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode("ascii")
