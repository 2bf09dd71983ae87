"""Copies of partitions, their leaders, and what waits for them."""

from __future__ import annotations

from penstock.base.config.declaration import CLUSTER_WIDE, LONG_MAX, boolean, integer, long, string
from penstock.base.config.effects import ALONE, NO_JVM, NO_MOVES, NO_PURGATORY, NO_TIERED

REPLICA_LAG_TIME_MAX_MS = long(
    "replica.lag.time.max.ms",
    30_000,
    "A follower that has not caught up for this long leaves the in-sync replicas.",
    effect=ALONE,
)
REPLICA_SOCKET_TIMEOUT_MS = integer(
    "replica.socket.timeout.ms", 30_000, "Limit on a follower's request to its leader.", effect=ALONE
)
REPLICA_SOCKET_RECEIVE_BUFFER_BYTES = integer(
    "replica.socket.receive.buffer.bytes", 65_536, "Receive buffer of a follower's connection.", effect=ALONE
)
REPLICA_FETCH_MAX_BYTES = integer(
    "replica.fetch.max.bytes", 1_048_576, "Bytes a follower asks for in each partition.", at_least=0, effect=ALONE
)
REPLICA_FETCH_WAIT_MAX_MS = integer(
    "replica.fetch.wait.max.ms", 500, "How long a follower's fetch may wait at the leader.", effect=ALONE
)
REPLICA_FETCH_BACKOFF_MS = integer(
    "replica.fetch.backoff.ms", 1000, "Pause of a follower after an error.", at_least=0, effect=ALONE
)
REPLICA_FETCH_MIN_BYTES = integer(
    "replica.fetch.min.bytes", 1, "Fewest bytes that end a follower's wait.", effect=ALONE
)
REPLICA_FETCH_RESPONSE_MAX_BYTES = integer(
    "replica.fetch.response.max.bytes", 10_485_760, "Most bytes of one answer to a follower.", at_least=0, effect=ALONE
)
NUM_REPLICA_FETCHERS = integer(
    "num.replica.fetchers",
    1,
    "Connections on which a follower copies from each leader.",
    at_least=1,
    update=CLUSTER_WIDE,
    effect=ALONE,
)
REPLICA_HIGH_WATERMARK_CHECKPOINT_INTERVAL_MS = long(
    "replica.high.watermark.checkpoint.interval.ms", 5000, "Time between two writes of the high watermarks."
)
REPLICA_SELECTOR_CLASS = string(
    "replica.selector.class", None, "A Java class that chooses the replica a consumer should read from.", effect=NO_JVM
)
FETCH_PURGATORY_PURGE_INTERVAL_REQUESTS = integer(
    "fetch.purgatory.purge.interval.requests",
    1000,
    "Finished waits that may pile up among the fetches that wait.",
    effect=NO_PURGATORY,
)
PRODUCER_PURGATORY_PURGE_INTERVAL_REQUESTS = integer(
    "producer.purgatory.purge.interval.requests",
    1000,
    "Finished waits that may pile up among the produce requests that wait.",
    effect=NO_PURGATORY,
)
DELETE_RECORDS_PURGATORY_PURGE_INTERVAL_REQUESTS = integer(
    "delete.records.purgatory.purge.interval.requests",
    1,
    "Finished waits that may pile up among the deletions that wait.",
    effect=NO_PURGATORY,
)
AUTO_LEADER_REBALANCE_ENABLE = boolean(
    "auto.leader.rebalance.enable", True, "Give leadership back to preferred replicas by itself.", effect=ALONE
)
LEADER_IMBALANCE_CHECK_INTERVAL_SECONDS = long(
    "leader.imbalance.check.interval.seconds",
    300,
    "Time between two searches for leaders that are not the preferred ones.",
    at_least=1,
    effect=ALONE,
)
UNCLEAN_LEADER_ELECTION_ENABLE = boolean(
    "unclean.leader.election.enable",
    False,
    "Let a replica that is behind become leader when no other is left; records may be lost.",
    update=CLUSTER_WIDE,
    effect=ALONE,
)
UNCLEAN_LEADER_ELECTION_INTERVAL_MS = long(
    "unclean.leader.election.interval.ms",
    300_000,
    "Time between two searches for partitions that need an unclean election.",
    at_least=1,
    effect=ALONE,
    internal=True,
)
CONTROLLER_SOCKET_TIMEOUT_MS = integer(
    "controller.socket.timeout.ms", 30_000, "Limit on a request between controller and broker.", effect=ALONE
)
FOLLOWER_FETCH_LAST_TIERED_OFFSET_ENABLE = boolean(
    "follower.fetch.last.tiered.offset.enable",
    False,
    "Let a new follower start at the end of what is in tiered storage.",
    update=CLUSTER_WIDE,
    effect=NO_TIERED,
)
LEADER_REPLICATION_THROTTLED_RATE = long(
    "leader.replication.throttled.rate",
    LONG_MAX,
    "Bytes per second that leaders send to throttled followers. Can only be set at run time.",
    at_least=0,
    update=CLUSTER_WIDE,
    effect=ALONE,
)
FOLLOWER_REPLICATION_THROTTLED_RATE = long(
    "follower.replication.throttled.rate",
    LONG_MAX,
    "Bytes per second that throttled followers copy. Can only be set at run time.",
    at_least=0,
    update=CLUSTER_WIDE,
    effect=ALONE,
)
REPLICA_ALTER_LOG_DIRS_IO_MAX_BYTES_PER_SECOND = long(
    "replica.alter.log.dirs.io.max.bytes.per.second",
    LONG_MAX,
    "Bytes per second for moving replicas between directories. Can only be set at run time.",
    at_least=0,
    update=CLUSTER_WIDE,
    effect=NO_MOVES,
)
