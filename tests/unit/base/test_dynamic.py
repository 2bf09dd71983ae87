"""Which broker settings may change while the broker runs, and to what."""

from __future__ import annotations

import pytest

from penstock.base.config import broker_keys as keys
from penstock.base.config.broker import BrokerConfig
from penstock.base.config.describe import describe_broker, describe_cluster_default
from penstock.base.config.dynamic import check_dynamic_settings, with_usable_dynamic
from penstock.base.config.sources import Source
from penstock.base.errors import ErrorCode, KafkaError

CURRENT = BrokerConfig.of({"log.retention.hours": "24"})


def check(*, per_broker: bool = True, **settings: str) -> None:
    layer = {name.replace("_", "."): value for name, value in settings.items()}
    check_dynamic_settings(
        CURRENT, broker=layer if per_broker else {}, default={} if per_broker else layer, per_broker=per_broker
    )


@pytest.mark.parametrize("per_broker", [True, False])
@pytest.mark.parametrize(
    "settings",
    [
        {"log_retention_ms": "1000"},
        {"message_max_bytes": "5", "max_connections": "10"},
        {"num_io_threads": "16"},
        {"num_io_threads": "4"},
        {"somebody_elses_key": "x"},
        {},
    ],
)
def test_what_may_change(per_broker: bool, settings: dict[str, str]) -> None:
    check(per_broker=per_broker, **settings)


@pytest.mark.parametrize("per_broker", [True, False])
@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"num_partitions": "3"}, "Cannot update these configs dynamically"),
        ({"log_retention_hours": "3"}, "Cannot update these configs dynamically"),
        ({"ssl_keystore_location": "/x"}, "only per-listener"),
        ({"log_retention_ms": "x"}, "Not a number of type LONG"),
        ({"log_segment_bytes": "1"}, "at least 1048576"),
        ({"log_retention_ms": "0"}, "log.retention.ms"),
        ({"num_io_threads": "17"}, "double the current value 8"),
        ({"num_io_threads": "3"}, "half the current value 8"),
        ({"max_connections_per_ip_overrides": "nonsense"}, "address:count"),
    ],
)
def test_what_may_not(per_broker: bool, settings: dict[str, str], word: str) -> None:
    with pytest.raises(KafkaError, match=word) as refused:
        check(per_broker=per_broker, **settings)
    assert refused.value.code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("name", ["principal.builder.class", "listener.name.plaintext.ssl.keystore.location"])
def test_what_a_broker_has_for_itself(name: str) -> None:
    check_dynamic_settings(CURRENT, broker={name: "x"}, default={}, per_broker=True)
    with pytest.raises(KafkaError, match="broker id must be specified"):
        check_dynamic_settings(CURRENT, broker={}, default={name: "x"}, per_broker=False)
    check_dynamic_settings(CURRENT, broker={}, default={"listener.name.x.max.connections": "5"}, per_broker=False)


def test_listeners_stay() -> None:
    with pytest.raises(KafkaError, match="Listeners cannot be changed"):
        check(listeners="PLAINTEXT://:1234")


def test_secrets_are_not_told() -> None:
    with pytest.raises(KafkaError) as refused:
        check_dynamic_settings(
            CURRENT, broker={"listener.name.x.num.network.threads": "secret"}, default={}, per_broker=True
        )
    assert "secret" in refused.value.message, "a number is no secret"


def test_a_layer_that_goes_shows_the_one_below() -> None:
    both = CURRENT.with_dynamic(broker={"message.max.bytes": "5"}, default={"message.max.bytes": "7"})
    default_only = both.with_dynamic(default={"message.max.bytes": "7"})
    assert [each[keys.MESSAGE_MAX_BYTES] for each in (both, default_only, default_only.with_dynamic())] == [
        5,
        7,
        1_048_588,
    ]


def test_the_settings_of_all_brokers_are_described_without_those_of_one() -> None:
    both = CURRENT.with_dynamic(broker={"message.max.bytes": "5"}, default={"message.max.bytes": "7"})
    (row,) = describe_cluster_default(both)
    assert (row.value, row.source) == ("7", Source.DYNAMIC_DEFAULT_BROKER)


def test_a_setting_that_exists_at_run_time_only_has_no_default_to_show() -> None:
    name = keys.LEADER_REPLICATION_THROTTLED_RATE.name
    config = CURRENT.with_dynamic(broker={name: "5"})
    (row,) = describe_broker(config, [name], include_synonyms=True)
    assert [synonym.source for synonym in row.synonyms] == [Source.DYNAMIC_BROKER]


def test_a_setting_that_no_longer_fits_is_left_out_alone() -> None:
    config, (problem,) = with_usable_dynamic(
        CURRENT, broker={"log.retention.ms": "0", "message.max.bytes": "5"}, default={}
    )
    assert problem.key == "log.retention.ms"
    assert config[keys.MESSAGE_MAX_BYTES] == 5
    assert config[keys.LOG_RETENTION_MS] is None


def test_the_file_counts_alone_when_nobody_knows_which_setting_is_wrong() -> None:
    static = BrokerConfig.of({"log.cleaner.min.compaction.lag.ms": "9"})
    config, problems = with_usable_dynamic(
        static, broker={}, default={"log.cleaner.max.compaction.lag.ms": "5", "message.max.bytes": "5"}
    )
    assert config is static
    assert len(problems) == 1
