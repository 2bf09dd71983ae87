"""TLS contexts from Kafka's keys: what they demand, and sentences for what cannot be used."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from penstock.security.ciphers import SuiteError, openssl_ciphers
from penstock.security.tls import TlsSettings, client_context
from tests.support.certificates import Authority, Identity, encrypt_key, pkcs12


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def client(authority: Authority) -> Identity:
    return authority.issue("client")


def context_of(**settings: object) -> ssl.SSLContext:
    context, problems = client_context(TlsSettings(**settings))  # type: ignore[arg-type]
    assert problems == []
    return context


def problem_of(**settings: object) -> str:
    _, problems = client_context(TlsSettings(**settings))  # type: ignore[arg-type]
    (problem,) = problems
    return str(problem)


def test_what_is_demanded_without_settings() -> None:
    context = context_of()
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    assert context.maximum_version is ssl.TLSVersion.TLSv1_3


@pytest.mark.parametrize("algorithm", ["", "none", " "])
def test_host_names_need_not_be_checked(algorithm: str) -> None:
    context = context_of(endpoint_identification_algorithm=algorithm)
    assert not context.check_hostname
    assert context.verify_mode is ssl.CERT_REQUIRED


def test_protocols() -> None:
    assert context_of(enabled_protocols=("TLSv1.3",)).minimum_version is ssl.TLSVersion.TLSv1_3
    assert context_of(protocol="TLSv1.2").maximum_version is ssl.TLSVersion.TLSv1_2
    assert "'SSLv3' is no TLS version" in problem_of(enabled_protocols=("SSLv3",))
    assert "all versions are above" in problem_of(protocol="TLSv1.2", enabled_protocols=("TLSv1.3",))


def test_ciphers() -> None:
    context = context_of(cipher_suites=("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",))
    assert context.maximum_version is ssl.TLSVersion.TLSv1_2
    assert "ECDHE-RSA-AES128-GCM-SHA256" in {cipher["name"] for cipher in context.get_ciphers()}
    assert context_of(cipher_suites=("TLS_AES_256_GCM_SHA384",)).minimum_version is ssl.TLSVersion.TLSv1_3
    assert "no cipher suite is called 'NONSENSE'" in problem_of(cipher_suites=("NONSENSE",))


@pytest.mark.parametrize(
    ("java", "openssl"),
    [
        ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384"),
        ("TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256", "ECDHE-RSA-AES128-SHA256"),
        ("TLS_RSA_WITH_AES_128_CBC_SHA", "AES128-SHA"),
        ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"),
        ("TLS_DHE_RSA_WITH_AES_256_GCM_SHA384", "DHE-RSA-AES256-GCM-SHA384"),
        ("ECDHE-RSA-AES128-SHA256", "ECDHE-RSA-AES128-SHA256"),
    ],
)
def test_names_of_suites(java: str, openssl: str) -> None:
    assert openssl_ciphers([java]).older == (openssl,)
    ssl.create_default_context().set_ciphers(openssl)


def test_an_unknown_suite() -> None:
    with pytest.raises(SuiteError):
        openssl_ciphers(["RC4"])


def test_trust_from_files_and_text(authority: Authority) -> None:
    text = authority.certificate.read_text()
    one_line = text.strip().replace("\n", " ")
    for settings in (
        {"truststore_location": str(authority.certificate)},
        {"ca_location": str(authority.certificate)},
        {"truststore_certificates": text},
        {"truststore_certificates": one_line},
        {"truststore_certificates": text.replace("\n", "\\n")},
    ):
        (loaded,) = context_of(**settings).get_ca_certs()
        assert loaded["subject"] == ((("commonName", "Test Authority"),),)


def test_identity_from_files_and_text(client: Identity, tmp_path: Path) -> None:
    encrypted = encrypt_key(client.key, "secret", tmp_path / "key.pem")
    chain = client.certificate.read_text()
    context_of(keystore_location=str(client.store))
    context_of(certificate_location=str(client.certificate), key_location=str(client.key))
    context_of(keystore_key=client.key.read_text(), keystore_certificate_chain=chain)
    context_of(keystore_key=encrypted.read_text(), keystore_certificate_chain=chain, key_password="secret")


def test_identities_that_cannot_be_used(client: Identity, authority: Authority, tmp_path: Path) -> None:
    encrypted = encrypt_key(client.key, "secret", tmp_path / "key.pem").read_text()
    chain = client.certificate.read_text()
    other = authority.issue("other").key.read_text()
    assert "set ssl.key.password" in problem_of(keystore_key=encrypted, keystore_certificate_chain=chain)
    wrong = problem_of(keystore_key=encrypted, keystore_certificate_chain=chain, key_password="wrong")
    assert "check ssl.key.password" in wrong
    assert "does not belong to the certificate" in problem_of(keystore_key=other, keystore_certificate_chain=chain)
    assert "belong together" in problem_of(keystore_key=other)
    assert "needs ssl.certificate.location" in problem_of(key_location=str(client.key))
    both = problem_of(keystore_key=other, keystore_certificate_chain=chain, keystore_location=str(client.store))
    assert "keep one" in both
    assert "cannot be used" in problem_of(keystore_location=str(client.certificate))


def test_javas_stores_are_refused_with_the_way_to_convert_them(client: Identity, tmp_path: Path) -> None:
    store = pkcs12(client, "secret", tmp_path / "client.p12")
    jks = tmp_path / "client.jks"
    jks.write_bytes(b"\xfe\xed\xfe\xed\x00\x00\x00\x02")
    for path, kind in ((store, "PKCS12"), (jks, "JKS")):
        for key in ("keystore_location", "truststore_location"):
            problem = problem_of(**{key: str(path)})
            assert f"is a {kind} store" in problem
            assert "openssl pkcs12 -in" in problem
    assert "keytool -importkeystore" in problem_of(keystore_location=str(jks))


def test_files_that_are_missing_or_hold_something_else(tmp_path: Path) -> None:
    rubbish = tmp_path / "rubbish.pem"
    rubbish.write_text("hello")
    broken = tmp_path / "broken.pem"
    broken.write_text("-----BEGIN CERTIFICATE-----\nxx\n-----END CERTIFICATE-----\n")
    for key in ("keystore_location", "truststore_location"):
        assert "No such file" in problem_of(**{key: str(tmp_path / "missing.pem")})
        assert "holds no PEM" in problem_of(**{key: str(rubbish)})
        assert "PEM" in problem_of(**{key: str(broken)})
    assert "PEM" in problem_of(truststore_certificates="nonsense")


def test_every_problem_is_told_at_once(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing.pem")
    _, problems = client_context(
        TlsSettings(enabled_protocols=("X",), truststore_location=missing, keystore_location=missing)
    )
    assert [problem.key for problem in problems] == [
        "ssl.enabled.protocols",
        "ssl.truststore.location",
        "ssl.keystore.location",
    ]
