"""TLS for connections to brokers: an `ssl.SSLContext` made of Kafka's `ssl.*` settings.

Certificates and keys are PEM, as files or as text; what a file holds is seen from its first bytes, not from
`ssl.*.type`, whose default (JKS) names a format that only Java reads. Java's stores are refused with the command that
converts them. Nothing here ever asks a terminal for a password.

`client_context` collects every problem before it gives up, so that a person mends them at once.
"""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Final

from penstock.base.config.declaration import Problem
from penstock.security.ciphers import SuiteError, openssl_ciphers

_VERSIONS: Final = {
    "TLSv1": ssl.TLSVersion.TLSv1,
    "TLSv1.1": ssl.TLSVersion.TLSv1_1,
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}
_HOST_NAME_CHECK: Final = "https"
_NEWEST: Final = "TLS"
"""`ssl.protocol=TLS`: whatever is the newest."""

_JAVA_STORES: Final = {b"\xfe\xed\xfe\xed": "JKS", b"\xce\xce\xce\xce": "JCEKS", b"\x30": "PKCS12"}
_PEM_MARK: Final = b"-----BEGIN"


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsSettings:
    """Kafka's `ssl.*` keys of a client; `ca`, `certificate` and `key` locations are librdkafka's."""

    protocol: str = "TLSv1.3"
    enabled_protocols: tuple[str, ...] = ("TLSv1.2", "TLSv1.3")
    cipher_suites: tuple[str, ...] = ()
    endpoint_identification_algorithm: str = _HOST_NAME_CHECK
    truststore_location: str | None = None
    truststore_certificates: str | None = field(default=None, repr=False)
    keystore_location: str | None = None
    keystore_key: str | None = field(default=None, repr=False)
    keystore_certificate_chain: str | None = field(default=None, repr=False)
    keystore_password: str | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)
    ca_location: str | None = None
    certificate_location: str | None = None
    key_location: str | None = None


class _Refusal(Exception):  # noqa: N818 - becomes a Problem
    """Why one setting cannot be used."""


