"""Consumer groups and their offsets."""

from __future__ import annotations

from penstock.base.config.declaration import CLUSTER_WIDE, INT_MAX, integer, long, short, string, words
from penstock.base.config.effects import NO_GROUPS, ONE_LOOP
from penstock.base.config.rules import EachOf, OneOf

OFFSETS_TOPIC_NUM_PARTITIONS = integer(
    "offsets.topic.num.partitions",
    50,
    "Partitions of the topic that holds the groups' offsets. Never change it once the topic is there.",
    at_least=1,
)
OFFSETS_TOPIC_REPLICATION_FACTOR = short(
    "offsets.topic.replication.factor",
    3,
    "Replicas of the offsets topic; fewer when there are fewer brokers.",
    at_least=1,
)
OFFSETS_TOPIC_SEGMENT_BYTES = integer(
    "offsets.topic.segment.bytes",
    104_857_600,
    "Segment size of the offsets topic; small, because it is compacted and loaded.",
    at_least=1,
)
OFFSETS_TOPIC_COMPRESSION_CODEC = integer(
    "offsets.topic.compression.codec", 0, "Codec number in which the offsets topic is written."
)
OFFSETS_LOAD_BUFFER_SIZE = integer(
    "offsets.load.buffer.size",
    5_242_880,
    "Bytes read at a time when a coordinator loads its groups.",
    at_least=1,
)
OFFSETS_COMMIT_TIMEOUT_MS = integer(
    "offsets.commit.timeout.ms",
    5000,
    "How long a commit waits for the replicas of the offsets topic.",
    at_least=1,
)
OFFSET_METADATA_MAX_BYTES = integer(
    "offset.metadata.max.bytes", 4096, "Longest text a client may keep with a committed offset."
)
OFFSETS_RETENTION_MINUTES = integer(
    "offsets.retention.minutes",
    10_080,
    "How long the offsets of an empty group are kept.",
    at_least=1,
)
OFFSETS_RETENTION_CHECK_INTERVAL_MS = long(
    "offsets.retention.check.interval.ms",
    600_000,
    "Time between two searches for expired offsets.",
    at_least=1,
)
GROUP_COORDINATOR_REBALANCE_PROTOCOLS = words(
    "group.coordinator.rebalance.protocols",
    (
        "classic",
        "consumer",
        "streams",
    ),
    "Group protocols that are served.",
    rule=EachOf("consumer", "classic", "share", "streams"),
    effect=NO_GROUPS,
)
GROUP_COORDINATOR_THREADS = integer(
    "group.coordinator.threads", 4, "Threads that run coordinators.", at_least=1, effect=ONE_LOOP
)
GROUP_COORDINATOR_BACKGROUND_THREADS = integer(
    "group.coordinator.background.threads", 2, "Threads for a coordinator's slow work.", at_least=1, effect=ONE_LOOP
)
GROUP_COORDINATOR_APPEND_LINGER_MS = integer(
    "group.coordinator.append.linger.ms",
    -1,
    "How long a coordinator gathers records before it writes them; -1 adapts.",
    at_least=-1,
    effect=NO_GROUPS,
)
GROUP_COORDINATOR_CACHED_BUFFER_MAX_BYTES = integer(
    "group.coordinator.cached.buffer.max.bytes",
    1_048_588,
    "Largest write buffer that a coordinator keeps for the next write.",
    at_least=524_288,
    update=CLUSTER_WIDE,
    effect=NO_GROUPS,
)
GROUP_MIN_SESSION_TIMEOUT_MS = integer(
    "group.min.session.timeout.ms", 6000, "Shortest session time-out a member may ask for."
)
GROUP_MAX_SESSION_TIMEOUT_MS = integer(
    "group.max.session.timeout.ms", 1_800_000, "Longest session time-out a member may ask for."
)
GROUP_INITIAL_REBALANCE_DELAY_MS = integer(
    "group.initial.rebalance.delay.ms",
    3000,
    "How long a new group waits for more members before its first assignment.",
)
GROUP_MAX_SIZE = integer("group.max.size", INT_MAX, "Most members of a group.", at_least=1)
GROUP_CONSUMER_SESSION_TIMEOUT_MS = integer(
    "group.consumer.session.timeout.ms",
    45_000,
    "Session time-out of members of the consumer protocol.",
    at_least=1,
    effect=NO_GROUPS,
)
GROUP_CONSUMER_MIN_SESSION_TIMEOUT_MS = integer(
    "group.consumer.min.session.timeout.ms",
    45_000,
    "Lower bound for the session time-out of a consumer group.",
    at_least=1,
    effect=NO_GROUPS,
)
GROUP_CONSUMER_MAX_SESSION_TIMEOUT_MS = integer(
    "group.consumer.max.session.timeout.ms",
    60_000,
    "Upper bound for the session time-out of a consumer group.",
    at_least=1,
    effect=NO_GROUPS,
)
GROUP_CONSUMER_HEARTBEAT_INTERVAL_MS = integer(
    "group.consumer.heartbeat.interval.ms",
    5000,
    "Heartbeat interval given to members of the consumer protocol.",
    at_least=1,
    effect=NO_GROUPS,
)
GROUP_CONSUMER_MIN_HEARTBEAT_INTERVAL_MS = integer(
    "group.consumer.min.heartbeat.interval.ms",
    5000,
    "Lower bound for the heartbeat interval of a consumer group.",
    at_least=1,
    effect=NO_GROUPS,
)
GROUP_CONSUMER_MAX_HEARTBEAT_INTERVAL_MS = integer(
    "group.consumer.max.heartbeat.interval.ms",
    15_000,
    "Upper bound for the heartbeat interval of a consumer group.",
    at_least=1,
    effect=NO_GROUPS,
)
GROUP_CONSUMER_MAX_SIZE = integer(
    "group.consumer.max.size",
    INT_MAX,
    "Most members of a group of the consumer protocol.",
    at_least=1,
    effect=NO_GROUPS,
)
GROUP_CONSUMER_ASSIGNORS = words(
    "group.consumer.assignors",
    (
        "uniform",
        "range",
    ),
    "Assignors that the broker offers; the first is the default.",
    effect=NO_GROUPS,
)
GROUP_CONSUMER_MIGRATION_POLICY = string(
    "group.consumer.migration.policy",
    "bidirectional",
    "Whether a group may change between the classic and the consumer protocol.",
    rule=OneOf("DISABLED", "DOWNGRADE", "UPGRADE", "BIDIRECTIONAL", any_case=True),
    effect=NO_GROUPS,
)
GROUP_CONSUMER_ASSIGNMENT_INTERVAL_MS = integer(
    "group.consumer.assignment.interval.ms",
    1000,
    "Shortest time between two assignments of a group.",
    at_least=0,
    update=CLUSTER_WIDE,
    effect=NO_GROUPS,
)
GROUP_CONSUMER_MIN_ASSIGNMENT_INTERVAL_MS = integer(
    "group.consumer.min.assignment.interval.ms",
    0,
    "Lower bound for a group's assignment interval.",
    at_least=0,
    effect=NO_GROUPS,
)
GROUP_CONSUMER_MAX_ASSIGNMENT_INTERVAL_MS = integer(
    "group.consumer.max.assignment.interval.ms",
    15_000,
    "Upper bound for a group's assignment interval.",
    at_least=0,
    effect=NO_GROUPS,
)
GROUP_CONSUMER_REGEX_REFRESH_INTERVAL_MS = integer(
    "group.consumer.regex.refresh.interval.ms",
    600_000,
    "How often a subscription by pattern is matched against the topics again.",
    at_least=10_000,
    effect=NO_GROUPS,
    internal=True,
)
