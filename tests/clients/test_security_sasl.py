"""SASL against a real Apache Kafka: mechanisms, sessions that are prolonged, and refusals that say why."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from penstock.network.errors import (
    AuthenticationFailed,
    Disconnected,
    UnsupportedMechanism,
    WrongSecurityProtocol,
)
from penstock.security.sasl.tokens import unsecured_token
from tests.clients.security_support import (
    TIMEOUT_S,
    Told,
    ask,
    ask_for_ever,
    check_works,
    oauth,
    pool_to,
    refusal,
    sasl,
    start_kafka,
    trust,
)
from tests.support.secured import SESSION_LIFETIME_MS, SecuredKafka

__all__ = ["start_kafka"]

PASSWORD_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
JAAS = 'org.apache.kafka.common.security.{module} required username="alice" password="alice-secret";'
OAUTH_JAAS = (
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
    'unsecuredLoginStringClaim_sub="alice";'
)


@pytest.mark.parametrize("mechanism", PASSWORD_MECHANISMS)
@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
async def test_passwords(kafka: SecuredKafka, protocol: str, mechanism: str) -> None:
    await check_works(kafka, protocol, security_protocol=protocol, **sasl(mechanism), **trust(kafka))


@pytest.mark.parametrize("username", ["bo=b", "celik"])
@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
async def test_scram_with_difficult_names_and_passwords(kafka: SecuredKafka, mechanism: str, username: str) -> None:
    await check_works(kafka, "SASL_PLAINTEXT", security_protocol="SASL_PLAINTEXT", **sasl(mechanism, username))


async def test_credentials_in_javas_form(kafka: SecuredKafka) -> None:
    for mechanism, module in (("PLAIN", "plain.PlainLoginModule"), ("SCRAM-SHA-512", "scram.ScramLoginModule")):
        keys = {"sasl_mechanism": mechanism, "sasl_jaas_config": JAAS.format(module=module)}
        await check_works(kafka, "SASL_PLAINTEXT", security_protocol="SASL_PLAINTEXT", **keys)


async def test_an_unsecured_token(kafka: SecuredKafka) -> None:
    keys = oauth(sasl_jaas_config=OAUTH_JAAS)
    await check_works(kafka, "SASL_PLAINTEXT", security_protocol="SASL_PLAINTEXT", **keys)
    await check_works(kafka, "SASL_SSL", security_protocol="SASL_SSL", **keys, **trust(kafka))


def new_token(lifetime_s: float = 60.0) -> Any:
    return unsecured_token({"sub": "alice"}, now_ms=int(time.time() * 1000), lifetime_s=lifetime_s)


async def test_tokens_of_the_users_own_functions(kafka: SecuredKafka) -> None:
    async def asynchronous() -> str:
        return str(new_token().value)

    for provider in (new_token, asynchronous, lambda: (new_token().value, 60)):
        keys = oauth(sasl_login_callback_handler_class=provider)
        await check_works(kafka, "SASL_PLAINTEXT", security_protocol="SASL_PLAINTEXT", **keys)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "OAUTHBEARER"])
async def test_a_session_is_prolonged_before_it_ends(kafka: SecuredKafka, mechanism: str) -> None:
    tokens = 0

    def provider() -> Any:
        nonlocal tokens
        tokens += 1
        return new_token(SESSION_LIFETIME_MS / 1000)

    told = Told()
    keys = sasl(mechanism) if mechanism != "OAUTHBEARER" else oauth(sasl_login_callback_handler_class=provider)
    async with pool_to(kafka, "SHORT", observer=told, security_protocol="SASL_PLAINTEXT", **keys) as pool:
        ends_at = time.monotonic() + 2.2 * SESSION_LIFETIME_MS / 1000
        while time.monotonic() < ends_at:
            assert (await ask(pool)).brokers
        assert told.closings == []
        assert told.prolongations >= 2
        assert told.answers > 100
        assert tokens == (told.prolongations + 1 if mechanism == "OAUTHBEARER" else 0)


async def test_a_session_that_cannot_be_prolonged_says_why(kafka: SecuredKafka) -> None:
    tokens = iter([new_token(60.0)])

    def provider() -> Any:
        token = next(tokens, None)
        if token is None:
            raise OSError("the key store is locked")
        return token.value, 0.1

    told = Told()
    keys = oauth(sasl_login_callback_handler_class=provider)
    async with pool_to(kafka, "SHORT", observer=told, security_protocol="SASL_PLAINTEXT", **keys) as pool:
        await ask(pool)
        with pytest.raises(AuthenticationFailed, match="the key store is locked"):
            await asyncio.wait_for(ask_for_ever(pool), TIMEOUT_S)


@pytest.mark.parametrize("mechanism", PASSWORD_MECHANISMS)
@pytest.mark.parametrize(("username", "password"), [("alice", "wrong"), ("nobody", "alice-secret")])
async def test_wrong_credentials(kafka: SecuredKafka, mechanism: str, username: str, password: str) -> None:
    keys = sasl(mechanism, username, password)
    error = await refusal(kafka, "SASL_PLAINTEXT", security_protocol="SASL_PLAINTEXT", **keys)
    assert isinstance(error, AuthenticationFailed)
    assert not error.retriable
    assert f"refused the {mechanism} credentials" in str(error)
    assert "check sasl.username and sasl.password" in str(error)
    assert password not in str(error)


async def test_a_token_that_is_over(kafka: SecuredKafka) -> None:
    late = unsecured_token({"sub": "alice"}, now_ms=int(time.time() * 1000) - 7_200_000, lifetime_s=60)
    keys = oauth(sasl_login_callback_handler_class=lambda: late)
    error = await refusal(kafka, "SASL_PLAINTEXT", security_protocol="SASL_PLAINTEXT", **keys)
    assert isinstance(error, AuthenticationFailed)
    assert "check the token" in str(error)
    assert late.value not in str(error)


async def test_a_token_provider_that_fails(kafka: SecuredKafka) -> None:
    def provider() -> str:
        raise RuntimeError("no coffee")

    keys = oauth(sasl_login_callback_handler_class=provider)
    error = await refusal(kafka, "SASL_PLAINTEXT", security_protocol="SASL_PLAINTEXT", **keys)
    assert isinstance(error, AuthenticationFailed)
    assert "the token provider failed (RuntimeError: no coffee)" in str(error)


async def test_a_mechanism_that_is_not_enabled(kafka: SecuredKafka) -> None:
    error = await refusal(kafka, "SCRAMONLY", security_protocol="SASL_PLAINTEXT", **sasl("PLAIN"))
    assert isinstance(error, UnsupportedMechanism)
    assert "does not offer PLAIN" in str(error)
    assert "SCRAM-SHA-512" in str(error)


async def test_sasl_to_a_listener_without_it(kafka: SecuredKafka) -> None:
    error = await refusal(kafka, "PLAINTEXT", security_protocol="SASL_PLAINTEXT", **sasl("SCRAM-SHA-256"))
    assert isinstance(error, WrongSecurityProtocol)
    assert "does not authenticate with SASL" in str(error)


async def test_no_sasl_to_a_listener_that_wants_it(kafka: SecuredKafka) -> None:
    error = await refusal(kafka, "SASL_PLAINTEXT", security_protocol="PLAINTEXT")
    assert isinstance(error, Disconnected)
    assert "if the listener wants SASL" in str(error)
