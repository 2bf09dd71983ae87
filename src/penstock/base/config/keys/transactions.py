"""The transaction coordinator."""

from __future__ import annotations

from penstock.base.config.declaration import CLUSTER_WIDE, boolean, integer, short
from penstock.base.config.effects import NO_TRANSACTIONS

TRANSACTION_STATE_LOG_NUM_PARTITIONS = integer(
    "transaction.state.log.num.partitions",
    50,
    "Partitions of the topic that holds the transactions' state. Never change it once the topic is there.",
    at_least=1,
)
TRANSACTION_STATE_LOG_REPLICATION_FACTOR = short(
    "transaction.state.log.replication.factor",
    3,
    "Replicas of the transactions topic; fewer when there are fewer brokers.",
    at_least=1,
)
TRANSACTION_STATE_LOG_MIN_ISR = integer(
    "transaction.state.log.min.isr",
    2,
    "Least in-sync replicas of the transactions topic; never more than it has replicas.",
    at_least=1,
)
TRANSACTION_STATE_LOG_SEGMENT_BYTES = integer(
    "transaction.state.log.segment.bytes",
    104_857_600,
    "Segment size of the transactions topic.",
    at_least=1,
)
TRANSACTION_STATE_LOG_LOAD_BUFFER_SIZE = integer(
    "transaction.state.log.load.buffer.size",
    5_242_880,
    "Bytes read at a time when a coordinator loads its transactions.",
    at_least=1,
)
TRANSACTION_MAX_TIMEOUT_MS = integer(
    "transaction.max.timeout.ms",
    900_000,
    "Longest transaction time-out a producer may ask for.",
    at_least=1,
)
TRANSACTIONAL_ID_EXPIRATION_MS = integer(
    "transactional.id.expiration.ms",
    604_800_000,
    "A transactional id without activity for this long is forgotten.",
    at_least=1,
)
TRANSACTION_ABORT_TIMED_OUT_TRANSACTION_CLEANUP_INTERVAL_MS = integer(
    "transaction.abort.timed.out.transaction.cleanup.interval.ms",
    10_000,
    "Time between two searches for transactions to abort.",
    at_least=1,
)
TRANSACTION_REMOVE_EXPIRED_TRANSACTION_CLEANUP_INTERVAL_MS = integer(
    "transaction.remove.expired.transaction.cleanup.interval.ms",
    3_600_000,
    "Time between two searches for transactional ids to forget.",
    at_least=1,
)
TRANSACTION_PARTITION_VERIFICATION_ENABLE = boolean(
    "transaction.partition.verification.enable",
    True,
    "Ask the coordinator whether a partition belongs to the transaction before the first append.",
    update=CLUSTER_WIDE,
)
TRANSACTION_TWO_PHASE_COMMIT_ENABLE = boolean(
    "transaction.two.phase.commit.enable",
    False,
    "Allow transactions that an outside coordinator ends, without a time-out.",
    effect=NO_TRANSACTIONS,
)
ADD_PARTITIONS_TO_TXN_RETRY_BACKOFF_MS = integer(
    "add.partitions.to.txn.retry.backoff.ms",
    20,
    "Pause between tries to add a partition to a transaction on a client's behalf.",
    at_least=1,
)
ADD_PARTITIONS_TO_TXN_RETRY_BACKOFF_MAX_MS = integer(
    "add.partitions.to.txn.retry.backoff.max.ms",
    100,
    "Longest time such tries go on.",
    at_least=0,
)
