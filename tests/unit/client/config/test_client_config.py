"""A client's configuration: text and objects, mapping and keywords, problems all at once, warnings."""

from __future__ import annotations

import logging
from typing import Any, get_type_hints

import pytest

from penstock.base.config.declaration import ConfigErrors, Password
from penstock.client.config import (
    KEYS,
    AdminOptions,
    ClientConfig,
    ClientKind,
    ConsumerOptions,
    ProducerOptions,
    consumer_keys,
    known_key,
    producer_keys,
)
from penstock.client.config.addresses import parse_addresses
from penstock.client.config.config import _ALIASES
from penstock.client.config.rules import duration_ms
from penstock.network.address import Address


def producer(config: dict[str, Any] | None = None, **options: Any) -> ClientConfig:
    return ClientConfig(ClientKind.PRODUCER, {"bootstrap.servers": "a:1", **(config or {})}, options)


def consumer(config: dict[str, Any] | None = None, **options: Any) -> ClientConfig:
    return ClientConfig(ClientKind.CONSUMER, {"bootstrap.servers": "a:1", **(config or {})}, options)


def test_defaults_are_kafkas() -> None:
    config = producer()
    assert config[producer_keys.LINGER_MS] == 5
    assert config[producer_keys.BATCH_SIZE] == 16_384
    assert config[producer_keys.BUFFER_MEMORY] == 32 * 1024 * 1024
    assert config[producer_keys.ENABLE_IDEMPOTENCE] is True
    assert config[producer_keys.ACKS] == "all"
    assert consumer()[consumer_keys.AUTO_OFFSET_RESET] == "latest"
    assert consumer()[consumer_keys.MAX_POLL_RECORDS] == 500
    assert consumer()[consumer_keys.GROUP_PROTOCOL] == "classic"


def test_keywords_win_over_the_mapping_and_text_is_read_as_kafka_reads_it() -> None:
    config = producer({"linger.ms": "7", "batch.size": " 100 ", "enable.idempotence": "FALSE"}, linger_ms=9)
    assert config[producer_keys.LINGER_MS] == 9
    assert config[producer_keys.BATCH_SIZE] == 100
    assert config[producer_keys.ENABLE_IDEMPOTENCE] is False
    assert config.is_given(producer_keys.LINGER_MS)
    assert not config.is_given(producer_keys.ACKS)


def test_objects_are_values_too() -> None:
    class Interceptor:
        pass

    config = producer(key_serializer=str.encode, interceptor_classes=[Interceptor], partitioner=max)
    assert config[producer_keys.KEY_SERIALIZER] is str.encode or config[producer_keys.KEY_SERIALIZER] == str.encode
    assert config[producer_keys.INTERCEPTOR_CLASSES] == (Interceptor,)
    assert config[producer_keys.PARTITIONER_CLASS] is max
    assert producer({"interceptor.classes": "a.B, c.D"})[producer_keys.INTERCEPTOR_CLASSES] == ("a.B", "c.D")
    assert consumer(offset_store=Interceptor)[consumer_keys.OFFSET_STORE] is Interceptor


def test_every_problem_is_reported_at_once() -> None:
    with pytest.raises(ConfigErrors) as raised:
        producer(linger_ms=-1, acks="2", batch_size="x", compression_type="brotli", bootstrap_servers="a:b")
    assert {each.key for each in raised.value.problems} == {
        "linger.ms",
        "acks",
        "batch.size",
        "compression.type",
        "bootstrap.servers",
    }


def test_an_unknown_keyword_names_the_nearest() -> None:
    with pytest.raises(TypeError, match="no option 'lingr_ms': did you mean linger_ms"):
        producer(lingr_ms=5)


