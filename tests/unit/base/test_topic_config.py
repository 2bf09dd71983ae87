from __future__ import annotations

import pytest

from penstock.base.config import topic_keys as keys
from penstock.base.config.broker import BrokerConfig
from penstock.base.config.topic import TopicConfig, validate_topic_overrides
from penstock.base.errors import ErrorCode, KafkaError


def test_defaults_are_kafkas() -> None:
    config = TopicConfig(BrokerConfig())
    for key in keys.KEYS.values():
        assert config[key] == key.default
    assert (config.segment_bytes, config.compacted, config.deletes) == (1 << 30, False, True)


def test_topic_over_broker_over_default() -> None:
    broker = BrokerConfig.of({"log.segment.bytes": "2000000", "message.max.bytes": "5", "min.insync.replicas": "2"})
    config = TopicConfig(broker, {"max.message.bytes": "6"})
    assert config[keys.MAX_MESSAGE_BYTES] == 6
    assert config[keys.SEGMENT_BYTES] == 2_000_000
    assert config[keys.MIN_INSYNC_REPLICAS] == 2
    assert config[keys.INDEX_INTERVAL_BYTES] == 4096


@pytest.mark.parametrize(
    ("broker", "retention_ms"),
    [
        ({"log.retention.hours": "1"}, 3_600_000),
        ({"log.retention.hours": "1", "log.retention.minutes": "1"}, 60_000),
        ({"log.retention.minutes": "1", "log.retention.ms": "1"}, 1),
        ({"log.retention.hours": "-1"}, -1),
        ({"log.retention.ms": "-1"}, -1),
    ],
)
def test_retention_from_the_broker(broker: dict[str, str], retention_ms: int) -> None:
    assert TopicConfig(BrokerConfig.of(broker))[keys.RETENTION_MS] == retention_ms


def test_roll_and_flush_from_the_broker() -> None:
    broker = BrokerConfig.of({"log.roll.hours": "2", "log.roll.jitter.hours": "1", "log.flush.interval.ms": "9"})
    config = TopicConfig(broker)
    assert config[keys.SEGMENT_MS] == 7_200_000
    assert config[keys.SEGMENT_JITTER_MS] == 3_600_000
    assert config[keys.FLUSH_MS] == 9


def test_cleanup_policies() -> None:
    both = TopicConfig(BrokerConfig(), {"cleanup.policy": "compact,delete"})
    none = TopicConfig(BrokerConfig(), {"cleanup.policy": ""})
    assert (both.compacted, both.deletes, none.compacted, none.deletes) == (True, True, False, False)


def test_tests_may_have_small_segments() -> None:
    validate_topic_overrides({"internal.segment.bytes": "100"})
    assert TopicConfig(BrokerConfig(), {"internal.segment.bytes": "100"}).segment_bytes == 100


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"nope": "1"}, "Unknown topic config name: nope"),
        ({"retention.ms": None, "flush.ms": None}, "Null value not supported for topic configs: retention.ms,flush.ms"),
        (
            {"segment.bytes": "1000"},
            "Invalid value 1000 for configuration segment.bytes: Value must be at least 1048576",
        ),
        ({"segment.bytes": "abc"}, "Invalid value abc for configuration segment.bytes: Not a number of type INT"),
        (
            {"cleanup.policy": "delete,zap"},
            "Invalid value zap for configuration cleanup.policy: String must be one of: compact, delete",
        ),
        (
            {"compression.type": "none"},
            "Invalid value none for configuration compression.type: "
            "String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer",
        ),
        (
            {"preallocate": "yes"},
            "Invalid value yes for configuration preallocate: Expected value to be either true or false",
        ),
        (
            {"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "4"},
            "conflict topic config setting min.compaction.lag.ms (5) > max.compaction.lag.ms (4)",
        ),
    ],
)
def test_overrides_are_refused_in_kafkas_words(overrides: dict[str, str | None], message: str) -> None:
    with pytest.raises(KafkaError) as raised:
        validate_topic_overrides(overrides)
    assert (raised.value.code, raised.value.message) == (ErrorCode.INVALID_CONFIG, message)


def test_tiered_storage_is_refused() -> None:
    with pytest.raises(KafkaError, match="Tiered Storage functionality is disabled"):
        validate_topic_overrides({"remote.storage.enable": "true"})
    validate_topic_overrides({"remote.storage.enable": "false"})


def test_good_overrides_pass() -> None:
    validate_topic_overrides({"cleanup.policy": " compact , delete ", "retention.ms": "-1", "segment.bytes": "1048576"})
    validate_topic_overrides({})
