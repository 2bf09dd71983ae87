"""Types, rules and the declared keys themselves, held against what Kafka 4.3.1 declares."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.base.config import broker_keys, declaration, topic_keys
from penstock.base.config.declaration import INT_MAX, Key, Password, UpdateMode
from penstock.base.config.rules import BadValueError
from penstock.base.config.text import closest, format_double

FACTS = json.loads((Path(__file__).parent / "data" / "kafka-4.3.1-keys.json").read_text())

# Kafka cannot start without these; here they have defaults.
REQUIRED_IN_KAFKA = {"node.id": "1", "process.roles": "", "controller.listener.names": ""}


def constant_name(key_name: str) -> str:
    return key_name.replace(".", "_").replace("-", "_").upper()


@pytest.mark.parametrize("fact", FACTS["broker"], ids=lambda fact: fact["name"])
def test_every_broker_key_of_kafka_is_declared_as_there(fact: dict[str, Any]) -> None:
    key = getattr(broker_keys, constant_name(fact["name"]))
    assert_declared_as(key, fact)
    assert key.update.value == fact["update"]


@pytest.mark.parametrize("fact", FACTS["topic"], ids=lambda fact: fact["name"])
def test_every_topic_key_of_kafka_is_declared_as_there(fact: dict[str, Any]) -> None:
    key = getattr(topic_keys, constant_name(fact["name"]))
    assert_declared_as(key, fact)
    assert [synonym.name for synonym in key.synonyms] == fact["synonyms"]


def assert_declared_as(key: Key[Any], fact: dict[str, Any]) -> None:
    default = REQUIRED_IN_KAFKA[key.name] if fact["required"] else fact["default"]
    assert (key.name, key.type.name, key.internal) == (fact["name"], fact["type"], fact["internal"])
    assert key.format(key.default) == default
    assert key.doc.endswith("."), "a sentence"
    if default is not None:
        assert key.parse(default) == key.default, "a default obeys its own rule"
    if fact["allowed"] and fact["allowed"].endswith(",...]"):
        lowest = int(fact["allowed"][1:-5])
        assert key.parse(str(lowest)) == lowest
        with pytest.raises(BadValueError, match=f"at least {lowest}"):
            key.parse(str(lowest - 1))


def test_there_are_no_other_keys_but_our_own() -> None:
    known = {fact["name"] for fact in FACTS["broker"]}
    assert all(name in known or name.startswith("penstock.") for name in broker_keys.KEYS)
    assert set(topic_keys.KEYS) == {fact["name"] for fact in FACTS["topic"]}


def test_a_synonym_is_a_broker_key() -> None:
    for key in topic_keys.KEYS.values():
        assert all(synonym.name in broker_keys.KEYS for synonym in key.synonyms)


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        (broker_keys.AUTO_CREATE_TOPICS_ENABLE, " TRUE ", True),
        (broker_keys.NUM_PARTITIONS, "+3", 3),
        (broker_keys.NUM_PARTITIONS, " 7 ", 7),
        (broker_keys.MAX_CONNECTIONS, "2147483647", INT_MAX),
        (broker_keys.LOG_CLEANER_MIN_CLEANABLE_RATIO, "1", 1.0),
        (broker_keys.LOG_CLEANER_MIN_CLEANABLE_RATIO, ".5", 0.5),
        (broker_keys.LOG_CLEANER_MIN_CLEANABLE_RATIO, "5e-1d", 0.5),
        (broker_keys.LOG_CLEANUP_POLICY, "compact , delete", ("compact", "delete")),
        (broker_keys.LOG_CLEANUP_POLICY, "compact,compact", ("compact",)),
        (broker_keys.LOG_CLEANUP_POLICY, "", ()),
        (broker_keys.COMPRESSION_GZIP_LEVEL, "-1", -1),
        (broker_keys.BROKER_RACK, " a b ", "a b"),
        (broker_keys.GROUP_CONSUMER_MIGRATION_POLICY, "Upgrade", "Upgrade"),
        (broker_keys.SSL_KEY_PASSWORD, "secret", Password("secret")),
        (topic_keys.LEADER_REPLICATION_THROTTLED_REPLICAS, "0:1,1:2", ("0:1", "1:2")),
        (topic_keys.LEADER_REPLICATION_THROTTLED_REPLICAS, "*", ("*",)),
    ],
)
def test_parse(key: Key[Any], text: str, value: object) -> None:
    assert key.parse(text) == value


@pytest.mark.parametrize(
    ("key", "text", "reason"),
    [
        (broker_keys.AUTO_CREATE_TOPICS_ENABLE, "yes", "Expected value to be either true or false"),
        (broker_keys.NUM_PARTITIONS, "", "Not a number of type INT"),
        (broker_keys.NUM_PARTITIONS, "1_0", "Not a number of type INT"),
        (broker_keys.NUM_PARTITIONS, "٣", "Not a number of type INT"),
        (broker_keys.NUM_PARTITIONS, "2147483648", "Not a number of type INT"),
        (broker_keys.OFFSETS_TOPIC_REPLICATION_FACTOR, "32768", "Not a number of type SHORT"),
        (broker_keys.LOG_RETENTION_MS, "9223372036854775808", "Not a number of type LONG"),
        (broker_keys.NUM_PARTITIONS, "0", "Value must be at least 1"),
        (broker_keys.LOG_CLEANER_MIN_CLEANABLE_RATIO, "1.5", "Value must be no more than 1"),
        (broker_keys.LOG_CLEANER_MIN_CLEANABLE_RATIO, "NaN", "Value must be at least 0"),
        (broker_keys.LOG_CLEANER_MIN_CLEANABLE_RATIO, "half", "Not a number of type DOUBLE"),
        (broker_keys.COMPRESSION_GZIP_LEVEL, "0", "Value must be between 1 and 9 or equal to -1"),
        (broker_keys.LOG_CLEANUP_POLICY, "delete,", "values must not be empty"),
        (broker_keys.LOG_CLEANUP_POLICY, "zap", "String must be one of: compact, delete"),
        (broker_keys.LOG_MESSAGE_TIMESTAMP_TYPE, "createtime", "String must be one of: CreateTime, LogAppendTime"),
        (topic_keys.LEADER_REPLICATION_THROTTLED_REPLICAS, "1:2,x", "must be the literal"),
        (broker_keys.REMOTE_LOG_STORAGE_MANAGER_IMPL_PREFIX, "", "must not be empty"),
    ],
)
def test_parse_refuses(key: Key[Any], text: str, reason: str) -> None:
    with pytest.raises(BadValueError) as raised:
        key.parse(text)
    assert reason in str(raised.value)


@given(st.integers(-(2**63), 2**63 - 1))
def test_integers_round_trip(value: int) -> None:
    key = declaration.long("k", 0, "A number.")
    assert key.parse(key.format(value) or "") == value


@given(st.floats(allow_nan=False))
def test_doubles_round_trip(value: float) -> None:
    assert declaration.double("k", 0.0, "A number.").parse(format_double(value)) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, "0.5"), (1.0, "1.0"), (0.0, "0.0"), (1e7, "1.0E7"), (9999999.0, "9999999.0"), (0.001, "0.001"),
        (1e-4, "1.0E-4"), (1.7976931348623157e308, "1.7976931348623157E308"), (-2.5e-5, "-2.5E-5"),
        (123456789.0, "1.23456789E8"), (float("inf"), "Infinity"), (float("nan"), "NaN"),
    ],
)  # fmt: skip
def test_doubles_look_as_in_java(value: float, text: str) -> None:
    assert format_double(value) == text


def test_a_secret_is_never_shown() -> None:
    secret = broker_keys.SSL_KEY_PASSWORD.parse("hunter2")
    assert secret is not None
    assert secret.value == "hunter2"
    assert "hunter2" not in f"{secret} {secret!r}"
    assert broker_keys.SSL_KEY_PASSWORD.format(secret) is None


def test_only_secrets_are_sensitive() -> None:
    assert broker_keys.SASL_JAAS_CONFIG.sensitive
    assert not broker_keys.SSL_KEYSTORE_LOCATION.sensitive


def test_update_modes() -> None:
    assert broker_keys.LISTENERS.update is UpdateMode.PER_BROKER
    assert broker_keys.MESSAGE_MAX_BYTES.update is UpdateMode.CLUSTER_WIDE
    assert broker_keys.NODE_ID.update is UpdateMode.READ_ONLY


def test_allowed_says_what_a_value_may_be() -> None:
    assert broker_keys.NUM_PARTITIONS.allowed == "a 32-bit integer, at least 1"
    assert broker_keys.COMPRESSION_GZIP_LEVEL.allowed == "a 32-bit integer, 1 to 9, or -1"
    assert broker_keys.LOG_MESSAGE_TIMESTAMP_TYPE.allowed == "text, one of CreateTime, LogAppendTime"


def test_closest_finds_the_misspelt_name() -> None:
    assert closest("num.partition", broker_keys.KEYS) == "num.partitions"
    assert closest("wholly.other", broker_keys.KEYS) is None
