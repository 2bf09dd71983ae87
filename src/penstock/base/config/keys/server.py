"""Identity, topics and limits of the broker as a whole."""

from __future__ import annotations

from penstock.base.config.declaration import CLUSTER_WIDE, LONG_MAX, boolean, class_name, integer, long, string, words
from penstock.base.config.effects import (
    ALONE,
    NO_JVM,
    NO_MOVES,
    NO_QUORUM,
    NO_SECURITY,
    NO_START_LIMIT,
    NO_UNSTABLE,
    ONE_LOOP,
)
from penstock.base.config.rules import EachOf, OneOf, RangeOr

NODE_ID = integer(
    "node.id",
    1,
    "The id of this broker, unique in its cluster. It is written to every log directory and must stay the same.",
    at_least=0,
)
BROKER_ID = integer("broker.id", -1, "Older name of node.id; when both are set they must agree.")
BROKER_RACK = string(
    "broker.rack",
    None,
    "Where this broker stands. Replicas of a partition are spread over racks, and clients may prefer a near one.",
)
PROCESS_ROLES = words(
    "process.roles", (), "The parts a KRaft node plays.", rule=EachOf("broker", "controller"), effect=NO_QUORUM
)
NUM_PARTITIONS = integer(
    "num.partitions", 1, "Partitions of a topic that is created without a number of its own.", at_least=1
)
DEFAULT_REPLICATION_FACTOR = integer(
    "default.replication.factor", 1, "Replicas of a topic that is created without a number of its own."
)
AUTO_CREATE_TOPICS_ENABLE = boolean(
    "auto.create.topics.enable", True, "Create a missing topic when a client asks for its metadata and allows that."
)
DELETE_TOPIC_ENABLE = boolean(
    "delete.topic.enable", True, "Allow topics to be deleted; otherwise DeleteTopics is refused."
)
MESSAGE_MAX_BYTES = integer(
    "message.max.bytes",
    1_048_588,
    "Largest record batch accepted, as it is on the wire. Topics may set max.message.bytes.",
    at_least=0,
    update=CLUSTER_WIDE,
)
COMPRESSION_TYPE = string(
    "compression.type",
    "producer",
    "Codec in which batches are stored; `producer` keeps what the producer chose.",
    rule=OneOf("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
    update=CLUSTER_WIDE,
)
COMPRESSION_GZIP_LEVEL = integer(
    "compression.gzip.level",
    -1,
    "Level for gzip when the broker compresses; -1 is the library's choice.",
    rule=RangeOr(1, 9, -1),
    update=CLUSTER_WIDE,
)
COMPRESSION_LZ4_LEVEL = integer(
    "compression.lz4.level", 9, "Level for lz4 when the broker compresses.", at_least=1, at_most=17, update=CLUSTER_WIDE
)
COMPRESSION_ZSTD_LEVEL = integer(
    "compression.zstd.level",
    3,
    "Level for zstd when the broker compresses.",
    at_least=-131_072,
    at_most=22,
    update=CLUSTER_WIDE,
)
FETCH_MAX_BYTES = integer(
    "fetch.max.bytes",
    57_671_680,
    "Most bytes that one Fetch answer holds, whatever the consumer asks for. A larger first batch is sent whole.",
    at_least=1024,
)
MAX_INCREMENTAL_FETCH_SESSION_CACHE_SLOTS = integer(
    "max.incremental.fetch.session.cache.slots",
    1000,
    "How many incremental fetch sessions are kept; the oldest ones make room.",
    at_least=0,
)
MAX_REQUEST_PARTITION_SIZE_LIMIT = integer(
    "max.request.partition.size.limit",
    2000,
    "Most partitions that one DescribeTopicPartitions answer lists.",
    at_least=1,
)
REQUEST_TIMEOUT_MS = integer(
    "request.timeout.ms",
    30_000,
    "How long this broker waits for the answer to a request it sends itself.",
    effect=ALONE,
)
SOCKET_CONNECTION_SETUP_TIMEOUT_MS = long(
    "socket.connection.setup.timeout.ms",
    10_000,
    "First limit on opening a connection to another broker; it doubles with each failure.",
    effect=ALONE,
)
SOCKET_CONNECTION_SETUP_TIMEOUT_MAX_MS = long(
    "socket.connection.setup.timeout.max.ms",
    30_000,
    "Upper limit on opening a connection to another broker.",
    effect=ALONE,
)
CONTROLLED_SHUTDOWN_ENABLE = boolean(
    "controlled.shutdown.enable", True, "Hand leadership to other brokers before stopping.", effect=ALONE
)
BACKGROUND_THREADS = integer(
    "background.threads",
    10,
    "Threads for background work.",
    at_least=1,
    update=CLUSTER_WIDE,
    effect=ONE_LOOP,
)
NUM_IO_THREADS = integer(
    "num.io.threads", 8, "Threads that handle requests.", at_least=1, update=CLUSTER_WIDE, effect=ONE_LOOP
)
NUM_REPLICA_ALTER_LOG_DIRS_THREADS = integer(
    "num.replica.alter.log.dirs.threads", None, "Threads that move replicas between log directories.", effect=NO_MOVES
)
CONFIG_PROVIDERS = words(
    "config.providers", (), "Names of plug-ins that fetch values from elsewhere.", update=CLUSTER_WIDE, effect=NO_JVM
)
AUTHORIZER_CLASS_NAME = string(
    "authorizer.class.name", "", "The Java class that decides who may do what.", effect=NO_SECURITY
)
CREATE_TOPIC_POLICY_CLASS_NAME = class_name(
    "create.topic.policy.class.name", None, "A Java class that may refuse new topics.", effect=NO_JVM
)
ALTER_CONFIG_POLICY_CLASS_NAME = class_name(
    "alter.config.policy.class.name", None, "A Java class that may refuse changed settings.", effect=NO_JVM
)
EARLY_START_LISTENERS = words(
    "early.start.listeners", None, "Listeners that open before the authorizer is ready.", effect=NO_SECURITY
)
UNSTABLE_API_VERSIONS_ENABLE = boolean(
    "unstable.api.versions.enable",
    False,
    "Serve API versions that are still changing.",
    effect=NO_UNSTABLE,
    internal=True,
)
UNSTABLE_FEATURE_VERSIONS_ENABLE = boolean(
    "unstable.feature.versions.enable",
    False,
    "Allow feature levels that are still changing.",
    effect=NO_UNSTABLE,
    internal=True,
)
SERVER_MAX_STARTUP_TIME_MS = long(
    "server.max.startup.time.ms",
    LONG_MAX,
    "Give up when the start takes longer than this.",
    at_least=0,
    effect=NO_START_LIMIT,
    internal=True,
)
