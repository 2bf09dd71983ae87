"""Tokens that nobody signed, from the options of a login module, as Kafka's development handler makes them (KIP-255).

...OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="alice" unsecuredLoginLifetimeSeconds="60";
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from penstock.security.sasl.tokens import Token, unsecured_token

_STRING: Final = "unsecuredLoginStringClaim_"
_NUMBER: Final = "unsecuredLoginNumberClaim_"
_LIST: Final = "unsecuredLoginListClaim_"
_EXTENSION: Final = "unsecuredLoginExtension_"
_LIFETIME: Final = "unsecuredLoginLifetimeSeconds"
_PRINCIPAL: Final = "unsecuredLoginPrincipalClaimName"


class UnsecuredLoginError(ValueError):
    """The options make no token; says which are missing or wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsecuredLogin:
    claims: Mapping[str, Any]
    extensions: Mapping[str, str] = field(default_factory=dict)
    lifetime_s: float = 3600

    def token(self, now_ms: int) -> Token:
        token = unsecured_token(self.claims, now_ms=now_ms, lifetime_s=self.lifetime_s)
        return Token(
            value=token.value, started_ms=now_ms, expires_ms=token.expires_ms, extensions=dict(self.extensions)
        )


def unsecured_login(options: Mapping[str, str]) -> UnsecuredLogin:
    claims: dict[str, Any] = {}
    for name, value in options.items():
        if name.startswith(_STRING):
            claims[name.removeprefix(_STRING)] = value
        elif name.startswith(_NUMBER):
            claims[name.removeprefix(_NUMBER)] = _number(name, value)
        elif name.startswith(_LIST):
            # The first sign is what stands between the parts: `|a|b`.
            claims[name.removeprefix(_LIST)] = value[1:].split(value[0]) if value else []
    principal = options.get(_PRINCIPAL, "sub")
    if principal not in claims:
        raise UnsecuredLoginError(
            "OAUTHBEARER has no source of tokens: give a function in sasl.login.callback.handler.class, set "
            f"sasl.oauthbearer.token.endpoint.url, or, for development, {_STRING}{principal} in sasl.jaas.config"
        )
    extensions = {name.removeprefix(_EXTENSION): text for name, text in options.items() if name.startswith(_EXTENSION)}
    lifetime_s = _number(_LIFETIME, options.get(_LIFETIME, "3600"))
    return UnsecuredLogin(claims=claims, extensions=extensions, lifetime_s=lifetime_s)


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UnsecuredLoginError(f"{name} must be a number, not {text!r}") from None
