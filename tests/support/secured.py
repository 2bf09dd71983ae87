"""Apache Kafka with one listener for every way to be secured, and for every way to get it wrong."""

from __future__ import annotations

from pathlib import Path

from tests.support.brokers import KafkaBroker
from tests.support.certificates import Authority
from tests.support.ports import free_port

USERS = {"alice": "alice-secret", "bo=b": "bob's s=cr t", "celik": "pässwört ª"}
"""User name to password for both SCRAMs. Kafka takes ASCII names only, and does not prepare passwords (RFC 4013): the
last one would be another password if it were prepared."""
PLAIN_USERS = {"alice": "alice-secret"}

SESSION_LIFETIME_MS = 1_500
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")

LISTENERS = {
    "SSL": "SSL",
    "MTLS": "SSL",
    "EXPIRED": "SSL",
    "ELSEWHERE": "SSL",
    "TLS12": "SSL",
    "SASL_PLAINTEXT": "SASL_PLAINTEXT",
    "SASL_SSL": "SASL_SSL",
    "SCRAMONLY": "SASL_PLAINTEXT",
    "SHORT": "SASL_PLAINTEXT",
}
"""Name to protocol. MTLS wants a client certificate; EXPIRED and ELSEWHERE have certificates that are over or made out
to another host; TLS12 knows nothing newer; SCRAMONLY offers SCRAM-SHA-512 alone; SHORT ends sessions soon (KIP-368)."""

_PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
_OAUTH_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"


class SecuredKafka(KafkaBroker):
    """``ports`` has the port of each listener; the plain one is ``port``, as ever."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.ports = {name: free_port() for name in LISTENERS}
        self.authority = Authority(directory / "tls")
        here = "DNS:localhost,IP:127.0.0.1"
        self.client = self.authority.issue("client")
        self._server = self.authority.issue("localhost", here)
        self._expired = self.authority.issue("expired", here, days=-1)
        self._elsewhere = self.authority.issue("elsewhere", "DNS:elsewhere.example")
        self.overrides = self._settings()
        for name, password in USERS.items():
            for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
                self.format_arguments += ["--add-scram", f'{mechanism}=[name={name},password="{password}"]']

    def bootstrap_of(self, listener: str) -> str:
        return f"127.0.0.1:{self.ports[listener]}"

    def _settings(self) -> dict[str, str]:
        named = {"PLAINTEXT": self.port, **self.ports}
        addresses = ",".join(f"{name}://127.0.0.1:{port}" for name, port in named.items())
        protocols = {"PLAINTEXT": "PLAINTEXT", "CONTROLLER": "PLAINTEXT", **LISTENERS}
        return {
            "listeners": f"{addresses},CONTROLLER://127.0.0.1:{self.controller_port}",
            "advertised.listeners": addresses,
            "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in protocols.items()),
            "inter.broker.listener.name": "PLAINTEXT",
            "sasl.enabled.mechanisms": ",".join(MECHANISMS),
            **self._tls_settings(),
            **_sasl_settings(),
        }

    def _tls_settings(self) -> dict[str, str]:
        settings = {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self._server.store),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority.certificate),
            "listener.name.mtls.ssl.client.auth": "required",
            "listener.name.tls12.ssl.enabled.protocols": "TLSv1.2",
            "listener.name.tls12.ssl.client.auth": "required",
        }
        for name, identity in (("expired", self._expired), ("elsewhere", self._elsewhere)):
            settings[f"listener.name.{name}.ssl.keystore.type"] = "PEM"
            settings[f"listener.name.{name}.ssl.keystore.location"] = str(identity.store)
        return settings


def _sasl_settings() -> dict[str, str]:
    users = " ".join(f'user_{name}="{password}"' for name, password in PLAIN_USERS.items())
    modules = {
        "plain": f"{_PLAIN_MODULE} required {users};",
        "scram-sha-256": f"{_SCRAM_MODULE} required;",
        "scram-sha-512": f"{_SCRAM_MODULE} required;",
        "oauthbearer": f'{_OAUTH_MODULE} required unsecuredLoginStringClaim_sub="broker";',
    }
    settings: dict[str, str] = {"listener.name.scramonly.sasl.enabled.mechanisms": "SCRAM-SHA-512"}
    for listener in ("sasl_plaintext", "sasl_ssl", "scramonly", "short"):
        for mechanism, module in modules.items():
            settings[f"listener.name.{listener}.{mechanism}.sasl.jaas.config"] = module
            if listener == "short":
                lifetime = str(SESSION_LIFETIME_MS)
                settings[f"listener.name.{listener}.{mechanism}.connections.max.reauth.ms"] = lifetime
    return settings
