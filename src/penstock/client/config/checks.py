"""Rules over several keys, and values that follow from others, as Kafka's clients have them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Final

from penstock.base.config.declaration import Problem
from penstock.base.config.rules import BadValueError
from penstock.client.config.addresses import parse_addresses
from penstock.client.config.foreign import PARTITIONERS, REFUSED_PARTITIONERS

_IDEMPOTENT_IN_FLIGHT_MAX: Final = 5


def adjust(values: dict[str, Any], given: Collection[str]) -> None:
    """Values that others decide, where the user did not."""
    for name in ("security.protocol", "isolation.level", "group.protocol"):
        if name in values:
            upper = name == "security.protocol"
            values[name] = values[name].upper() if upper else values[name].lower()
    if "acks" in values:
        _adjust_producer(values, given)


def _adjust_producer(values: dict[str, Any], given: Collection[str]) -> None:
    if values["acks"] == "-1":
        values["acks"] = "all"
    named = values["partitioner.class"]
    if isinstance(named, str) and (name := named.rpartition(".")[2]) in PARTITIONERS:
        values |= {"partitioner.class": None, **PARTITIONERS[name]}
    if "enable.idempotence" not in given and "transactional.id" not in given and any(against_idempotence(values)):
        values["enable.idempotence"] = False
    if "delivery.timeout.ms" not in given:
        least = values["linger.ms"] + values["request.timeout.ms"]
        values["delivery.timeout.ms"] = max(values["delivery.timeout.ms"], min(least, 2**31 - 1))


def problems_together(values: dict[str, Any], given: Collection[str]) -> Iterator[Problem]:
    yield from _addresses(values)
    yield from _security(values)
    if "acks" in values:
        yield from _producer(values, given)
    if "session.timeout.ms" in values:
        yield from _consumer(values)


def _addresses(values: dict[str, Any]) -> Iterator[Problem]:
    servers = values["bootstrap.servers"]
    if not servers:
        yield Problem(key="bootstrap.servers", reason="must name at least one broker as host:port")
        return
    try:
        parse_addresses(servers)
    except BadValueError as error:
        yield Problem(key="bootstrap.servers", reason=error.reason, value=error.value)


def _security(values: dict[str, Any]) -> Iterator[Problem]:
    if values["security.protocol"].startswith("SASL_") and values["sasl.mechanism"] == "GSSAPI":
        yield Problem(
            key="sasl.mechanism",
            value="GSSAPI",
            reason="Kerberos is not supported: set PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER",
        )


def against_idempotence(values: dict[str, Any]) -> Iterator[Problem]:
    """What cannot be together with idempotence."""
    if values["acks"] != "all":
        yield Problem(key="acks", value=values["acks"], reason="must be all with enable.idempotence")
    if values["retries"] == 0:
        yield Problem(key="retries", value="0", reason="must not be 0 with enable.idempotence")
    in_flight = values["max.in.flight.requests.per.connection"]
    if in_flight > _IDEMPOTENT_IN_FLIGHT_MAX:
        yield Problem(
            key="max.in.flight.requests.per.connection",
            value=str(in_flight),
            reason=f"must be at most {_IDEMPOTENT_IN_FLIGHT_MAX} with enable.idempotence",
        )


def _producer(values: dict[str, Any], given: Collection[str]) -> Iterator[Problem]:
    partitioner = values["partitioner.class"]
    if isinstance(partitioner, str) and partitioner in REFUSED_PARTITIONERS:
        yield Problem(key="partitioner.class", value=partitioner, reason=REFUSED_PARTITIONERS[partitioner])
    if values["enable.idempotence"]:
        yield from against_idempotence(values)
    elif values["transactional.id"]:
        yield Problem(key="transactional.id", reason="needs enable.idempotence")
    if values["transactional.id"] == "":
        yield Problem(key="transactional.id", reason="must not be empty")
    least = values["linger.ms"] + values["request.timeout.ms"]
    if values["delivery.timeout.ms"] < least and "delivery.timeout.ms" in given:
        yield Problem(
            key="delivery.timeout.ms",
            value=str(values["delivery.timeout.ms"]),
            reason=f"must be at least linger.ms + request.timeout.ms = {least}",
        )
    if values["compression.gzip.level"] == 0:
        yield Problem(key="compression.gzip.level", value="0", reason="must be -1 or 1 to 9")


def _consumer(values: dict[str, Any]) -> Iterator[Problem]:
    if values["heartbeat.interval.ms"] >= values["session.timeout.ms"]:
        yield Problem(
            key="heartbeat.interval.ms",
            value=str(values["heartbeat.interval.ms"]),
            reason=f"must be below session.timeout.ms = {values['session.timeout.ms']}",
        )
    for name in ("group.id", "group.instance.id"):
        if values[name] == "":
            yield Problem(key=name, reason="must not be empty: leave it out, or give a name")
