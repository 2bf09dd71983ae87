"""What a configuration does that its user may not have meant; each is a warning in the log of the client."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Final

from penstock.client.config.checks import against_idempotence

_OF_SASL: Final = (
    "sasl.mechanism",
    "sasl.username",
    "sasl.password",
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.oauthbearer.token.endpoint.url",
)
_OF_TLS: Final = (
    "ssl.ca.location",
    "ssl.certificate.location",
    "ssl.key.location",
    "ssl.truststore.location",
    "ssl.truststore.certificates",
    "ssl.keystore.location",
    "ssl.keystore.key",
    "ssl.engine.factory.class",
)


def cautions(values: dict[str, Any], given: Collection[str]) -> Iterator[str]:
    if "security.protocol" not in given:
        yield from _plain_connection(values, given)
    if "acks" in values and "enable.idempotence" not in given and not values["enable.idempotence"]:
        causes = " and ".join(f"{each.key}={each.value}" for each in against_idempotence(values))
        yield (
            f"idempotence is off because of {causes}: a record that is sent again may be there twice or out of order; "
            "set enable.idempotence=false if that is meant"
        )


def _plain_connection(values: dict[str, Any], given: Collection[str]) -> Iterator[str]:
    of_sasl, of_tls = (
        [name for name in names if name in given and values[name] is not None] for names in (_OF_SASL, _OF_TLS)
    )
    if of_sasl:
        yield (
            f"{of_sasl[0]} has no effect without security.protocol: the client connects without authentication and "
            "encryption; set security.protocol to SASL_SSL, or to SASL_PLAINTEXT for a broker without TLS"
        )
    elif of_tls:
        yield (
            f"{of_tls[0]} has no effect without security.protocol: the client connects without encryption; set "
            "security.protocol to SSL"
        )
