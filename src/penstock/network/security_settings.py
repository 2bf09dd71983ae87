"""How a client's connections are secured, as Kafka's keys say it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final

from penstock.base.config.declaration import Password
from penstock.security.tls import TlsSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class SecuritySettings:
    """Each field is the key with underscores; `sasl.username` and the three locations are librdkafka's."""

    security_protocol: str = "PLAINTEXT"
    sasl_mechanism: str = "GSSAPI"
    sasl_jaas_config: str | None = field(default=None, repr=False)
    sasl_username: str | None = None
    sasl_password: str | None = field(default=None, repr=False)
    sasl_login_callback_handler_class: Any = None
    """A function, plain or asynchronous, that gives a token; or the name of one of Kafka's own classes."""
    sasl_oauthbearer_token_endpoint_url: str | None = None
    sasl_oauthbearer_client_credentials_client_id: str | None = None
    sasl_oauthbearer_client_credentials_client_secret: str | None = field(default=None, repr=False)
    sasl_oauthbearer_assertion_file: str | None = None
    sasl_oauthbearer_scope: str | None = None
    sasl_oauthbearer_header_urlencode: bool = False
    sasl_login_connect_timeout_ms: int | None = None
    sasl_login_read_timeout_ms: int | None = None
    sasl_login_retry_backoff_ms: int = 100
    sasl_login_retry_backoff_max_ms: int = 10_000
    sasl_login_refresh_window_factor: float = 0.8
    sasl_login_refresh_window_jitter: float = 0.05
    sasl_login_refresh_min_period_seconds: int = 60
    sasl_login_refresh_buffer_seconds: int = 300
    ssl_protocol: str = "TLSv1.3"
    ssl_enabled_protocols: tuple[str, ...] = ("TLSv1.2", "TLSv1.3")
    ssl_cipher_suites: tuple[str, ...] = ()
    ssl_endpoint_identification_algorithm: str = "https"
    ssl_truststore_location: str | None = None
    ssl_truststore_certificates: str | None = field(default=None, repr=False)
    ssl_keystore_location: str | None = None
    ssl_keystore_password: str | None = field(default=None, repr=False)
    ssl_key_password: str | None = field(default=None, repr=False)
    ssl_keystore_key: str | None = field(default=None, repr=False)
    ssl_keystore_certificate_chain: str | None = field(default=None, repr=False)
    ssl_ca_location: str | None = None
    ssl_certificate_location: str | None = None
    ssl_key_location: str | None = None
    ssl_engine_factory_class: Any = None
    """A ready `ssl.SSLContext`, or a function that makes one; the other `ssl_` fields then mean nothing."""
    penstock_sasl_scram_saslprep: bool = False
    """Prepare SCRAM names and passwords by RFC 4013. Kafka itself does not, on either side."""

    @classmethod
    def of(cls, values: Mapping[str, object]) -> SecuritySettings:
        """From values by Kafka's keys; what is missing or None keeps its default, other keys are not looked at."""
        given = {
            name: _plain(values[key], name in _LISTS) for key, name in _FIELDS.items() if values.get(key) is not None
        }
        return cls(**given)

    @property
    def uses_tls(self) -> bool:
        return self.security_protocol.upper() in ("SSL", "SASL_SSL")

    @property
    def uses_sasl(self) -> bool:
        return self.security_protocol.upper().startswith("SASL_")

    def tls(self) -> TlsSettings:
        return TlsSettings(
            protocol=self.ssl_protocol,
            enabled_protocols=self.ssl_enabled_protocols,
            cipher_suites=self.ssl_cipher_suites,
            endpoint_identification_algorithm=self.ssl_endpoint_identification_algorithm,
            truststore_location=self.ssl_truststore_location,
            truststore_certificates=self.ssl_truststore_certificates,
            keystore_location=self.ssl_keystore_location,
            keystore_key=self.ssl_keystore_key,
            keystore_certificate_chain=self.ssl_keystore_certificate_chain,
            keystore_password=self.ssl_keystore_password,
            key_password=self.ssl_key_password,
            ca_location=self.ssl_ca_location,
            certificate_location=self.ssl_certificate_location,
            key_location=self.ssl_key_location,
        )


_FIELDS: Final = {each.name.replace("_", "."): each.name for each in fields(SecuritySettings)}
_LISTS: Final = ("ssl_enabled_protocols", "ssl_cipher_suites")

SECURITY_KEYS: Final = frozenset(_FIELDS)
"""Kafka's names of all the keys that are read here."""


def _plain(value: object, is_list: bool) -> Any:
    if isinstance(value, Password):
        return value.value
    if is_list and isinstance(value, str):
        return tuple(word for part in value.split(",") if (word := part.strip()))
    if is_list and isinstance(value, list | tuple):
        return tuple(map(str, value))
    return value
