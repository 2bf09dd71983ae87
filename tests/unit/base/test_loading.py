"""Profile, file, environment and flags become one configuration; every problem is told at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.base.config import broker_keys as keys
from penstock.base.config.broker import BrokerConfig
from penstock.base.config.declaration import ConfigErrors
from penstock.base.config.effective import (
    connections_per_ip_overrides,
    effective_min_isr,
    log_retention_ms,
    log_roll_jitter_ms,
    log_roll_ms,
)
from penstock.base.config.internal_topics import offsets_topic, transaction_state_topic
from penstock.base.config.loading import load_broker_config, variable_to_key
from penstock.base.config.sources import Source

# The settings of the server.properties that Kafka 4 ships.
STOCK_SERVER_PROPERTIES = """
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/tmp/kraft-combined-logs
num.partitions=1
num.recovery.threads.per.data.dir=2
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "server.properties"


def problems_of(values: dict[str, str]) -> str:
    with pytest.raises(ConfigErrors) as raised:
        BrokerConfig.of(values)
    return str(raised.value)


def test_without_anything_there_are_kafkas_defaults() -> None:
    config = load_broker_config(hostname="here")
    assert config[keys.NUM_PARTITIONS] == 1
    assert config.node_id == 1
    assert config.log_dirs == ("/tmp/kafka-logs",)
    assert [str(entry) for entry in config.listeners] == ["PLAINTEXT://:9092"]
    assert [str(entry) for entry in config.advertised_listeners] == ["PLAINTEXT://here:9092"]


def test_flags_over_environment_over_file_over_profile(file: Path) -> None:
    file.write_text("num.partitions=2\nmessage.max.bytes=2\nlog.roll.hours=2\nlisteners=PLAINTEXT://127.0.0.1:2\n")
    environ = {"KAFKA_NUM_PARTITIONS": "3", "KAFKA_MESSAGE_MAX_BYTES": "3"}
    config = load_broker_config(file, environ, {"num.partitions": "4"}, "development")
    assert config[keys.NUM_PARTITIONS] == 4
    assert config[keys.MESSAGE_MAX_BYTES] == 3
    assert config[keys.LOG_ROLL_HOURS] == 2
    assert config.listeners[0].port == 2
    assert config[keys.GROUP_INITIAL_REBALANCE_DELAY_MS] == 0
    origins = [next(config.settings_of(key.name))[1].origin for key in (keys.NUM_PARTITIONS, keys.MESSAGE_MAX_BYTES)]
    assert origins == ["flag", "KAFKA_MESSAGE_MAX_BYTES"]
    assert next(config.settings_of("log.roll.hours"))[1].origin == f"{file}:3"


def test_a_later_name_beats_an_earlier_other_name(file: Path) -> None:
    file.write_text("broker.id=5\nlog.dir=/a\n")
    config = load_broker_config(file, {}, {"node.id": "6", "log.dirs": "/b,/c"})
    assert (config.node_id, config[keys.BROKER_ID], config.log_dirs) == (6, 6, ("/b", "/c"))
    assert load_broker_config(file, {}, {"log.dirs": "/d"}).node_id == 5


def test_the_development_profile_starts_silently_and_for_this_machine_alone() -> None:
    config = load_broker_config(profile="development")
    assert config.warnings == ()
    assert str(config.advertised_listeners[0]) == "PLAINTEXT://127.0.0.1:9092"
    assert config.source_of(keys.OFFSETS_TOPIC_REPLICATION_FACTOR) is Source.STATIC_BROKER


@pytest.mark.parametrize(
    ("variable", "key"),
    [
        ("KAFKA_LOG_DIRS", "log.dirs"),
        ("KAFKA_Some_Key", "some.key"),
        ("KAFKA_A__B___C_D", "a_b-c.d"),
        ("KAFKA_LISTENER_NAME_SASL__SSL_SCRAM___SHA___256_SASL_JAAS_CONFIG",
         "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config"),
    ],
)  # fmt: skip
def test_variables_are_keys(variable: str, key: str) -> None:
    assert variable_to_key(variable) == key


