"""Where OAuth tokens come from, and how long one is used.

A token comes from the user's own function, from a token endpoint, or is an unsecured one for development. A
`TokenKeeper` shares it between the connections of a client and replaces it when Kafka's refresh rule says so; nothing
runs in the background, because a token is needed only when a connection is made or its session prolonged.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

from penstock.base.config.declaration import Problem
from penstock.network.errors import AuthenticationFailed, NetworkError
from penstock.network.sasl import MechanismSource
from penstock.network.security_settings import SecuritySettings
from penstock.network.settings import NetworkPorts
from penstock.security.sasl.jaas import LoginModule
from penstock.security.sasl.mechanism import ClientMechanism, SaslError
from penstock.security.sasl.oauthbearer import OAuthBearerClient
from penstock.security.sasl.tokens import RefreshRule, Token, as_token, refresh_at_ms
from penstock.security.sasl.unsecured import UnsecuredLogin, UnsecuredLoginError, unsecured_login
from penstock.security.tls import client_context

log = logging.getLogger(__name__)

TokenFetch = Callable[[], Awaitable[Token]]

ENDPOINT_HANDLER: Final = "OAuthBearerLoginCallbackHandler"
UNSECURED_HANDLER: Final = "OAuthBearerUnsecuredLoginCallbackHandler"


class TokenKeeper:
    """The token that is used now. One fetch at a time, whoever asks."""

    def __init__(self, fetch: TokenFetch, rule: RefreshRule, ports: NetworkPorts) -> None:
        self._fetch = fetch
        self._rule = rule
        self._ports = ports
        self._lock = asyncio.Lock()
        self._token: Token | None = None
        self._refresh_at_ms = 0

    async def token(self) -> Token:
        async with self._lock:
            now_ms = self._ports.clock.time_ms()
            if self._token is not None and now_ms < self._refresh_at_ms:
                return self._token
            try:
                token = await self._fetch()
            except (NetworkError, SaslError) as error:
                old = self._token
                if old is None or old.expires_ms is None or old.expires_ms <= now_ms:
                    raise
                log.warning("no new OAuth token, the old one is used while it lasts: %s", error)
                return old
            self._token = token
            self._refresh_at_ms = refresh_at_ms(token, self._rule, self._ports.rng.random())
            return token


def login_source(
    settings: SecuritySettings, module: LoginModule | None, ports: NetworkPorts, problems: list[Problem]
) -> MechanismSource | None:
    """Exchanges with a token that is still good; None, and problems, when the settings name no source of tokens."""
    fetch = _choose(settings, module, ports, problems)
    if fetch is None:
        return None
    rule = RefreshRule(
        window_factor=settings.sasl_login_refresh_window_factor,
        window_jitter=settings.sasl_login_refresh_window_jitter,
        min_period_s=settings.sasl_login_refresh_min_period_seconds,
        buffer_s=settings.sasl_login_refresh_buffer_seconds,
    )
    keeper = TokenKeeper(fetch, rule, ports)

    async def new_exchange() -> ClientMechanism:
        return OAuthBearerClient(await keeper.token())

    return new_exchange


def _choose(
    settings: SecuritySettings, module: LoginModule | None, ports: NetworkPorts, problems: list[Problem]
) -> TokenFetch | None:
    handler = settings.sasl_login_callback_handler_class
    if handler is not None and not isinstance(handler, str):
        if callable(handler):
            return _from_function(handler, ports)
        reason = "give a function that returns a token"
        problems.append(Problem(key="sasl.login.callback.handler.class", value=type(handler).__name__, reason=reason))
        return None
    options = module.options if module is not None else {}
    kind = handler.rpartition(".")[2] if handler else ""
    if kind not in ("", ENDPOINT_HANDLER, UNSECURED_HANDLER):
        reason = "a Java class cannot run here: give a Python function that returns a token"
        problems.append(Problem(key="sasl.login.callback.handler.class", value=handler, reason=reason))
        return None
    if kind == ENDPOINT_HANDLER or (not kind and settings.sasl_oauthbearer_token_endpoint_url):
        return _from_endpoint(settings, options, ports, problems)
    try:
        return _from_nobody(unsecured_login(options), ports)
    except UnsecuredLoginError as error:
        problems.append(Problem(key="sasl.jaas.config" if options else "sasl.mechanism", reason=str(error)))
        return None


def _from_function(provider: Callable[[], Any], ports: NetworkPorts) -> TokenFetch:
    """A plain function may block, on a web request perhaps, so a worker runs it."""

    async def fetch() -> Token:
        try:
            is_async = inspect.iscoroutinefunction(provider) or inspect.iscoroutinefunction(
                getattr(provider, "__call__", None)  # noqa: B004 - an object with an asynchronous call
            )
            given = provider() if is_async else await ports.tasks.run_blocking(provider)
            if inspect.isawaitable(given):
                given = await given
        except (NetworkError, SaslError):
            raise
        except Exception as error:
            reason = f"the token provider failed ({type(error).__name__}: {error}): mend it, or what it asks"
            raise AuthenticationFailed(None, reason) from error
        return as_token(given, ports.clock.time_ms())

    return fetch


def _from_nobody(login: UnsecuredLogin, ports: NetworkPorts) -> TokenFetch:
    async def fetch() -> Token:
        return login.token(ports.clock.time_ms())

    return fetch


def _from_endpoint(
    settings: SecuritySettings, options: dict[str, str], ports: NetworkPorts, problems: list[Problem]
) -> TokenFetch | None:
    # Here, because http.client takes longer to import than all of the client's own network code.
    from penstock.network.token_endpoint import TokenEndpoint

    url = settings.sasl_oauthbearer_token_endpoint_url
    tls = None
    if url and url.lower().startswith("https:"):
        tls, found = client_context(settings.tls())
        # With TLS to the brokers these were told already.
        problems += found if not settings.uses_tls else []
    endpoint = TokenEndpoint(
        url=url or "",
        client_id=settings.sasl_oauthbearer_client_credentials_client_id or options.get("clientId"),
        client_secret=settings.sasl_oauthbearer_client_credentials_client_secret or options.get("clientSecret"),
        assertion_file=settings.sasl_oauthbearer_assertion_file,
        scope=settings.sasl_oauthbearer_scope or options.get("scope"),
        extensions={
            name.removeprefix("extension_"): value for name, value in options.items() if name.startswith("extension_")
        },
        url_encode=settings.sasl_oauthbearer_header_urlencode,
        connect_timeout_ms=settings.sasl_login_connect_timeout_ms,
        read_timeout_ms=settings.sasl_login_read_timeout_ms,
        retry_backoff_ms=settings.sasl_login_retry_backoff_ms,
        retry_backoff_max_ms=settings.sasl_login_retry_backoff_max_ms,
        tls=tls,
    )
    found = endpoint.problems()
    problems += found
    return (lambda: endpoint.fetch(ports)) if not found else None
