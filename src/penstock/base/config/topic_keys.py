"""Every topic key of Kafka 4.3, as typed constants named after their keys.

A topic key takes its value from the topic, else from the first of its synonyms among the broker keys that is set.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from penstock.base.config.declaration import (
    LONG_MAX,
    TOPIC,
    Key,
    Synonym,
    boolean,
    double,
    integer,
    long,
    string,
    words,
)
from penstock.base.config.effects import ALONE, NO_COMPACTION, NO_PREALLOCATE, NO_TIERED
from penstock.base.config.rules import EachOf, OneOf, RangeOr, ThrottledReplicas

SEGMENT_BYTES = integer(
    "segment.bytes",
    1_073_741_824,
    "Size at which a segment is closed and the next one begins.",
    at_least=1_048_576,
    scope=TOPIC,
    synonyms=(Synonym("log.segment.bytes"),),
)
SEGMENT_MS = long(
    "segment.ms",
    604_800_000,
    "Age at which a segment is closed even if it is not full, so that retention and compaction can reach it.",
    at_least=1,
    scope=TOPIC,
    synonyms=(Synonym("log.roll.ms"), Synonym("log.roll.hours", 3_600_000)),
)
SEGMENT_JITTER_MS = long(
    "segment.jitter.ms",
    0,
    "Random part taken off segment.ms, so that segments do not all roll at once.",
    at_least=0,
    scope=TOPIC,
    synonyms=(Synonym("log.roll.jitter.ms"), Synonym("log.roll.jitter.hours", 3_600_000)),
)
SEGMENT_INDEX_BYTES = integer(
    "segment.index.bytes",
    10_485_760,
    "Room set aside for each index of the active segment; a full index also closes the segment.",
    at_least=4,
    scope=TOPIC,
    synonyms=(Synonym("log.index.size.max.bytes"),),
)
FLUSH_MESSAGES = long(
    "flush.messages",
    LONG_MAX,
    "Records after which the partition is flushed to disk.",
    at_least=1,
    scope=TOPIC,
    synonyms=(Synonym("log.flush.interval.messages"),),
)
FLUSH_MS = long(
    "flush.ms",
    LONG_MAX,
    "How long a record may stay unflushed.",
    at_least=0,
    scope=TOPIC,
    synonyms=(Synonym("log.flush.interval.ms"), Synonym("log.flush.scheduler.interval.ms")),
)
RETENTION_BYTES = long(
    "retention.bytes",
    -1,
    "Size of a partition above which its oldest segments go; -1 sets no limit.",
    scope=TOPIC,
    synonyms=(Synonym("log.retention.bytes"),),
)
RETENTION_MS = long(
    "retention.ms",
    604_800_000,
    "How long records are kept; -1 keeps them for ever.",
    at_least=-1,
    scope=TOPIC,
    synonyms=(
        Synonym("log.retention.ms"),
        Synonym("log.retention.minutes", 60_000),
        Synonym("log.retention.hours", 3_600_000),
    ),
)
MAX_MESSAGE_BYTES = integer(
    "max.message.bytes",
    1_048_588,
    "Largest record batch accepted, as it is on the wire.",
    at_least=0,
    scope=TOPIC,
    synonyms=(Synonym("message.max.bytes"),),
)
INDEX_INTERVAL_BYTES = integer(
    "index.interval.bytes",
    4096,
    "Bytes of log between two index entries.",
    at_least=0,
    scope=TOPIC,
    synonyms=(Synonym("log.index.interval.bytes"),),
)
DELETE_RETENTION_MS = long(
    "delete.retention.ms",
    86_400_000,
    "How long a tombstone stays after compaction, so that readers see it.",
    at_least=0,
    scope=TOPIC,
    synonyms=(Synonym("log.cleaner.delete.retention.ms"),),
    effect=NO_COMPACTION,
)
MIN_COMPACTION_LAG_MS = long(
    "min.compaction.lag.ms",
    0,
    "How long a record is safe from compaction.",
    at_least=0,
    scope=TOPIC,
    synonyms=(Synonym("log.cleaner.min.compaction.lag.ms"),),
    effect=NO_COMPACTION,
)
MAX_COMPACTION_LAG_MS = long(
    "max.compaction.lag.ms",
    LONG_MAX,
    "After how long a record must have been considered for compaction.",
    at_least=1,
    scope=TOPIC,
    synonyms=(Synonym("log.cleaner.max.compaction.lag.ms"),),
    effect=NO_COMPACTION,
)
FILE_DELETE_DELAY_MS = long(
    "file.delete.delay.ms",
    60_000,
    "Time between renaming the files of a deleted segment and removing them.",
    at_least=0,
    scope=TOPIC,
    synonyms=(Synonym("log.segment.delete.delay.ms"),),
)
MIN_CLEANABLE_DIRTY_RATIO = double(
    "min.cleanable.dirty.ratio",
    0.5,
    "Share of the log that must be uncompacted before it is compacted again.",
    at_least=0,
    at_most=1,
    scope=TOPIC,
    synonyms=(Synonym("log.cleaner.min.cleanable.ratio"),),
    effect=NO_COMPACTION,
)
CLEANUP_POLICY = words(
    "cleanup.policy",
    ("delete",),
    "What happens to old segments: `delete` them by age and size, `compact` them by key, or both. Compaction does not "
    "run yet: topics with `compact` alone are kept whole.",
    rule=EachOf("compact", "delete"),
    scope=TOPIC,
    synonyms=(Synonym("log.cleanup.policy"),),
)
UNCLEAN_LEADER_ELECTION_ENABLE = boolean(
    "unclean.leader.election.enable",
    False,
    "Let a replica that is behind become leader when no other is left; records may be lost.",
    scope=TOPIC,
    synonyms=(Synonym("unclean.leader.election.enable"),),
    effect=ALONE,
)
MIN_INSYNC_REPLICAS = integer(
    "min.insync.replicas",
    1,
    "Replicas that must have a record before acks=all is answered. Never more than there are replicas.",
    at_least=1,
    scope=TOPIC,
    synonyms=(Synonym("min.insync.replicas"),),
)
COMPRESSION_TYPE = string(
    "compression.type",
    "producer",
    "Codec in which batches are stored; `producer` keeps what the producer chose.",
    rule=OneOf("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
    scope=TOPIC,
    synonyms=(Synonym("compression.type"),),
)
COMPRESSION_GZIP_LEVEL = integer(
    "compression.gzip.level",
    -1,
    "Level for gzip when the broker compresses; -1 is the library's choice.",
    rule=RangeOr(1, 9, -1),
    scope=TOPIC,
    synonyms=(Synonym("compression.gzip.level"),),
)
COMPRESSION_LZ4_LEVEL = integer(
    "compression.lz4.level",
    9,
    "Level for lz4 when the broker compresses.",
    at_least=1,
    at_most=17,
    scope=TOPIC,
    synonyms=(Synonym("compression.lz4.level"),),
)
COMPRESSION_ZSTD_LEVEL = integer(
    "compression.zstd.level",
    3,
    "Level for zstd when the broker compresses.",
    at_least=-131_072,
    at_most=22,
    scope=TOPIC,
    synonyms=(Synonym("compression.zstd.level"),),
)
PREALLOCATE = boolean(
    "preallocate",
    False,
    "Set aside the whole of a new segment file at once.",
    scope=TOPIC,
    synonyms=(Synonym("log.preallocate"),),
    effect=NO_PREALLOCATE,
)
MESSAGE_TIMESTAMP_TYPE = string(
    "message.timestamp.type",
    "CreateTime",
    "Whose time a record carries: the producer's (CreateTime) or the broker's (LogAppendTime).",
    rule=OneOf("CreateTime", "LogAppendTime"),
    scope=TOPIC,
    synonyms=(Synonym("log.message.timestamp.type"),),
)
MESSAGE_TIMESTAMP_BEFORE_MAX_MS = long(
    "message.timestamp.before.max.ms",
    LONG_MAX,
    "How far a producer's timestamp may lie in the past.",
    at_least=0,
    scope=TOPIC,
    synonyms=(Synonym("log.message.timestamp.before.max.ms"),),
)
MESSAGE_TIMESTAMP_AFTER_MAX_MS = long(
    "message.timestamp.after.max.ms",
    3_600_000,
    "How far a producer's timestamp may lie in the future.",
    at_least=0,
    scope=TOPIC,
    synonyms=(Synonym("log.message.timestamp.after.max.ms"),),
)
LEADER_REPLICATION_THROTTLED_REPLICAS = words(
    "leader.replication.throttled.replicas",
    (),
    "Replicas whose copying is throttled at the leader.",
    rule=ThrottledReplicas(),
    scope=TOPIC,
    effect=ALONE,
)
FOLLOWER_REPLICATION_THROTTLED_REPLICAS = words(
    "follower.replication.throttled.replicas",
    (),
    "Replicas whose copying is throttled at the follower.",
    rule=ThrottledReplicas(),
    scope=TOPIC,
    effect=ALONE,
)
REMOTE_STORAGE_ENABLE = boolean(
    "remote.storage.enable", False, "Keep old segments in tiered storage.", scope=TOPIC, effect=NO_TIERED
)
LOCAL_RETENTION_MS = long(
    "local.retention.ms",
    -2,
    "How long uploaded segments also stay on the local disk; -2 takes retention.ms.",
    at_least=-2,
    scope=TOPIC,
    synonyms=(Synonym("log.local.retention.ms"),),
    effect=NO_TIERED,
)
LOCAL_RETENTION_BYTES = long(
    "local.retention.bytes",
    -2,
    "Size of local segments above which uploaded ones go; -2 takes retention.bytes.",
    at_least=-2,
    scope=TOPIC,
    synonyms=(Synonym("log.local.retention.bytes"),),
    effect=NO_TIERED,
)
REMOTE_LOG_COPY_DISABLE = boolean(
    "remote.log.copy.disable", False, "Stop uploading further segments.", scope=TOPIC, effect=NO_TIERED
)
REMOTE_LOG_DELETE_ON_DISABLE = boolean(
    "remote.log.delete.on.disable",
    False,
    "Delete the remote segments when tiered storage is switched off.",
    scope=TOPIC,
    effect=NO_TIERED,
)
INTERNAL_SEGMENT_BYTES = integer(
    "internal.segment.bytes",
    None,
    "Segment size without the lower bound of segment.bytes, for tests.",
    scope=TOPIC,
    internal=True,
)

KEYS: Final[Mapping[str, Key[Any]]] = {
    value.name: value for value in tuple(globals().values()) if isinstance(value, Key)
}
"""All of them by name."""
