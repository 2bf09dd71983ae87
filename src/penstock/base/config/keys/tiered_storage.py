"""Tiered (remote) storage."""

from __future__ import annotations

from penstock.base.config.declaration import CLUSTER_WIDE, LONG_MAX, boolean, double, integer, long, string
from penstock.base.config.effects import NO_TIERED
from penstock.base.config.rules import NonEmpty

REMOTE_LOG_STORAGE_SYSTEM_ENABLE = boolean(
    "remote.log.storage.system.enable", False, "Switch tiered storage on.", effect=NO_TIERED
)
REMOTE_LOG_STORAGE_MANAGER_IMPL_PREFIX = string(
    "remote.log.storage.manager.impl.prefix",
    "rsm.config.",
    "Prefix of the storage plug-in's own keys.",
    rule=NonEmpty(),
    effect=NO_TIERED,
)
REMOTE_LOG_METADATA_MANAGER_IMPL_PREFIX = string(
    "remote.log.metadata.manager.impl.prefix",
    "rlmm.config.",
    "Prefix of the metadata plug-in's own keys.",
    rule=NonEmpty(),
    effect=NO_TIERED,
)
REMOTE_LOG_STORAGE_MANAGER_CLASS_NAME = string(
    "remote.log.storage.manager.class.name",
    None,
    "The Java class that stores segments elsewhere.",
    rule=NonEmpty(),
    effect=NO_TIERED,
)
REMOTE_LOG_STORAGE_MANAGER_CLASS_PATH = string(
    "remote.log.storage.manager.class.path", None, "Where that class is loaded from.", effect=NO_TIERED
)
REMOTE_LOG_METADATA_MANAGER_CLASS_NAME = string(
    "remote.log.metadata.manager.class.name",
    "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager",
    "The Java class that keeps track of remote segments.",
    rule=NonEmpty(),
    effect=NO_TIERED,
)
REMOTE_LOG_METADATA_MANAGER_CLASS_PATH = string(
    "remote.log.metadata.manager.class.path", None, "Where that class is loaded from.", effect=NO_TIERED
)
REMOTE_LOG_METADATA_MANAGER_LISTENER_NAME = string(
    "remote.log.metadata.manager.listener.name",
    None,
    "The listener that the metadata plug-in uses.",
    rule=NonEmpty(),
    effect=NO_TIERED,
)
REMOTE_LOG_METADATA_CUSTOM_METADATA_MAX_BYTES = integer(
    "remote.log.metadata.custom.metadata.max.bytes",
    128,
    "Most bytes a storage plug-in may add to a segment's metadata.",
    at_least=0,
    effect=NO_TIERED,
)
REMOTE_LOG_INDEX_FILE_CACHE_TOTAL_SIZE_BYTES = long(
    "remote.log.index.file.cache.total.size.bytes",
    1_073_741_824,
    "Local disk space for indexes of remote segments.",
    at_least=1,
    update=CLUSTER_WIDE,
    effect=NO_TIERED,
)
REMOTE_LOG_INDEX_FILE_CACHE_TTL_MS = long(
    "remote.log.index.file.cache.ttl.ms",
    900_000,
    "How long an unused remote index stays on the local disk.",
    at_least=-1,
    effect=NO_TIERED,
    internal=True,
)
REMOTE_LOG_MANAGER_THREAD_POOL_SIZE = integer(
    "remote.log.manager.thread.pool.size",
    2,
    "Older name of remote.log.manager.follower.thread.pool.size.",
    at_least=1,
    effect=NO_TIERED,
)
REMOTE_LOG_MANAGER_COPIER_THREAD_POOL_SIZE = integer(
    "remote.log.manager.copier.thread.pool.size",
    10,
    "Threads that upload segments.",
    at_least=1,
    update=CLUSTER_WIDE,
    effect=NO_TIERED,
)
REMOTE_LOG_MANAGER_EXPIRATION_THREAD_POOL_SIZE = integer(
    "remote.log.manager.expiration.thread.pool.size",
    10,
    "Threads that delete expired remote segments.",
    at_least=1,
    update=CLUSTER_WIDE,
    effect=NO_TIERED,
)
REMOTE_LOG_MANAGER_FOLLOWER_THREAD_POOL_SIZE = integer(
    "remote.log.manager.follower.thread.pool.size",
    2,
    "Threads that follow the progress of uploads on followers.",
    at_least=1,
    update=CLUSTER_WIDE,
    effect=NO_TIERED,
)
REMOTE_LOG_MANAGER_TASK_INTERVAL_MS = long(
    "remote.log.manager.task.interval.ms",
    30_000,
    "Time between two rounds of uploads and deletions.",
    at_least=1,
    effect=NO_TIERED,
)
REMOTE_LOG_MANAGER_TASK_RETRY_BACKOFF_MS = long(
    "remote.log.manager.task.retry.backoff.ms",
    500,
    "First pause before a failed task is tried again.",
    at_least=1,
    effect=NO_TIERED,
    internal=True,
)
REMOTE_LOG_MANAGER_TASK_RETRY_BACKOFF_MAX_MS = long(
    "remote.log.manager.task.retry.backoff.max.ms",
    30_000,
    "Longest pause before a failed task is tried again.",
    at_least=1,
    effect=NO_TIERED,
    internal=True,
)
REMOTE_LOG_MANAGER_TASK_RETRY_JITTER = double(
    "remote.log.manager.task.retry.jitter",
    0.2,
    "Random part of that pause.",
    at_least=0,
    at_most=0.5,
    effect=NO_TIERED,
    internal=True,
)
REMOTE_LOG_READER_THREADS = integer(
    "remote.log.reader.threads",
    10,
    "Threads that read remote segments.",
    at_least=1,
    update=CLUSTER_WIDE,
    effect=NO_TIERED,
)
REMOTE_LOG_READER_MAX_PENDING_TASKS = integer(
    "remote.log.reader.max.pending.tasks",
    100,
    "Remote reads that may wait; more are refused.",
    at_least=1,
    effect=NO_TIERED,
)
LOG_LOCAL_RETENTION_MS = long(
    "log.local.retention.ms",
    -2,
    "How long uploaded segments also stay on the local disk; -2 takes log.retention.ms.",
    at_least=-2,
    update=CLUSTER_WIDE,
    effect=NO_TIERED,
)
LOG_LOCAL_RETENTION_BYTES = long(
    "log.local.retention.bytes",
    -2,
    "Size of local segments above which uploaded ones go; -2 takes log.retention.bytes.",
    at_least=-2,
    update=CLUSTER_WIDE,
    effect=NO_TIERED,
)
REMOTE_LOG_MANAGER_COPY_MAX_BYTES_PER_SECOND = long(
    "remote.log.manager.copy.max.bytes.per.second",
    LONG_MAX,
    "Most bytes uploaded per second.",
    at_least=1,
    update=CLUSTER_WIDE,
    effect=NO_TIERED,
)
REMOTE_LOG_MANAGER_COPY_QUOTA_WINDOW_NUM = integer(
    "remote.log.manager.copy.quota.window.num",
    11,
    "Samples over which uploads are measured.",
    at_least=1,
    effect=NO_TIERED,
)
REMOTE_LOG_MANAGER_COPY_QUOTA_WINDOW_SIZE_SECONDS = integer(
    "remote.log.manager.copy.quota.window.size.seconds",
    1,
    "Length of a sample of the upload rate.",
    at_least=1,
    effect=NO_TIERED,
)
REMOTE_LOG_MANAGER_FETCH_MAX_BYTES_PER_SECOND = long(
    "remote.log.manager.fetch.max.bytes.per.second",
    LONG_MAX,
    "Most bytes downloaded per second.",
    at_least=1,
    update=CLUSTER_WIDE,
    effect=NO_TIERED,
)
REMOTE_LOG_MANAGER_FETCH_QUOTA_WINDOW_NUM = integer(
    "remote.log.manager.fetch.quota.window.num",
    11,
    "Samples over which downloads are measured.",
    at_least=1,
    effect=NO_TIERED,
)
REMOTE_LOG_MANAGER_FETCH_QUOTA_WINDOW_SIZE_SECONDS = integer(
    "remote.log.manager.fetch.quota.window.size.seconds",
    1,
    "Length of a sample of the download rate.",
    at_least=1,
    effect=NO_TIERED,
)
REMOTE_FETCH_MAX_WAIT_MS = integer(
    "remote.fetch.max.wait.ms",
    500,
    "How long a fetch waits for remote data.",
    at_least=1,
    update=CLUSTER_WIDE,
    effect=NO_TIERED,
)
REMOTE_LIST_OFFSETS_REQUEST_TIMEOUT_MS = long(
    "remote.list.offsets.request.timeout.ms",
    30_000,
    "How long a search by time waits for remote data.",
    at_least=1,
    update=CLUSTER_WIDE,
    effect=NO_TIERED,
)