def test_an_unknown_key_and_one_without_effect_are_warnings(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        config = producer({"lingr.ms": 1, "ssl.provider": "BC", "enable.metrics.push": True})
    assert config.warnings == (
        "lingr.ms is not a key of a producer and is ignored; did you mean linger.ms?",
        "ssl.provider has no effect: there is no Java virtual machine here",
    )
    assert [record.getMessage() for record in caplog.records] == list(config.warnings)


def test_a_key_that_is_missing_because_it_was_misspelt_keeps_its_hint() -> None:
    with pytest.raises(ConfigErrors, match=r"bootstrap\.server: is not a key .*; did you mean bootstrap\.servers\?"):
        ClientConfig(ClientKind.PRODUCER, {"bootstrap.server": "localhost:9092"})


@pytest.mark.parametrize("given", ["localhost:9092", ["localhost:9092"], 5])
def test_something_else_than_a_mapping_says_how_to_write_it(given: Any) -> None:
    with pytest.raises(TypeError, match=r"is a mapping of Kafka's keys, .*: write Producer\(bootstrap_servers='"):
        ClientConfig(ClientKind.PRODUCER, given)


def test_secrets_stay_hidden() -> None:
    config = producer({"sasl.password": "hunter2"})
    assert config[producer_keys.SASL_PASSWORD] == Password("hunter2")
    assert config.describe()["sasl.password"].value is None
    assert "hunter2" not in repr(config)


def test_describe_shows_values_as_text() -> None:
    described = producer(acks=1, linger_ms=0).describe()
    assert described["acks"].value == "1"
    assert not described["acks"].is_default
    assert described["batch.size"].value == "16384"
    assert described["batch.size"].is_default


@pytest.mark.parametrize("options", [{"acks": 1}, {"acks": "0"}, {"retries": 0}])
def test_idempotence_goes_off_by_itself_unless_it_was_asked_for(options: dict[str, Any]) -> None:
    assert producer(**options)[producer_keys.ENABLE_IDEMPOTENCE] is False
    with pytest.raises(ConfigErrors, match=r"enable\.idempotence"):
        producer(enable_idempotence=True, **options)
    with pytest.raises(ConfigErrors):
        producer(transactional_id="t", **options)


def test_the_rules_over_several_keys() -> None:
    with pytest.raises(ConfigErrors, match=r"delivery\.timeout\.ms"):
        producer(delivery_timeout_ms=1_000)
    assert producer(request_timeout_ms=200_000)[producer_keys.DELIVERY_TIMEOUT_MS] == 200_005
    with pytest.raises(ConfigErrors, match=r"heartbeat\.interval\.ms"):
        consumer(session_timeout_ms=3_000)
    with pytest.raises(ConfigErrors, match=r"bootstrap\.servers"):
        ClientConfig(ClientKind.ADMIN)
    with pytest.raises(ConfigErrors, match="Kerberos"):
        consumer(security_protocol="sasl_ssl")


def test_minus_one_acks_is_all_and_words_are_in_one_case() -> None:
    assert producer(acks=-1)[producer_keys.ACKS] == "all"
    assert consumer(isolation_level="READ_COMMITTED")[consumer_keys.ISOLATION_LEVEL] == "read_committed"
    assert producer(security_protocol="ssl")[producer_keys.SECURITY_PROTOCOL] == "SSL"


def test_addresses() -> None:
    assert parse_addresses(["a", "b:1", "[::1]:5", "fe80::1", "PLAINTEXT://c:3", "a"]) == (
        Address("a", 9092),
        Address("b", 1),
        Address("::1", 5),
        Address("fe80::1", 9092),
        Address("c", 3),
    )
    assert producer(bootstrap_servers=["x:1", "y:2"])[producer_keys.BOOTSTRAP_SERVERS] == ("x:1", "y:2")


@pytest.mark.parametrize("bad", ["", ":1", "a:", "a:b", "a:0", "a:70000", "[::1", "[::1]x"])
def test_what_is_no_address(bad: str) -> None:
    with pytest.raises(ValueError, match=r"form host:port|port"):
        parse_addresses([bad])


@pytest.mark.parametrize(
    ("text", "expected_ms"), [("PT1S", 1000), ("P1D", 86_400_000), ("PT1H30M", 5_400_000), ("P1DT0.5S", 86_400_500)]
)
def test_durations(text: str, expected_ms: int) -> None:
    assert duration_ms(text) == expected_ms
    assert consumer(auto_offset_reset=f"by_duration:{text}")


@pytest.mark.parametrize("bad", ["P", "PT", "1H", "PT1X", ""])
def test_what_is_no_duration(bad: str) -> None:
    with pytest.raises(ConfigErrors, match="duration"):
        consumer(auto_offset_reset=f"by_duration:{bad}")


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (ClientKind.PRODUCER, ProducerOptions),
        (ClientKind.CONSUMER, ConsumerOptions),
        (ClientKind.ADMIN, AdminOptions),
    ],
)
def test_the_typed_keywords_are_the_declared_keys(kind: ClientKind, options: type) -> None:
    names = {name.replace("_", ".") for name in get_type_hints(options)}
    assert names - set(_ALIASES) == set(KEYS[kind])
    assert all(_ALIASES[name] in KEYS[kind] for name in names & set(_ALIASES))


def test_every_key_has_a_text_and_a_default_that_its_rule_allows() -> None:
    for keys in KEYS.values():
        for key in keys.values():
            assert key.doc
            if key.rule is not None and key.default is not None:
                key.rule.check(key.default)


def test_a_key_by_its_name_or_by_another_clients_name_for_it() -> None:
    known = known_key(ClientKind.PRODUCER, "linger.ms")
    assert known is not None
    assert known.name == "linger.ms"
    assert all(any(known_key(kind, name) for kind in ClientKind) for name in _ALIASES)
    assert known_key(ClientKind.CONSUMER, "linger.ms") is None
    assert known_key(ClientKind.ADMIN, "no.such.key") is None