@pytest.mark.parametrize(
    "variable",
    ["KAFKA_HOME", "KAFKA_HEAP_OPTS", "KAFKA_OPTS", "KAFKA_JMX_PORT", "KAFKA_LOG4J_OPTS", "KAFKA_LOG4J_LOGGERS",
     "KAFKA_VERSION", "KAFKA_PORT", "KAFKA_PORT_9092_TCP_ADDR", "KAFKA_SERVICE_HOST", "KAFKA_", "PATH"],
)  # fmt: skip
def test_variables_that_are_no_keys(variable: str) -> None:
    config = load_broker_config(environ={variable: "x"}, profile="development")
    assert config.warnings == ()


def test_an_unknown_key_warns_with_a_hint(file: Path) -> None:
    file.write_text("num.partition=3\nmy.plugin.key=4\nzookeeper.connect=localhost:2181\n")
    config = load_broker_config(file, profile="development")
    assert config.warnings == (
        f"num.partition ({file}:1) is not a known key and is ignored; did you mean num.partitions?",
        f"my.plugin.key ({file}:2) is not a known key and is ignored",
        f"zookeeper.connect ({file}:3) has no effect: ZooKeeper is not used by a broker that is alone",
    )


def test_the_stock_file_of_kafka_starts(file: Path) -> None:
    file.write_text(STOCK_SERVER_PROPERTIES)
    config = load_broker_config(file)
    assert [str(entry) for entry in config.listeners] == ["PLAINTEXT://:9092"]
    assert [str(entry) for entry in config.advertised_listeners] == ["PLAINTEXT://localhost:9092"]
    told = "\n".join(config.warnings)
    assert "controller.listener.names, controller.quorum.bootstrap.servers, process.roles have no effect" in told
    assert "listener CONTROLLER belongs to a KRaft controller" in told
    assert "num.io.threads" not in told, "a default that is spelt out is no news"


def test_all_problems_come_together(file: Path) -> None:
    file.write_text("num.partitions=none\nlonely\nlog.cleanup.policy=zap\n")
    with pytest.raises(ConfigErrors) as raised:
        load_broker_config(file, {"KAFKA_LOG_ROLL_MS": "0"}, {"listeners": "PLAINTEXT//:9092", "broker.id": "-3"})
    text = str(raised.value)
    assert len(raised.value.problems) == 6
    assert f"num.partitions=none ({file}:1): Not a number of type INT; allowed: a 32-bit integer, at least 1" in text
    assert f"lonely ({file}:2): not of the form key=value" in text
    assert f"log.cleanup.policy=zap ({file}:3): String must be one of: compact, delete" in text
    assert "log.roll.ms=0 (KAFKA_LOG_ROLL_MS): must be at least 1" in text
    assert "listeners=PLAINTEXT//:9092 (flag): PLAINTEXT//:9092 is not of the form NAME://host:port" in text
    assert "broker.id=-3 (flag): a broker id must be at least 0" in text


def test_a_missing_file_is_a_problem(tmp_path: Path) -> None:
    with pytest.raises(ConfigErrors, match="cannot be read: No such file or directory"):
        load_broker_config(tmp_path / "absent")


def test_a_secret_is_in_no_message() -> None:
    config = BrokerConfig.of({"ssl.key.password": "hunter2", "listener.name.plaintext.ssl.key.password": "hunter3"})
    assert "hunter" not in repr(config.warnings)
    assert config[keys.SSL_KEY_PASSWORD].value == "hunter2"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"node.id": "1", "broker.id": "2"}, "broker.id=2 (given): must be the same as node.id, which is 1"),
        ({"log.dirs": ""}, None),
        ({"log.dir": ""}, "name at least one directory"),
        ({"log.retention.hours": "0"}, "log.retention.ms: must be at least 1, or -1"),
        ({"log.roll.jitter.ms": "-1"}, "must be at least 0"),
        ({"queued.max.request.bytes": "100"}, "must be at least socket.request.max.bytes"),
        ({"queued.max.request.bytes": "0"}, None),
        ({"max.connections.per.ip": "0"}, "0 admits nobody"),
        ({"max.connections.per.ip": "0", "max.connections.per.ip.overrides": "127.0.0.1:5"}, None),
        ({"max.connections.per.ip.overrides": "x"}, "x is not of the form address:count"),
        ({"offsets.topic.compression.codec": "9"}, "must be 0 (none)"),
        ({"group.min.session.timeout.ms": "9000000"}, "must not be above group.max.session.timeout.ms"),
        ({"log.cleaner.max.compaction.lag.ms": "5", "log.cleaner.min.compaction.lag.ms": "6"}, "must not be above"),
        ({"listener.name.plaintext.max.connections": "x"}, "listener.name.plaintext.max.connections=x"),
    ],
)
def test_checks_over_several_keys(values: dict[str, str], message: str | None) -> None:
    if message is None:
        BrokerConfig.of(values)
    else:
        assert message in problems_of(values)


