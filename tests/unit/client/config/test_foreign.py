"""Settings as other clients name them, and settings that do something which was hardly meant: both are told."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from penstock.base.config.declaration import ConfigErrors
from penstock.client.config import KEYS, ClientConfig, ClientKind, consumer_keys, foreign, known_key, producer_keys

PRODUCER, CONSUMER, ADMIN = ClientKind


def made(kind: ClientKind, config: dict[str, Any] | None = None, **options: Any) -> ClientConfig:
    return ClientConfig(kind, {"bootstrap.servers": "a:1", **(config or {})}, options)


# Names.


@pytest.mark.parametrize(
    ("kind", "name", "hint"),
    [
        (PRODUCER, "metadata.broker.list", "it is librdkafka's name: use bootstrap.servers"),
        (PRODUCER, "queue.buffering.max.ms", "it is librdkafka's name: use linger.ms"),
        (PRODUCER, "queue.buffering.max.kbytes", "use buffer.memory, in bytes"),
        (PRODUCER, "queue.buffering.max.messages", "by buffer.memory"),
        (PRODUCER, "message.max.bytes", "use max.request.size"),
        (PRODUCER, "compression.codec", "use compression.type"),
        (PRODUCER, "request.required.acks", "use acks"),
        (PRODUCER, "message.timeout.ms", "use delivery.timeout.ms"),
        (PRODUCER, "batch.num.messages", "by batch.size"),
        (
            PRODUCER,
            "fetch.wait.max.ms",
            "it is librdkafka's name for fetch.max.wait.ms, which a producer does not have",
        ),
        (CONSUMER, "fetch.wait.max.ms", "use fetch.max.wait.ms"),
        (CONSUMER, "enable.partition.eof", "lag(partition) is 0"),
        (CONSUMER, "socket.timeout.ms", "use request.timeout.ms"),
        (CONSUMER, "ssl_context", "it is aiokafka's name: use ssl.engine.factory.class"),
        (ADMIN, "statistics.interval.ms", "call metrics()"),
    ],
)
def test_another_clients_key_is_a_warning_that_names_ours(kind: ClientKind, name: str, hint: str) -> None:
    (warning,) = made(kind, {name: "1"}).warnings
    assert warning.startswith(f"{name} is not a key of a")
    assert hint in warning


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("ssl_cafile", "it is kafka-python's name: use ssl_ca_location"),
        ("ssl_certfile", "use ssl_certificate_location"),
        ("ssl_keyfile", "use ssl_key_location"),
        ("ssl_context", "it is aiokafka's name: use ssl_engine_factory_class"),
        ("api_version", "leave it out: each broker is asked"),
        ("consumer_timeout_ms", r"give timeout_ms to poll\(\)"),
        ("error_cb", "errors are raised"),
        ("log_level", r"the loggers penstock\.client\.\.\. of"),
        ("queued_min_messages", "by penstock_prefetch_bytes"),
    ],
)
def test_another_clients_keyword_is_an_error_that_names_ours(name: str, hint: str) -> None:
    options: dict[str, Any] = {name: 1}
    with pytest.raises(TypeError, match=f"a consumer has no option '{name}': .*{hint}"):
        made(CONSUMER, **options)


def test_names_that_mean_the_same_are_taken() -> None:
    config = made(CONSUMER, sasl_plain_username="me", sasl_plain_password="x", security_protocol="SASL_SSL",
                  sasl_mechanism="PLAIN")  # fmt: skip
    assert config[consumer_keys.SASL_USERNAME] == "me"
    assert config.warnings == ()


def test_hints_name_keys_that_are_there_for_names_that_are_not() -> None:
    ours = {name for keys in KEYS.values() for name in keys}
    assert set(foreign._KEYS.values()) <= ours
    assert not any(known_key(kind, name) for kind in ClientKind for name in (*foreign._KEYS, *foreign._ADVICE))
    for settings in foreign.PARTITIONERS.values():
        assert set(settings) <= set(KEYS[PRODUCER])


def test_the_servers_under_another_clients_name_keep_the_hint() -> None:
    with pytest.raises(ConfigErrors, match=r"metadata\.broker\.list: .*use bootstrap\.servers"):
        ClientConfig(PRODUCER, {"metadata.broker.list": "a:1"})


def test_a_dict_takes_underscores() -> None:
    """`bootstrap_servers` in a dict was ignored, and then missing."""
    config = ClientConfig(PRODUCER, {"bootstrap_servers": "a:1", "linger_ms": 7, "sasl_plain_username": None})
    assert config[producer_keys.BOOTSTRAP_SERVERS] == ("a:1",)
    assert config[producer_keys.LINGER_MS] == 7
    assert config.warnings == ()


# Values.


@pytest.mark.parametrize(
    ("given", "ignores_keys", "keyless"),
    [
        ("murmur2_random", False, "sticky"),
        ("org.apache.kafka.clients.producer.internals.DefaultPartitioner", False, "sticky"),
        ("DefaultPartitioner", False, "sticky"),
        ("org.apache.kafka.clients.producer.UniformStickyPartitioner", True, "sticky"),
        ("org.apache.kafka.clients.producer.RoundRobinPartitioner", True, "round_robin"),
        ("random", True, "random"),
    ],
)
def test_a_named_partitioner_is_the_settings_that_do_the_same(given: str, ignores_keys: bool, keyless: str) -> None:
    config = made(PRODUCER, partitioner=given)
    assert config[producer_keys.PARTITIONER_CLASS] is None
    assert config[producer_keys.PARTITIONER_IGNORE_KEYS] is ignores_keys
    assert config[producer_keys.PARTITIONER_KEYLESS] == keyless


@pytest.mark.parametrize(
    ("given", "remedy"),
    [
        ("consistent_random", r"zlib\.crc32\(key_bytes\) % snapshot\.partition_count\(topic\)"),
        ("consistent", "CRC32"),
        ("fnv1a_random", "FNV-1a"),
        ("murmur2", r"penstock\.partitioner\.keyless"),
    ],
)
def test_a_partitioner_without_an_equivalent_is_refused_with_what_to_do(given: str, remedy: str) -> None:
    with pytest.raises(ConfigErrors, match=rf"partitioner\.class={given}: .*{remedy}"):
        made(PRODUCER, {"partitioner": given})


@pytest.mark.parametrize(("given", "ours"), [("smallest", "earliest"), ("largest", "latest"), ("end", "latest")])
def test_another_clients_reset_names_ours(given: str, ours: str) -> None:
    with pytest.raises(ConfigErrors, match=f"{given} is other clients' word for {ours}"):
        made(CONSUMER, auto_offset_reset=given)


@pytest.mark.parametrize("given", ["consumer", "CONSUMER", "streams"])
def test_the_newer_group_protocol_says_that_classic_works(given: str) -> None:
    with pytest.raises(ConfigErrors, match=r"does not speak .* \(KIP-848\).*classic, which works with every broker"):
        made(CONSUMER, group_protocol=given)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (
            {"linger_ms": 0.5},
            r"linger\.ms=0\.5: must be a whole number of milliseconds \(a 64-bit integer, at least 0\)",
        ),
        ({"retries": "many"}, r"retries=many: must be a whole number \(a 32-bit integer, at least 0\)"),
        ({"send_buffer_bytes": 2**40}, "must be a whole number of bytes"),
    ],
)
def test_numbers_are_told_without_javas_types(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigErrors, match=text):
        made(PRODUCER, **options)


def test_keys_that_are_no_text() -> None:
    config: Any = {1: 2}
    with pytest.raises(TypeError, match=r"the keys of a producer are text such as 'client\.id', not 1"):
        ClientConfig(PRODUCER, config)


@pytest.mark.parametrize(
    ("kind", "options", "remedy"),
    [
        (CONSUMER, {}, r"topics are given to subscribe\(\)"),
        (CONSUMER, {"bootstrap_servers": "a:1"}, r"topics are given to subscribe\(\)"),
        (PRODUCER, {}, r"a topic is given to send\(\)"),
    ],
)
def test_a_topic_in_the_place_of_the_settings(kind: ClientKind, options: dict[str, Any], remedy: str) -> None:
    config: Any = "mytopic"
    with pytest.raises(TypeError, match=rf"not 'mytopic': .*bootstrap_servers='host:9092'.*{remedy}"):
        ClientConfig(kind, config, options)


# What is said in the log.


@pytest.mark.parametrize(
    ("options", "cause"),
    [
        ({"acks": 1}, "acks=1"),
        ({"retries": 0}, "retries=0"),
        ({"max_in_flight_requests_per_connection": 6}, "max.in.flight.requests.per.connection=6"),
        ({"acks": "0", "retries": 0}, "acks=0 and retries=0"),
    ],
)
def test_what_turns_idempotence_off_is_told_once(
    options: dict[str, Any], cause: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        made(PRODUCER, **options)
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert f"idempotence is off because of {cause}: " in record.getMessage()
    assert made(PRODUCER, enable_idempotence=False, **options).warnings == ()


@pytest.mark.parametrize(
    ("options", "name", "protocol"),
    [
        ({"sasl_mechanism": "PLAIN"}, "sasl.mechanism", "SASL_SSL"),
        ({"sasl_username": "me", "sasl_password": "x"}, "sasl.username", "SASL_SSL"),
        ({"sasl_jaas_config": "x required;", "ssl_ca_location": "ca.pem"}, "sasl.jaas.config", "SASL_SSL"),
        ({"ssl_ca_location": "ca.pem"}, "ssl.ca.location", "SSL"),
    ],
)
@pytest.mark.parametrize("kind", ClientKind)
def test_credentials_that_are_not_used_are_told(
    kind: ClientKind, options: dict[str, Any], name: str, protocol: str
) -> None:
    (warning,) = made(kind, **options).warnings
    assert warning.startswith(f"{name} has no effect without security.protocol: ")
    assert f"set security.protocol to {protocol}" in warning
    assert made(kind, security_protocol="PLAINTEXT", **options).warnings == ()
