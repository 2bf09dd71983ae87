"""TLS against a real Apache Kafka, on both event loops: every way in, and every way to be refused with a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.network.errors import AuthenticationFailed, ConnectFailed, ProtocolViolation, WrongSecurityProtocol
from tests.clients.security_support import check_works, on_both_loops, refusal, start_kafka, trust
from tests.support.certificates import Authority, encrypt_key
from tests.support.secured import SecuredKafka

__all__ = ["start_kafka"]


@on_both_loops
async def test_tls(kafka: SecuredKafka) -> None:
    await check_works(kafka, "SSL", security_protocol="SSL", **trust(kafka))


@on_both_loops
async def test_tls_with_the_authority_as_text(kafka: SecuredKafka) -> None:
    text = kafka.authority.certificate.read_text()
    await check_works(kafka, "SSL", security_protocol="SSL", ssl_truststore_certificates=text)


@on_both_loops
async def test_tls_by_librdkafkas_keys(kafka: SecuredKafka) -> None:
    files = {"ssl_ca_location": kafka.authority.certificate, "ssl_certificate_location": kafka.client.certificate}
    keys = {name: str(path) for name, path in files.items()}
    await check_works(kafka, "MTLS", security_protocol="SSL", ssl_key_location=str(kafka.client.key), **keys)


@on_both_loops
async def test_mutual_tls_from_a_file(kafka: SecuredKafka) -> None:
    store = str(kafka.client.store)
    await check_works(kafka, "MTLS", security_protocol="SSL", ssl_keystore_location=store, **trust(kafka))
    await check_works(kafka, "TLS12", security_protocol="SSL", ssl_keystore_location=store, **trust(kafka))


@on_both_loops
async def test_mutual_tls_from_text_with_an_encrypted_key(kafka: SecuredKafka, tmp_path: Path) -> None:
    key = encrypt_key(kafka.client.key, "key-secret", tmp_path / "encrypted.key").read_text()
    chain = kafka.client.certificate.read_text()
    await check_works(
        kafka, "MTLS", security_protocol="SSL", ssl_keystore_key=key, ssl_keystore_certificate_chain=chain,
        ssl_key_password="key-secret", **trust(kafka),
    )  # fmt: skip


@on_both_loops
async def test_a_chosen_cipher_suite(kafka: SecuredKafka) -> None:
    suite = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"
    await check_works(kafka, "SSL", security_protocol="SSL", ssl_cipher_suites=suite, **trust(kafka))


@on_both_loops
async def test_an_authority_that_is_not_trusted(kafka: SecuredKafka, tmp_path: Path) -> None:
    other = Authority(tmp_path / "other", "Other Authority").certificate
    for keys in ({}, {"ssl_truststore_location": str(other)}):
        error = await refusal(kafka, "SSL", security_protocol="SSL", **keys)
        assert isinstance(error, AuthenticationFailed)
        assert "not signed by an authority that is trusted here" in str(error)
        assert "ssl.truststore.location" in str(error)


@on_both_loops
async def test_a_certificate_for_another_host(kafka: SecuredKafka) -> None:
    error = await refusal(kafka, "ELSEWHERE", security_protocol="SSL", **trust(kafka))
    assert isinstance(error, AuthenticationFailed)
    assert "is not made out to '127.0.0.1'" in str(error)
    keys = {"ssl_endpoint_identification_algorithm": "", **trust(kafka)}
    await check_works(kafka, "ELSEWHERE", security_protocol="SSL", **keys)


@on_both_loops
async def test_an_expired_certificate(kafka: SecuredKafka) -> None:
    error = await refusal(kafka, "EXPIRED", security_protocol="SSL", **trust(kafka))
    assert isinstance(error, AuthenticationFailed)
    assert "has expired" in str(error)


@pytest.mark.parametrize("listener", ["MTLS", "TLS12"])
@on_both_loops
async def test_a_client_certificate_that_is_missing(kafka: SecuredKafka, listener: str) -> None:
    error = await refusal(kafka, listener, security_protocol="SSL", **trust(kafka))
    assert isinstance(error, AuthenticationFailed)
    assert "certificate" in str(error)
    assert "ssl.keystore.location" in str(error)


@on_both_loops
async def test_a_client_certificate_of_another_authority(kafka: SecuredKafka, tmp_path: Path) -> None:
    store = Authority(tmp_path / "other", "Other Authority").issue("client").store
    error = await refusal(kafka, "MTLS", security_protocol="SSL", ssl_keystore_location=str(store), **trust(kafka))
    assert isinstance(error, AuthenticationFailed)
    assert "our certificate" in str(error)


@on_both_loops
async def test_no_tls_version_in_common(kafka: SecuredKafka) -> None:
    keys = {"ssl_enabled_protocols": "TLSv1.3", **trust(kafka)}
    error = await refusal(kafka, "TLS12", security_protocol="SSL", **keys)
    assert isinstance(error, AuthenticationFailed)
    assert "ssl.enabled.protocols" in str(error)


@pytest.mark.parametrize("listener", ["SSL", "SASL_SSL"])
@on_both_loops
async def test_plain_to_a_tls_listener(kafka: SecuredKafka, listener: str) -> None:
    error = await refusal(kafka, listener, security_protocol="PLAINTEXT")
    assert isinstance(error, ProtocolViolation | ConnectFailed)
    assert "security.protocol" in str(error)


@pytest.mark.parametrize("listener", ["PLAINTEXT", "SASL_PLAINTEXT"])
@on_both_loops
async def test_tls_to_a_plain_listener(kafka: SecuredKafka, listener: str) -> None:
    error = await refusal(kafka, listener, security_protocol="SSL", **trust(kafka))
    assert isinstance(error, WrongSecurityProtocol)
    assert "does not speak TLS" in str(error)
