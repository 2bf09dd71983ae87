"""From settings to what a connection needs: a TLS context, and the steps of its handshake.

`connection_security` is the one function a composition root calls. It finds every problem of the settings at once
(`ConfigErrors`), reads the certificate files, and touches no network: credentials meet a broker, and tokens are
fetched, when a connection is made.
"""

from __future__ import annotations

import secrets
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from penstock.base.config.declaration import ConfigErrors, Problem
from penstock.network.handshake import STEPS, Step
from penstock.network.login import login_source
from penstock.network.sasl import MechanismSource, sasl_step
from penstock.network.security_settings import SECURITY_KEYS, SecuritySettings
from penstock.network.settings import NetworkPorts
from penstock.security.sasl import oauthbearer, plain
from penstock.security.sasl.jaas import JaasError, LoginModule, parse_login_module
from penstock.security.sasl.mechanism import ClientMechanism, SaslError
from penstock.security.sasl.plain import PlainClient
from penstock.security.sasl.saslprep import saslprep
from penstock.security.sasl.scram import ScramClient
from penstock.security.sasl.scram_messages import HASHES
from penstock.security.tls import client_context

__all__ = ["PLAINTEXT", "SECURITY_KEYS", "ConnectionSecurity", "SecuritySettings", "connection_security"]

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS: Final = (plain.NAME, *HASHES, oauthbearer.NAME)

_PASSWORD_REMEDY: Final = "check sasl.username and sasl.password (or sasl.jaas.config), and that the user exists"
_TOKEN_REMEDY: Final = "check the token: its issuer, audience, scope and time, as the broker wants them"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionSecurity:
    tls: ssl.SSLContext | None = None
    steps: Sequence[Step] = STEPS


PLAINTEXT: Final = ConnectionSecurity()


def connection_security(settings: SecuritySettings, ports: NetworkPorts) -> ConnectionSecurity:
    """What `ChannelPool` takes; `ConfigErrors` with everything that is wrong."""
    problems: list[Problem] = []
    if settings.security_protocol.upper() not in PROTOCOLS:
        reason = f"not known: use one of {', '.join(PROTOCOLS)}"
        raise ConfigErrors([Problem(key="security.protocol", value=settings.security_protocol, reason=reason)])
    tls = _tls_context(settings, problems) if settings.uses_tls else None
    steps = (*STEPS, *_sasl_steps(settings, ports, problems)) if settings.uses_sasl else STEPS
    if problems:
        raise ConfigErrors(problems)
    return ConnectionSecurity(tls=tls, steps=steps)


def _tls_context(settings: SecuritySettings, problems: list[Problem]) -> ssl.SSLContext | None:
    ready = settings.ssl_engine_factory_class
    if ready is None:
        context, found = client_context(settings.tls())
        problems += found
        return context
    if not isinstance(ready, ssl.SSLContext) and callable(ready):
        ready = ready()
    if isinstance(ready, ssl.SSLContext):
        return ready
    reason = "give an ssl.SSLContext, or a function that makes one"
    problems.append(Problem(key="ssl.engine.factory.class", value=type(ready).__name__, reason=reason))
    return None


def _sasl_steps(settings: SecuritySettings, ports: NetworkPorts, problems: list[Problem]) -> list[Step]:
    name = settings.sasl_mechanism.upper()
    if name not in MECHANISMS:
        reason = f"not supported by this client: use one of {', '.join(MECHANISMS)}"
        problems.append(Problem(key="sasl.mechanism", value=settings.sasl_mechanism, reason=reason))
        return []
    try:
        module = parse_login_module(settings.sasl_jaas_config) if settings.sasl_jaas_config else None
    except JaasError as error:
        problems.append(Problem(key="sasl.jaas.config", reason=f"not readable: {error}"))
        return []
    if name == oauthbearer.NAME:
        tokens = login_source(settings, module, ports, problems)
        return [sasl_step(name, tokens, remedy=_TOKEN_REMEDY)] if tokens is not None else []
    source = _password_source(name, settings, module, problems)
    return [sasl_step(name, source, remedy=_PASSWORD_REMEDY)] if source is not None else []


def _password_source(
    name: str, settings: SecuritySettings, module: LoginModule | None, problems: list[Problem]
) -> MechanismSource | None:
    options = module.options if module is not None else {}
    username = settings.sasl_username if settings.sasl_username is not None else options.get("username")
    password = settings.sasl_password if settings.sasl_password is not None else options.get("password")
    if not username or password is None:
        reason = f"{name} needs a user name and a password: set sasl.username and sasl.password, or sasl.jaas.config"
        problems.append(Problem(key="sasl.username" if not username else "sasl.password", reason=reason))
        return None
    if settings.penstock_sasl_scram_saslprep and name in HASHES:
        try:
            username, password = saslprep(username), saslprep(password)
        except SaslError as error:
            problems.append(Problem(key="sasl.username", reason=f"or sasl.password cannot be prepared: {error}"))
            return None
    extensions = {"tokenauth": "true"} if options.get("tokenauth", "").lower() == "true" else {}

    async def new_exchange(username: str = username, password: str = password) -> ClientMechanism:
        if name == plain.NAME:
            return PlainClient(username, password)
        return ScramClient(name, username, password, nonce=secrets.token_urlsafe(24), extensions=extensions)

    return new_exchange
