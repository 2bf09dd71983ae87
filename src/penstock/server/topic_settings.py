"""From a topic's configuration to what its partitions and logs work with."""

from __future__ import annotations

from penstock.base.config import broker_keys, topic_keys
from penstock.base.config.topic import TopicConfig
from penstock.records.compression import Codec
from penstock.records.validation import ProduceRules
from penstock.replication.settings import TopicSettings
from penstock.storage.config import LogConfig

_LEVEL_KEYS = {
    Codec.GZIP: topic_keys.COMPRESSION_GZIP_LEVEL,
    Codec.LZ4: topic_keys.COMPRESSION_LZ4_LEVEL,
    Codec.ZSTD: topic_keys.COMPRESSION_ZSTD_LEVEL,
}
_CODECS = {
    "producer": None,
    "uncompressed": Codec.NONE,
    "gzip": Codec.GZIP,
    "snappy": Codec.SNAPPY,
    "lz4": Codec.LZ4,
    "zstd": Codec.ZSTD,
}


def topic_settings(config: TopicConfig) -> TopicSettings:
    return TopicSettings(
        rules=produce_rules(config), log=log_config(config), min_insync_replicas=config[topic_keys.MIN_INSYNC_REPLICAS]
    )


def produce_rules(config: TopicConfig) -> ProduceRules:
    codec = _CODECS[config[topic_keys.COMPRESSION_TYPE]]
    level_key = _LEVEL_KEYS.get(codec) if codec is not None else None
    return ProduceRules(
        codec=codec,
        compression_level=config[level_key] if level_key is not None else None,
        max_message_bytes=config[topic_keys.MAX_MESSAGE_BYTES],
        timestamp_type=config[topic_keys.MESSAGE_TIMESTAMP_TYPE],
        before_max_ms=config[topic_keys.MESSAGE_TIMESTAMP_BEFORE_MAX_MS],
        after_max_ms=config[topic_keys.MESSAGE_TIMESTAMP_AFTER_MAX_MS],
        compacted=config.compacted,
        headers_only=config.broker[broker_keys.PENSTOCK_PRODUCE_VALIDATION] == "headers",
        decompressed_bytes_max=config.broker[broker_keys.PENSTOCK_MAX_DECOMPRESSED_BYTES],
    )


def log_config(config: TopicConfig) -> LogConfig:
    return LogConfig(
        segment_bytes=config.segment_bytes,
        segment_ms=config[topic_keys.SEGMENT_MS],
        segment_jitter_ms=config[topic_keys.SEGMENT_JITTER_MS],
        segment_index_bytes=config[topic_keys.SEGMENT_INDEX_BYTES],
        index_interval_bytes=config[topic_keys.INDEX_INTERVAL_BYTES],
        retention_ms=config[topic_keys.RETENTION_MS],
        retention_bytes=config[topic_keys.RETENTION_BYTES],
        cleanup_delete=config.deletes,
        cleanup_compact=config.compacted,
        file_delete_delay_ms=config[topic_keys.FILE_DELETE_DELAY_MS],
        flush_messages=config[topic_keys.FLUSH_MESSAGES],
        flush_ms=config[topic_keys.FLUSH_MS],
    )
