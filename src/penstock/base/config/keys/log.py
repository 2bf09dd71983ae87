"""Logs: directories, segments, retention, flushing and the cleaner."""

from __future__ import annotations

from penstock.base.config.declaration import (
    CLUSTER_WIDE,
    DOUBLE_MAX,
    LONG_MAX,
    PER_BROKER,
    boolean,
    double,
    integer,
    long,
    string,
    words,
)
from penstock.base.config.effects import ALONE, NO_COMPACTION, NO_MOVES, NO_PREALLOCATE
from penstock.base.config.rules import EachOf, OneOf

LOG_DIR = words("log.dir", ("/tmp/kafka-logs",), "Directory for the logs, when log.dirs is not set.")
LOG_DIRS = words(
    "log.dirs", None, "Directories for the logs, separated by commas; new partitions go to the one that has the fewest."
)
CORDONED_LOG_DIRS = words(
    "cordoned.log.dirs", (), "Log directories that take no new partitions.", update=PER_BROKER, effect=NO_MOVES
)
LOG_SEGMENT_BYTES = integer(
    "log.segment.bytes",
    1_073_741_824,
    "Size at which a segment is closed and the next one begins.",
    at_least=1_048_576,
    update=CLUSTER_WIDE,
)
LOG_ROLL_MS = long(
    "log.roll.ms",
    None,
    "Age in milliseconds at which a segment is closed; unset, log.roll.hours counts.",
    update=CLUSTER_WIDE,
)
LOG_ROLL_HOURS = integer("log.roll.hours", 168, "Age in hours at which a segment is closed.", at_least=1)
LOG_ROLL_JITTER_MS = long(
    "log.roll.jitter.ms",
    None,
    "Random part taken off the age, so that segments do not all roll at once; unset, log.roll.jitter.hours counts.",
    update=CLUSTER_WIDE,
)
LOG_ROLL_JITTER_HOURS = integer(
    "log.roll.jitter.hours", 0, "Random part in hours taken off the age at which a segment is closed.", at_least=0
)
LOG_RETENTION_MS = long(
    "log.retention.ms",
    None,
    "How long records are kept; -1 keeps them for ever. Unset, log.retention.minutes counts.",
    update=CLUSTER_WIDE,
)
LOG_RETENTION_MINUTES = integer(
    "log.retention.minutes", None, "How long records are kept in minutes; unset, log.retention.hours counts."
)
LOG_RETENTION_HOURS = integer("log.retention.hours", 168, "How long records are kept in hours.")
LOG_RETENTION_BYTES = long(
    "log.retention.bytes",
    -1,
    "Size of a partition above which its oldest segments go; -1 sets no limit.",
    update=CLUSTER_WIDE,
)
LOG_RETENTION_CHECK_INTERVAL_MS = long(
    "log.retention.check.interval.ms", 300_000, "Time between two searches for segments to delete.", at_least=1
)
LOG_CLEANUP_POLICY = words(
    "log.cleanup.policy",
    ("delete",),
    "What happens to old segments: `delete` them by age and size, `compact` them by key, or both. Compaction does not "
    "run yet: topics with `compact` alone are kept whole.",
    rule=EachOf("compact", "delete"),
    update=CLUSTER_WIDE,
)
LOG_INDEX_SIZE_MAX_BYTES = integer(
    "log.index.size.max.bytes",
    10_485_760,
    "Room set aside for each index of the active segment; a full index also closes the segment.",
    at_least=4,
    update=CLUSTER_WIDE,
)
LOG_INDEX_INTERVAL_BYTES = integer(
    "log.index.interval.bytes", 4096, "Bytes of log between two index entries.", at_least=0, update=CLUSTER_WIDE
)
LOG_FLUSH_INTERVAL_MESSAGES = long(
    "log.flush.interval.messages",
    LONG_MAX,
    "Records after which a partition is flushed to disk.",
    at_least=1,
    update=CLUSTER_WIDE,
)
LOG_FLUSH_SCHEDULER_INTERVAL_MS = long(
    "log.flush.scheduler.interval.ms", LONG_MAX, "Time between two searches for partitions to flush by age."
)
LOG_FLUSH_INTERVAL_MS = long(
    "log.flush.interval.ms",
    None,
    "How long a record may stay unflushed; unset, log.flush.scheduler.interval.ms counts.",
    update=CLUSTER_WIDE,
)
LOG_FLUSH_OFFSET_CHECKPOINT_INTERVAL_MS = integer(
    "log.flush.offset.checkpoint.interval.ms",
    60_000,
    "Time between two writes of the recovery points, from where a crash is recovered.",
    at_least=0,
)
LOG_FLUSH_START_OFFSET_CHECKPOINT_INTERVAL_MS = integer(
    "log.flush.start.offset.checkpoint.interval.ms",
    60_000,
    "Time between two writes of the log start offsets.",
    at_least=0,
)
LOG_SEGMENT_DELETE_DELAY_MS = long(
    "log.segment.delete.delay.ms",
    60_000,
    "Time between renaming the files of a deleted segment and removing them.",
    at_least=0,
    update=CLUSTER_WIDE,
)
LOG_PREALLOCATE = boolean(
    "log.preallocate",
    False,
    "Set aside the whole of a new segment file at once.",
    update=CLUSTER_WIDE,
    effect=NO_PREALLOCATE,
)
NUM_RECOVERY_THREADS_PER_DATA_DIR = integer(
    "num.recovery.threads.per.data.dir",
    2,
    "Logs opened at the same time in each directory at start and stop.",
    at_least=1,
    update=CLUSTER_WIDE,
)
MIN_INSYNC_REPLICAS = integer(
    "min.insync.replicas",
    1,
    "Replicas that must have a record before acks=all is answered. Never more than there are replicas.",
    at_least=1,
    update=CLUSTER_WIDE,
)
LOG_MESSAGE_TIMESTAMP_TYPE = string(
    "log.message.timestamp.type",
    "CreateTime",
    "Whose time a record carries: the producer's (CreateTime) or the broker's (LogAppendTime).",
    rule=OneOf("CreateTime", "LogAppendTime"),
    update=CLUSTER_WIDE,
)
LOG_MESSAGE_TIMESTAMP_BEFORE_MAX_MS = long(
    "log.message.timestamp.before.max.ms",
    LONG_MAX,
    "How far a producer's timestamp may lie in the past.",
    at_least=0,
    update=CLUSTER_WIDE,
)
LOG_MESSAGE_TIMESTAMP_AFTER_MAX_MS = long(
    "log.message.timestamp.after.max.ms",
    3_600_000,
    "How far a producer's timestamp may lie in the future.",
    at_least=0,
    update=CLUSTER_WIDE,
)
LOG_DIR_FAILURE_TIMEOUT_MS = long(
    "log.dir.failure.timeout.ms",
    30_000,
    "A broker stops when it cannot report a failed directory for this long.",
    at_least=1,
    effect=ALONE,
)
LOG_INITIAL_TASK_DELAY_MS = long(
    "log.initial.task.delay.ms",
    30_000,
    "Pause between the start and the first round of retention, flushing and checkpoints.",
    at_least=0,
    internal=True,
)
LOG_CLEANER_ENABLE = boolean("log.cleaner.enable", True, "Compact the topics that ask for it.", effect=NO_COMPACTION)
LOG_CLEANER_THREADS = integer(
    "log.cleaner.threads", 1, "Threads that compact.", at_least=0, update=CLUSTER_WIDE, effect=NO_COMPACTION
)
LOG_CLEANER_IO_MAX_BYTES_PER_SECOND = double(
    "log.cleaner.io.max.bytes.per.second",
    DOUBLE_MAX,
    "Most bytes that compaction reads and writes per second.",
    update=CLUSTER_WIDE,
    effect=NO_COMPACTION,
)
LOG_CLEANER_DEDUPE_BUFFER_SIZE = long(
    "log.cleaner.dedupe.buffer.size",
    134_217_728,
    "Memory for the keys of one compaction.",
    update=CLUSTER_WIDE,
    effect=NO_COMPACTION,
)
LOG_CLEANER_IO_BUFFER_SIZE = integer(
    "log.cleaner.io.buffer.size",
    524_288,
    "Memory for reading and writing during compaction.",
    at_least=0,
    update=CLUSTER_WIDE,
    effect=NO_COMPACTION,
)
LOG_CLEANER_IO_BUFFER_LOAD_FACTOR = double(
    "log.cleaner.io.buffer.load.factor",
    0.9,
    "How full the key memory may get.",
    update=CLUSTER_WIDE,
    effect=NO_COMPACTION,
)
LOG_CLEANER_BACKOFF_MS = long(
    "log.cleaner.backoff.ms",
    15_000,
    "Pause when there is nothing to compact.",
    at_least=0,
    update=CLUSTER_WIDE,
    effect=NO_COMPACTION,
)
LOG_CLEANER_MIN_CLEANABLE_RATIO = double(
    "log.cleaner.min.cleanable.ratio",
    0.5,
    "Share of a log that must be uncompacted before it is compacted again.",
    at_least=0,
    at_most=1,
    update=CLUSTER_WIDE,
    effect=NO_COMPACTION,
)
LOG_CLEANER_DELETE_RETENTION_MS = long(
    "log.cleaner.delete.retention.ms",
    86_400_000,
    "How long a tombstone stays after compaction, so that readers see it.",
    at_least=0,
    update=CLUSTER_WIDE,
    effect=NO_COMPACTION,
)
LOG_CLEANER_MIN_COMPACTION_LAG_MS = long(
    "log.cleaner.min.compaction.lag.ms",
    0,
    "How long a record is safe from compaction.",
    at_least=0,
    update=CLUSTER_WIDE,
    effect=NO_COMPACTION,
)
LOG_CLEANER_MAX_COMPACTION_LAG_MS = long(
    "log.cleaner.max.compaction.lag.ms",
    LONG_MAX,
    "After how long a record must have been considered for compaction.",
    at_least=1,
    update=CLUSTER_WIDE,
    effect=NO_COMPACTION,
)
PRODUCER_ID_EXPIRATION_MS = integer(
    "producer.id.expiration.ms",
    86_400_000,
    "An idempotent producer that is silent for this long is forgotten.",
    at_least=1,
    update=CLUSTER_WIDE,
)
PRODUCER_ID_EXPIRATION_CHECK_INTERVAL_MS = integer(
    "producer.id.expiration.check.interval.ms",
    600_000,
    "Time between two searches for forgotten producers.",
    at_least=1,
    internal=True,
)
