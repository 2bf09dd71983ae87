"""Share groups and streams groups."""

from __future__ import annotations

from penstock.base.config.declaration import CLUSTER_WIDE, INT_MAX, integer, short, string, words
from penstock.base.config.effects import NO_SHARE, NO_STREAMS

GROUP_SHARE_SESSION_TIMEOUT_MS = integer(
    "group.share.session.timeout.ms", 45_000, "Session time-out of share group members.", at_least=1, effect=NO_SHARE
)
GROUP_SHARE_MIN_SESSION_TIMEOUT_MS = integer(
    "group.share.min.session.timeout.ms",
    45_000,
    "Lower bound for a share group's session time-out.",
    at_least=1,
    effect=NO_SHARE,
)
GROUP_SHARE_MAX_SESSION_TIMEOUT_MS = integer(
    "group.share.max.session.timeout.ms",
    60_000,
    "Upper bound for a share group's session time-out.",
    at_least=1,
    effect=NO_SHARE,
)
GROUP_SHARE_HEARTBEAT_INTERVAL_MS = integer(
    "group.share.heartbeat.interval.ms", 5000, "Heartbeat interval of share group members.", at_least=1, effect=NO_SHARE
)
GROUP_SHARE_MIN_HEARTBEAT_INTERVAL_MS = integer(
    "group.share.min.heartbeat.interval.ms",
    5000,
    "Lower bound for a share group's heartbeat interval.",
    at_least=1,
    effect=NO_SHARE,
)
GROUP_SHARE_MAX_HEARTBEAT_INTERVAL_MS = integer(
    "group.share.max.heartbeat.interval.ms",
    15_000,
    "Upper bound for a share group's heartbeat interval.",
    at_least=1,
    effect=NO_SHARE,
)
GROUP_SHARE_MAX_SIZE = integer(
    "group.share.max.size", 200, "Most members of a share group.", at_least=1, at_most=1000, effect=NO_SHARE
)
GROUP_SHARE_ASSIGNORS = words("group.share.assignors", ("simple",), "Assignors for share groups.", effect=NO_SHARE)
GROUP_SHARE_ASSIGNMENT_INTERVAL_MS = integer(
    "group.share.assignment.interval.ms",
    1000,
    "Shortest time between two assignments of a share group.",
    at_least=0,
    update=CLUSTER_WIDE,
    effect=NO_SHARE,
)
GROUP_SHARE_MIN_ASSIGNMENT_INTERVAL_MS = integer(
    "group.share.min.assignment.interval.ms",
    0,
    "Lower bound for a share group's assignment interval.",
    at_least=0,
    effect=NO_SHARE,
)
GROUP_SHARE_MAX_ASSIGNMENT_INTERVAL_MS = integer(
    "group.share.max.assignment.interval.ms",
    15_000,
    "Upper bound for a share group's assignment interval.",
    at_least=0,
    effect=NO_SHARE,
)
GROUP_SHARE_INITIALIZE_RETRY_INTERVAL_MS = integer(
    "group.share.initialize.retry.interval.ms",
    30_000,
    "Pause before a share partition's set-up is tried again.",
    at_least=1,
    effect=NO_SHARE,
    internal=True,
)
GROUP_SHARE_DELIVERY_COUNT_LIMIT = integer(
    "group.share.delivery.count.limit",
    5,
    "How often a record of a share group is delivered at most.",
    at_least=2,
    at_most=10,
    effect=NO_SHARE,
)
GROUP_SHARE_MAX_DELIVERY_COUNT_LIMIT = integer(
    "group.share.max.delivery.count.limit",
    10,
    "Upper bound for a group's own delivery limit.",
    at_least=5,
    at_most=25,
    effect=NO_SHARE,
)
GROUP_SHARE_MIN_DELIVERY_COUNT_LIMIT = integer(
    "group.share.min.delivery.count.limit",
    2,
    "Lower bound for a group's own delivery limit.",
    at_least=2,
    at_most=5,
    effect=NO_SHARE,
)
GROUP_SHARE_RECORD_LOCK_DURATION_MS = integer(
    "group.share.record.lock.duration.ms",
    30_000,
    "How long a member may hold a record before it is given to another.",
    at_least=1000,
    at_most=3_600_000,
    effect=NO_SHARE,
)
GROUP_SHARE_MIN_RECORD_LOCK_DURATION_MS = integer(
    "group.share.min.record.lock.duration.ms",
    15_000,
    "Lower bound for a group's own lock duration.",
    at_least=1000,
    at_most=30_000,
    effect=NO_SHARE,
)
GROUP_SHARE_MAX_RECORD_LOCK_DURATION_MS = integer(
    "group.share.max.record.lock.duration.ms",
    60_000,
    "Upper bound for a group's own lock duration.",
    at_least=30_000,
    at_most=3_600_000,
    effect=NO_SHARE,
)
GROUP_SHARE_PARTITION_MAX_RECORD_LOCKS = integer(
    "group.share.partition.max.record.locks",
    2000,
    "Most records of a partition that may be locked at once.",
    at_least=100,
    at_most=10_000,
    effect=NO_SHARE,
)
GROUP_SHARE_MAX_PARTITION_MAX_RECORD_LOCKS = integer(
    "group.share.max.partition.max.record.locks",
    4000,
    "Upper bound for a group's own limit of locked records.",
    at_least=2000,
    at_most=10_000,
    effect=NO_SHARE,
)
GROUP_SHARE_MIN_PARTITION_MAX_RECORD_LOCKS = integer(
    "group.share.min.partition.max.record.locks",
    100,
    "Lower bound for a group's own limit of locked records.",
    at_least=100,
    at_most=2000,
    effect=NO_SHARE,
)
GROUP_SHARE_MAX_SHARE_SESSIONS = integer(
    "group.share.max.share.sessions", 2000, "Share sessions kept at most.", at_least=1, effect=NO_SHARE
)
GROUP_SHARE_PERSISTER_CLASS_NAME = string(
    "group.share.persister.class.name",
    "org.apache.kafka.server.share.persister.DefaultStatePersister",
    "The Java class that keeps the state of share groups.",
    effect=NO_SHARE,
    internal=True,
)
SHARE_FETCH_PURGATORY_PURGE_INTERVAL_REQUESTS = integer(
    "share.fetch.purgatory.purge.interval.requests",
    1000,
    "Finished waits that may pile up among the share fetches that wait.",
    effect=NO_SHARE,
)
SHARE_COORDINATOR_STATE_TOPIC_NUM_PARTITIONS = integer(
    "share.coordinator.state.topic.num.partitions",
    50,
    "Partitions of the topic that holds the share groups' state.",
    at_least=1,
    effect=NO_SHARE,
)
SHARE_COORDINATOR_STATE_TOPIC_REPLICATION_FACTOR = short(
    "share.coordinator.state.topic.replication.factor",
    3,
    "Replicas of the share state topic.",
    at_least=1,
    effect=NO_SHARE,
)
SHARE_COORDINATOR_STATE_TOPIC_MIN_ISR = short(
    "share.coordinator.state.topic.min.isr",
    2,
    "Least in-sync replicas of the share state topic.",
    at_least=1,
    effect=NO_SHARE,
)
SHARE_COORDINATOR_STATE_TOPIC_SEGMENT_BYTES = integer(
    "share.coordinator.state.topic.segment.bytes",
    104_857_600,
    "Segment size of the share state topic.",
    at_least=1,
    effect=NO_SHARE,
)
SHARE_COORDINATOR_STATE_TOPIC_COMPRESSION_CODEC = integer(
    "share.coordinator.state.topic.compression.codec", 0, "Codec number of the share state topic.", effect=NO_SHARE
)
SHARE_COORDINATOR_STATE_TOPIC_PRUNE_INTERVAL_MS = integer(
    "share.coordinator.state.topic.prune.interval.ms",
    300_000,
    "Time between two clean-ups of the share state topic.",
    at_least=1,
    effect=NO_SHARE,
    internal=True,
)
SHARE_COORDINATOR_THREADS = integer(
    "share.coordinator.threads", 1, "Threads of the share coordinator.", at_least=1, effect=NO_SHARE
)
SHARE_COORDINATOR_SNAPSHOT_UPDATE_RECORDS_PER_SNAPSHOT = integer(
    "share.coordinator.snapshot.update.records.per.snapshot",
    500,
    "Updates between two snapshots of a share partition's state.",
    at_least=0,
    at_most=500,
    effect=NO_SHARE,
)
SHARE_COORDINATOR_LOAD_BUFFER_SIZE = integer(
    "share.coordinator.load.buffer.size",
    5_242_880,
    "Bytes read at a time when share state is loaded.",
    at_least=1,
    effect=NO_SHARE,
)
SHARE_COORDINATOR_APPEND_LINGER_MS = integer(
    "share.coordinator.append.linger.ms",
    -1,
    "How long the share coordinator gathers records before it writes them.",
    at_least=-1,
    effect=NO_SHARE,
)
SHARE_COORDINATOR_WRITE_TIMEOUT_MS = integer(
    "share.coordinator.write.timeout.ms",
    5000,
    "How long a write of the share coordinator waits for replicas.",
    at_least=1,
    effect=NO_SHARE,
)
SHARE_COORDINATOR_COLD_PARTITION_SNAPSHOT_INTERVAL_MS = integer(
    "share.coordinator.cold.partition.snapshot.interval.ms",
    300_000,
    "Time between two snapshots of idle share partitions.",
    at_least=1,
    effect=NO_SHARE,
    internal=True,
)
SHARE_COORDINATOR_CACHED_BUFFER_MAX_BYTES = integer(
    "share.coordinator.cached.buffer.max.bytes",
    1_048_588,
    "Largest write buffer that the share coordinator keeps.",
    at_least=524_288,
    update=CLUSTER_WIDE,
    effect=NO_SHARE,
)
GROUP_STREAMS_SESSION_TIMEOUT_MS = integer(
    "group.streams.session.timeout.ms",
    45_000,
    "Session time-out of streams group members.",
    at_least=1,
    effect=NO_STREAMS,
)
GROUP_STREAMS_MIN_SESSION_TIMEOUT_MS = integer(
    "group.streams.min.session.timeout.ms",
    45_000,
    "Lower bound for a streams group's session time-out.",
    at_least=1,
    effect=NO_STREAMS,
)
GROUP_STREAMS_MAX_SESSION_TIMEOUT_MS = integer(
    "group.streams.max.session.timeout.ms",
    60_000,
    "Upper bound for a streams group's session time-out.",
    at_least=1,
    effect=NO_STREAMS,
)
GROUP_STREAMS_HEARTBEAT_INTERVAL_MS = integer(
    "group.streams.heartbeat.interval.ms",
    5000,
    "Heartbeat interval of streams group members.",
    at_least=1,
    effect=NO_STREAMS,
)
GROUP_STREAMS_MIN_HEARTBEAT_INTERVAL_MS = integer(
    "group.streams.min.heartbeat.interval.ms",
    5000,
    "Lower bound for a streams group's heartbeat interval.",
    at_least=1,
    effect=NO_STREAMS,
)
GROUP_STREAMS_MAX_HEARTBEAT_INTERVAL_MS = integer(
    "group.streams.max.heartbeat.interval.ms",
    15_000,
    "Upper bound for a streams group's heartbeat interval.",
    at_least=1,
    effect=NO_STREAMS,
)
GROUP_STREAMS_MAX_SIZE = integer(
    "group.streams.max.size", INT_MAX, "Most members of a streams group.", at_least=1, effect=NO_STREAMS
)
GROUP_STREAMS_NUM_STANDBY_REPLICAS = integer(
    "group.streams.num.standby.replicas", 0, "Standby copies of each stateful task.", at_least=0, effect=NO_STREAMS
)
GROUP_STREAMS_MAX_STANDBY_REPLICAS = integer(
    "group.streams.max.standby.replicas",
    2,
    "Upper bound for a group's own number of standby copies.",
    at_least=0,
    effect=NO_STREAMS,
)
GROUP_STREAMS_INITIAL_REBALANCE_DELAY_MS = integer(
    "group.streams.initial.rebalance.delay.ms",
    3000,
    "How long a new streams group waits for more members.",
    at_least=0,
    effect=NO_STREAMS,
)
GROUP_STREAMS_ASSIGNMENT_INTERVAL_MS = integer(
    "group.streams.assignment.interval.ms",
    1000,
    "Shortest time between two assignments of a streams group.",
    at_least=0,
    update=CLUSTER_WIDE,
    effect=NO_STREAMS,
)
GROUP_STREAMS_MIN_ASSIGNMENT_INTERVAL_MS = integer(
    "group.streams.min.assignment.interval.ms",
    0,
    "Lower bound for a streams group's assignment interval.",
    at_least=0,
    effect=NO_STREAMS,
)
GROUP_STREAMS_MAX_ASSIGNMENT_INTERVAL_MS = integer(
    "group.streams.max.assignment.interval.ms",
    15_000,
    "Upper bound for a streams group's assignment interval.",
    at_least=0,
    effect=NO_STREAMS,
)