def test_retention_by_kafkas_precedence() -> None:
    assert log_retention_ms(BrokerConfig()) == 168 * 3_600_000
    assert log_retention_ms(BrokerConfig.of({"log.retention.hours": "2"})) == 7_200_000
    assert log_retention_ms(BrokerConfig.of({"log.retention.hours": "2", "log.retention.minutes": "3"})) == 180_000
    assert log_retention_ms(BrokerConfig.of({"log.retention.ms": "4", "log.retention.minutes": "3"})) == 4
    assert log_retention_ms(BrokerConfig.of({"log.retention.minutes": "-1"})) == -1


def test_other_keys_with_alternatives() -> None:
    config = BrokerConfig.of({"log.roll.hours": "1", "log.roll.jitter.ms": "7"})
    assert (log_roll_ms(config), log_roll_jitter_ms(config)) == (3_600_000, 7)
    assert connections_per_ip_overrides(BrokerConfig.of({"max.connections.per.ip.overrides": "a:1, [::1]:2"})) == {
        "a": 1,
        "::1": 2,
    }


def test_internal_topics_fit_the_number_of_brokers() -> None:
    config = BrokerConfig()
    assert any("1 is used instead of offsets.topic.replication.factor=3" in told for told in config.warnings)
    alone, three = transaction_state_topic(config, 1), transaction_state_topic(config, 3)
    assert (alone.replication_factor, alone.configs["min.insync.replicas"]) == (1, "1")
    assert (three.replication_factor, three.configs["min.insync.replicas"]) == (3, "2")
    offsets = offsets_topic(config, 2)
    assert (offsets.name, offsets.partitions, offsets.replication_factor) == ("__consumer_offsets", 50, 2)
    assert offsets.configs["cleanup.policy"] == "compact"


def test_min_isr_is_never_above_the_replicas() -> None:
    assert [effective_min_isr(2, count) for count in (1, 2, 3)] == [1, 2, 2]


def test_dynamic_settings_make_another_config() -> None:
    static = BrokerConfig.of({"message.max.bytes": "10", "log.dirs": "/x"})
    changed = static.with_dynamic(broker={"message.max.bytes": "30"}, default={"message.max.bytes": "20"})
    assert (static[keys.MESSAGE_MAX_BYTES], changed[keys.MESSAGE_MAX_BYTES]) == (10, 30)
    assert changed.log_dirs == ("/x",)
    assert [source for source, _ in changed.settings_of("message.max.bytes")] == [
        Source.DYNAMIC_BROKER,
        Source.DYNAMIC_DEFAULT_BROKER,
        Source.STATIC_BROKER,
    ]
    assert changed.with_dynamic()[keys.MESSAGE_MAX_BYTES] == 10
    with pytest.raises(ConfigErrors, match="Value must be at least 0"):
        static.with_dynamic(default={"message.max.bytes": "-1"})


def test_a_listener_may_have_its_own_value() -> None:
    config = BrokerConfig.of({"max.connections": "5", "listener.name.plaintext.max.connections": "3"})
    assert config.for_listener("PLAINTEXT", keys.MAX_CONNECTIONS) == 3
    assert config.for_listener("OTHER", keys.MAX_CONNECTIONS) == 5
    assert config.is_set(keys.MAX_CONNECTIONS)
    assert not config.is_set(keys.NUM_PARTITIONS)
