"""The clients themselves over TLS and SASL, against a real Apache Kafka."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any

import pytest

import penstock
from penstock import AuthenticationFailed, ConfigErrors, Consumer, Producer
from tests.clients.security_support import oauth, sasl, start_kafka, trust
from tests.support.secured import SESSION_LIFETIME_MS, SecuredKafka

__all__ = ["start_kafka"]

TIMEOUT_S = 60.0
OAUTH_JAAS = (
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
    'unsecuredLoginStringClaim_sub="alice";'
)
_numbers = itertools.count()


def ways(kafka: SecuredKafka) -> dict[str, dict[str, Any]]:
    """Listener to the settings that it wants."""
    store = {"ssl_keystore_location": str(kafka.client.store)}
    return {
        "MTLS": {"security_protocol": "SSL", **store, **trust(kafka)},
        "SASL_SSL": {"security_protocol": "SASL_SSL", **sasl("SCRAM-SHA-512"), **trust(kafka)},
        "SASL_PLAINTEXT": {"security_protocol": "SASL_PLAINTEXT", **oauth(sasl_jaas_config=OAUTH_JAAS)},
        "SHORT": {"security_protocol": "SASL_PLAINTEXT", **sasl("SCRAM-SHA-256")},
    }


def settings(kafka: SecuredKafka, listener: str, **changes: Any) -> dict[str, Any]:
    return {"bootstrap_servers": kafka.bootstrap_of(listener), **ways(kafka)[listener], **changes}


def read(consumer: Any, count: int) -> list[Any]:
    deadline = time.monotonic() + TIMEOUT_S
    found: list[Any] = []
    while len(found) < count and time.monotonic() < deadline:
        found += consumer.poll(timeout_ms=500)
    return found


@pytest.mark.parametrize("listener", ["MTLS", "SASL_SSL", "SASL_PLAINTEXT"])
def test_records_there_and_back(kafka: SecuredKafka, listener: str) -> None:
    """Small ones, and one that is larger than any buffer on the way."""
    topic = f"secured-{next(_numbers)}"
    values = [b"%d" % number for number in range(50)] + [b"x" * 900_000]
    with Producer(**settings(kafka, listener)) as producer:
        deliveries = [producer.send(topic, value) for value in values]
        assert [delivery.result(TIMEOUT_S).offset for delivery in deliveries] == list(range(51))
    changes = {"group_id": topic, "auto_offset_reset": "earliest"}
    with Consumer(**settings(kafka, listener, **changes)) as consumer:
        consumer.subscribe([topic])
        assert [record.value for record in read(consumer, 51)] == values


def test_a_producer_outlives_its_sessions(kafka: SecuredKafka) -> None:
    topic = f"sessions-{next(_numbers)}"
    with Producer(**settings(kafka, "SHORT", retries=0, enable_idempotence=False)) as producer:
        ends_at = time.monotonic() + 2.2 * SESSION_LIFETIME_MS / 1000
        offsets = []
        while time.monotonic() < ends_at:
            offsets.append(producer.send(topic, b"x").result(TIMEOUT_S).offset)
        assert offsets == list(range(len(offsets)))


def produce(**options: Any) -> None:
    with Producer(**options) as producer:
        producer.send("secured", b"x").result(TIMEOUT_S)


def consume(**options: Any) -> None:
    with Consumer(**options, group_id="refused") as consumer:
        consumer.subscribe(["secured"])
        read(consumer, 1)


def administrate(**options: Any) -> None:
    with penstock.Admin(**options) as admin:
        admin.list_topics()


@pytest.mark.parametrize("use", [produce, consume, administrate])
def test_refused_credentials_reach_the_user_at_once(kafka: SecuredKafka, use: Callable[..., None]) -> None:
    began = time.monotonic()
    with pytest.raises(AuthenticationFailed, match=r"check sasl\.username and sasl\.password"):
        use(**settings(kafka, "SASL_SSL", sasl_password="wrong"))
    assert time.monotonic() - began < TIMEOUT_S / 2


@pytest.mark.parametrize("use", [produce, consume, administrate])
def test_a_wrong_authority_reaches_the_user_at_once(kafka: SecuredKafka, use: Callable[..., None]) -> None:
    with pytest.raises(AuthenticationFailed, match=r"not signed by an authority that is trusted here"):
        use(**settings(kafka, "SASL_SSL", ssl_truststore_location=None))


@pytest.mark.parametrize("use", [produce, consume, administrate])
def test_settings_that_cannot_be_used(kafka: SecuredKafka, use: Callable[..., None]) -> None:
    with pytest.raises(ConfigErrors, match=r"ssl\.truststore\.location: /missing\.pem cannot be read"):
        use(**settings(kafka, "SASL_SSL", ssl_truststore_location="/missing.pem"))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"security_protocol": "SSL"}, "the listener does not speak TLS"),
        ({"security_protocol": "SASL_PLAINTEXT", **sasl("SCRAM-SHA-256")}, "does not authenticate with SASL"),
    ],
)
def test_another_protocol_than_the_listeners(bootstrap: str, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(AuthenticationFailed, match=sentence):
        produce(bootstrap_servers=bootstrap, **options)