def client_context(settings: TlsSettings) -> tuple[ssl.SSLContext, list[Problem]]:
    """The context, and everything that is wrong with the settings; with problems it must not be used."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    problems: list[Problem] = []
    steps: tuple[tuple[str, Callable[[], None]], ...] = (
        ("ssl.enabled.protocols", lambda: _set_versions(context, settings)),
        ("ssl.cipher.suites", lambda: _set_ciphers(context, settings)),
        ("ssl.endpoint.identification.algorithm", lambda: _set_host_name_check(context, settings)),
        (_trust_key(settings), lambda: _load_trust(context, settings)),
        (_identity_key(settings), lambda: _load_identity(context, settings)),
    )
    for key, step in steps:
        try:
            step()
        except _Refusal as refusal:
            problems.append(Problem(key=key, reason=str(refusal)))
    return context, problems


def _set_versions(context: ssl.SSLContext, settings: TlsSettings) -> None:
    named = settings.enabled_protocols or (settings.protocol,)
    if named == (_NEWEST,):
        return
    unknown = [name for name in named if name not in _VERSIONS]
    if unknown:
        raise _Refusal(f"{unknown[0]!r} is no TLS version: name some of {', '.join(_VERSIONS)}")
    allowed = [_VERSIONS[name] for name in named]
    newest = _VERSIONS.get(settings.protocol, max(allowed))
    usable = [version for version in allowed if version <= newest]
    if not usable:
        raise _Refusal(f"all versions are above ssl.protocol={settings.protocol}: raise it or allow an older one")
    context.minimum_version = min(usable)
    context.maximum_version = max(usable)


def _set_ciphers(context: ssl.SSLContext, settings: TlsSettings) -> None:
    if not settings.cipher_suites:
        return
    try:
        choice = openssl_ciphers(settings.cipher_suites)
        if choice.older:
            context.set_ciphers(":".join(choice.older))
    except (SuiteError, ssl.SSLError) as error:
        raise _Refusal(f"not usable here ({error}): name suites that `openssl ciphers -s -stdname` lists") from None
    # The library has no choice among the suites of TLS 1.3: a version without any suite of its own is left out.
    if not choice.older:
        context.minimum_version = ssl.TLSVersion.TLSv1_3
    if not choice.tls13:
        context.maximum_version = ssl.TLSVersion.TLSv1_2


def _set_host_name_check(context: ssl.SSLContext, settings: TlsSettings) -> None:
    algorithm = settings.endpoint_identification_algorithm.strip().lower()
    if algorithm not in ("", "none", _HOST_NAME_CHECK):
        raise _Refusal(f"{algorithm!r} is not known: use https, or nothing to turn the check of host names off")
    context.check_hostname = algorithm == _HOST_NAME_CHECK


# Whom to trust.


def _trust_key(settings: TlsSettings) -> str:
    if settings.truststore_certificates:
        return "ssl.truststore.certificates"
    return "ssl.ca.location" if settings.ca_location else "ssl.truststore.location"


def _load_trust(context: ssl.SSLContext, settings: TlsSettings) -> None:
    location = settings.ca_location or settings.truststore_location
    text = settings.truststore_certificates
    if text and location:
        raise _Refusal("the trusted certificates are given as text and as a file: keep one")
    if not text and not location:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
        return
    try:
        if text:
            context.load_verify_locations(cadata=_with_line_breaks(text))
        elif location:
            _check_is_pem(location)
            context.load_verify_locations(cafile=location)
    except (ssl.SSLError, ValueError) as error:
        raise _Refusal(f"no certificate can be read from it ({_words(error)}): give certificates as PEM") from None
    except OSError as error:
        raise _Refusal(_unreadable(str(location), error)) from None


# Who we are.


def _identity_key(settings: TlsSettings) -> str:
    if settings.keystore_key or settings.keystore_certificate_chain:
        return "ssl.keystore.key"
    return "ssl.certificate.location" if settings.certificate_location else "ssl.keystore.location"


def _load_identity(context: ssl.SSLContext, settings: TlsSettings) -> None:
    texts = (settings.keystore_key, settings.keystore_certificate_chain)
    if bool(texts[0]) != bool(texts[1]):
        raise _Refusal("ssl.keystore.key and ssl.keystore.certificate.chain belong together: set both")
    if texts[0] and (settings.keystore_location or settings.certificate_location):
        raise _Refusal("the client's key is given as text and as a file: keep one")
    if settings.key_location and not settings.certificate_location:
        raise _Refusal("ssl.key.location needs ssl.certificate.location beside it: set both")
    if texts[0] and texts[1]:
        _load_identity_texts(context, settings, texts[0], texts[1])
    elif settings.certificate_location:
        _load_chain(context, settings, settings.certificate_location, settings.key_location)
    elif settings.keystore_location:
        _load_chain(context, settings, settings.keystore_location, None)


def _load_identity_texts(context: ssl.SSLContext, settings: TlsSettings, key: str, chain: str) -> None:
    # The library reads keys from files only; these are readable by this user alone and gone at once.
    with ExitStack() as stack:
        names = []
        for text in (chain, key):
            file = stack.enter_context(tempfile.NamedTemporaryFile("w", encoding="ascii", suffix=".pem"))
            try:
                file.write(_with_line_breaks(text))
            except UnicodeEncodeError:
                raise _Refusal("it holds characters that PEM does not have") from None
            file.flush()
            names.append(file.name)
        _load_chain(context, settings, names[0], names[1])


def _load_chain(context: ssl.SSLContext, settings: TlsSettings, certificate: str, key: str | None) -> None:
    was_asked = False

    def password() -> str:
        # Called only for an encrypted key; without it the library would ask the terminal.
        nonlocal was_asked
        was_asked = True
        given = settings.key_password or settings.keystore_password
        if given is None:
            raise _Refusal("the private key is encrypted: set ssl.key.password")
        return given

    try:
        for path in (certificate, key):
            if path is not None:
                _check_is_pem(path)
        context.load_cert_chain(certificate, key, password)
    except ssl.SSLError as error:
        raise _Refusal(_identity_words(_words(error), is_encrypted=was_asked)) from None
    except OSError as error:
        raise _Refusal(_unreadable(error.filename or certificate, error)) from None


def _identity_words(words: str, *, is_encrypted: bool) -> str:
    if "MISMATCH" in words.upper():
        return "the private key does not belong to the certificate: give the pair that was made together"
    if is_encrypted:
        return f"the private key cannot be decrypted ({words}): check ssl.key.password"
    return f"it must hold the client's certificate chain and private key as PEM, but cannot be used ({words})"


# Files.


def _check_is_pem(path: str) -> None:
    with open(path, "rb") as file:
        head = file.read(64 * 1024)
    if _PEM_MARK in head:
        return
    for mark, kind in _JAVA_STORES.items():
        if head.startswith(mark):
            raise _Refusal(_how_to_convert(path, kind))
    raise _Refusal(f"{path} holds no PEM: give a file with -----BEGIN CERTIFICATE----- in it")


def _how_to_convert(path: str, kind: str) -> str:
    """A DER certificate also begins like PKCS12; the second command reads both trust and keys."""
    store, pem = f"{path}.p12", f"{path}.pem"
    first = f"keytool -importkeystore -srckeystore {path} -destkeystore {store} -deststoretype PKCS12; "
    if kind == "PKCS12":
        first, store = "", path
    return (
        f"{path} is a {kind} store, which only Java reads; convert it: {first}openssl pkcs12 -in {store} -out {pem} "
        f"(with -nokeys for a trust store; -noenc leaves the key without a password), and give {pem}"
    )


def _with_line_breaks(text: str) -> str:
    r"""PEM in a properties file is often one line, with `\n` or blanks where lines end."""
    text = text.replace("\\n", "\n").strip()
    if "\n" in text:
        return text + "\n"
    parts = text.replace("-----BEGIN ", "\n-----BEGIN ").replace("-----END ", "\n-----END ").strip().split("\n")
    return "\n".join(_unfolded(part.strip()) for part in parts) + "\n"


def _unfolded(part: str) -> str:
    head, mark, body = part.rpartition("-----")
    return f"{head}{mark}\n" + "\n".join(body.split()) if body.strip() else part


def _unreadable(path: str, error: OSError) -> str:
    return f"{path} cannot be read: {error.strerror or error}"


def _words(error: Exception) -> str:
    reason = getattr(error, "reason", None)
    return str(reason or error)
