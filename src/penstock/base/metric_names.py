"""The names of the metrics, as the usual JMX exporter rules spell Kafka's own, with one sentence each.

Kafka's `kafka.server:type=BrokerTopicMetrics,name=MessagesInPerSec,topic=x` becomes
`kafka_server_brokertopicmetrics_messagesin_total{topic="x"}`. `docs/metrics.md` is printed from this table.
"""

from __future__ import annotations

from typing import Final

MESSAGES_IN: Final = "kafka_server_brokertopicmetrics_messagesin_total"
BYTES_IN: Final = "kafka_server_brokertopicmetrics_bytesin_total"
BYTES_OUT: Final = "kafka_server_brokertopicmetrics_bytesout_total"
BYTES_REJECTED: Final = "kafka_server_brokertopicmetrics_bytesrejected_total"
TOTAL_PRODUCE_REQUESTS: Final = "kafka_server_brokertopicmetrics_totalproducerequests_total"
TOTAL_FETCH_REQUESTS: Final = "kafka_server_brokertopicmetrics_totalfetchrequests_total"
FAILED_PRODUCE_REQUESTS: Final = "kafka_server_brokertopicmetrics_failedproducerequests_total"
FAILED_FETCH_REQUESTS: Final = "kafka_server_brokertopicmetrics_failedfetchrequests_total"

REQUESTS: Final = "kafka_network_requestmetrics_requests_total"
ERRORS: Final = "kafka_network_requestmetrics_errors_total"
REQUEST_TOTAL_TIME_MS: Final = "kafka_network_requestmetrics_totaltimems"
SOCKET_BYTES_IN: Final = "kafka_server_socket_server_metrics_incoming_byte_total"
SOCKET_BYTES_OUT: Final = "kafka_server_socket_server_metrics_outgoing_byte_total"
CONNECTION_COUNT: Final = "kafka_server_socket_server_metrics_connection_count"
CONNECTION_CREATIONS: Final = "kafka_server_socket_server_metrics_connection_creation_total"
CONNECTION_CLOSES: Final = "kafka_server_socket_server_metrics_connection_close_total"
NETWORK_IDLE: Final = "kafka_network_socketserver_networkprocessoravgidle_percent"
CONNECTIONS_IDLE_CLOSED: Final = "kafka_network_socketserver_expiredconnectionskilledcount"
CONNECTIONS_REFUSED: Final = "penstock_network_connections_refused_total"
MEMORY_POOL_AVAILABLE: Final = "kafka_network_socketserver_memorypoolavailable"
MEMORY_POOL_USED: Final = "kafka_network_socketserver_memorypoolused"

LEADER_COUNT: Final = "kafka_server_replicamanager_leadercount"
PARTITION_COUNT: Final = "kafka_server_replicamanager_partitioncount"
OFFLINE_REPLICA_COUNT: Final = "kafka_server_replicamanager_offlinereplicacount"
UNDER_REPLICATED_PARTITIONS: Final = "kafka_server_replicamanager_underreplicatedpartitions"
UNDER_MIN_ISR_PARTITION_COUNT: Final = "kafka_server_replicamanager_underminisrpartitioncount"
AT_MIN_ISR_PARTITION_COUNT: Final = "kafka_server_replicamanager_atminisrpartitioncount"
ISR_SHRINKS: Final = "kafka_server_replicamanager_isrshrinks_total"
ISR_EXPANDS: Final = "kafka_server_replicamanager_isrexpands_total"
PURGATORY_SIZE: Final = "kafka_server_delayedoperationpurgatory_purgatorysize"
NUM_DELAYED_OPERATIONS: Final = "kafka_server_delayedoperationpurgatory_numdelayedoperations"
DELAYED_FETCH_EXPIRES: Final = "kafka_server_delayedfetchmetrics_expires_total"
DELAYED_PRODUCE_EXPIRES: Final = "kafka_server_delayedproducemetrics_expires_total"
FETCH_SESSIONS: Final = "kafka_server_fetchsessioncache_numincrementalfetchsessions"
FETCH_SESSION_EVICTIONS: Final = "kafka_server_fetchsessioncache_incrementalfetchsessionevictions_total"

LOG_SIZE: Final = "kafka_log_log_size"
LOG_START_OFFSET: Final = "kafka_log_log_logstartoffset"
LOG_END_OFFSET: Final = "kafka_log_log_logendoffset"
LOG_SEGMENTS: Final = "kafka_log_log_numlogsegments"
LOG_FLUSHES: Final = "kafka_log_logflushstats_logflushrateandtimems"
OFFLINE_LOG_DIRECTORY_COUNT: Final = "kafka_log_logmanager_offlinelogdirectorycount"

ACTIVE_CONTROLLER_COUNT: Final = "kafka_controller_kafkacontroller_activecontrollercount"
GLOBAL_TOPIC_COUNT: Final = "kafka_controller_kafkacontroller_globaltopiccount"
GLOBAL_PARTITION_COUNT: Final = "kafka_controller_kafkacontroller_globalpartitioncount"
OFFLINE_PARTITIONS_COUNT: Final = "kafka_controller_kafkacontroller_offlinepartitionscount"
ACTIVE_BROKER_COUNT: Final = "kafka_controller_kafkacontroller_activebrokercount"
BROKER_STATE: Final = "kafka_server_kafkaserver_brokerstate"

GROUPS: Final = "kafka_coordinator_group_groupmetadatamanager_numgroups"
GROUPS_EMPTY: Final = "kafka_coordinator_group_groupmetadatamanager_numgroupsempty"
GROUPS_PREPARING_REBALANCE: Final = "kafka_coordinator_group_groupmetadatamanager_numgroupspreparingrebalance"
GROUPS_COMPLETING_REBALANCE: Final = "kafka_coordinator_group_groupmetadatamanager_numgroupscompletingrebalance"
GROUPS_STABLE: Final = "kafka_coordinator_group_groupmetadatamanager_numgroupsstable"
GROUPS_DEAD: Final = "kafka_coordinator_group_groupmetadatamanager_numgroupsdead"
GROUP_OFFSETS: Final = "kafka_coordinator_group_groupmetadatamanager_numoffsets"
GROUP_PARTITIONS: Final = "kafka_server_group_coordinator_metrics_num_partitions"
GROUP_LOAD_TIME_MAX_MS: Final = "kafka_server_group_coordinator_metrics_partition_load_time_max"
TRANSACTIONS: Final = "penstock_transaction_coordinator_transactions"
TRANSACTION_PARTITIONS: Final = "penstock_transaction_coordinator_num_partitions"
TRANSACTION_LOAD_TIME_MAX_MS: Final = "kafka_server_transaction_coordinator_metrics_partition_load_time_max"
MARKERS_PENDING: Final = "penstock_transaction_coordinator_markers_pending"

OPEN_FILES: Final = "process_open_fds"
MAX_FILES: Final = "process_max_fds"
RESIDENT_MEMORY: Final = "process_resident_memory_bytes"
CPU_SECONDS: Final = "process_cpu_seconds_total"
START_TIME: Final = "process_start_time_seconds"

HELP: Final[dict[str, str]] = {
    MESSAGES_IN: "Records appended.",
    BYTES_IN: "Bytes of record batches received from producers.",
    BYTES_OUT: "Bytes of record batches sent to consumers.",
    BYTES_REJECTED: "Bytes of record batches that were refused.",
    TOTAL_PRODUCE_REQUESTS: "Produce requests, counted once for each partition in them.",
    TOTAL_FETCH_REQUESTS: "Fetch requests, counted once for each partition in them.",
    FAILED_PRODUCE_REQUESTS: "Partitions of produce requests that were answered with an error.",
    FAILED_FETCH_REQUESTS: "Partitions of fetch requests that were answered with an error.",
    REQUESTS: "Requests received.",
    ERRORS: "Requests that were answered with an error as a whole.",
    REQUEST_TOTAL_TIME_MS: "Milliseconds from the whole request being read to its answer being handed to the socket.",
    SOCKET_BYTES_IN: "Bytes read from connections.",
    SOCKET_BYTES_OUT: "Bytes written to connections.",
    CONNECTION_COUNT: "Open connections.",
    CONNECTION_CREATIONS: "Connections accepted.",
    CONNECTION_CLOSES: "Connections closed.",
    NETWORK_IDLE: "Share of the time since the last look in which the event loop had nothing to do, 0 to 1.",
    CONNECTIONS_IDLE_CLOSED: "Connections closed because they made no progress for connections.max.idle.ms.",
    CONNECTIONS_REFUSED: "Connections refused by a limit on their number.",
    MEMORY_POOL_AVAILABLE: "Bytes of queued.max.request.bytes that are free.",
    MEMORY_POOL_USED: "Bytes of queued.max.request.bytes that requests hold.",
    LEADER_COUNT: "Partitions this broker leads.",
    PARTITION_COUNT: "Partitions this broker has a replica of.",
    OFFLINE_REPLICA_COUNT: "Replicas whose log directory has failed.",
    UNDER_REPLICATED_PARTITIONS: "Partitions led here with a replica outside the ISR.",
    UNDER_MIN_ISR_PARTITION_COUNT: "Partitions led here with fewer in-sync replicas than min.insync.replicas.",
    AT_MIN_ISR_PARTITION_COUNT: "Partitions led here with just min.insync.replicas in-sync replicas.",
    ISR_SHRINKS: "Times a replica left an ISR.",
    ISR_EXPANDS: "Times a replica joined an ISR.",
    PURGATORY_SIZE: "Requests parked at present.",
    NUM_DELAYED_OPERATIONS: "Requests parked at present that have not been answered yet.",
    DELAYED_FETCH_EXPIRES: "Parked fetches that ended by their deadline.",
    DELAYED_PRODUCE_EXPIRES: "Parked produce requests that ended by their deadline.",
    FETCH_SESSIONS: "Incremental fetch sessions held.",
    FETCH_SESSION_EVICTIONS: "Incremental fetch sessions dropped to make room.",
    LOG_SIZE: "Bytes in the log of a partition.",
    LOG_START_OFFSET: "First offset of a partition.",
    LOG_END_OFFSET: "Offset the next record of a partition will get.",
    LOG_SEGMENTS: "Segments of a partition.",
    LOG_FLUSHES: "Milliseconds that flushing a log to disk took.",
    OFFLINE_LOG_DIRECTORY_COUNT: "Log directories that have failed.",
    ACTIVE_CONTROLLER_COUNT: "1 on the controller, 0 elsewhere.",
    GLOBAL_TOPIC_COUNT: "Topics in the cluster.",
    GLOBAL_PARTITION_COUNT: "Partitions in the cluster.",
    OFFLINE_PARTITIONS_COUNT: "Partitions without a leader.",
    ACTIVE_BROKER_COUNT: "Brokers that are registered and not fenced.",
    BROKER_STATE: "0 not running, 1 starting, 2 recovering logs, 3 running, 7 stopping.",
    GROUPS: "Groups coordinated here.",
    GROUPS_EMPTY: "Groups without members, those that only commit offsets among them.",
    GROUPS_PREPARING_REBALANCE: "Groups that wait for their members to join.",
    GROUPS_COMPLETING_REBALANCE: "Groups that wait for their leader's assignment.",
    GROUPS_STABLE: "Groups whose members all have their assignment.",
    GROUPS_DEAD: "Groups that are about to be forgotten.",
    GROUP_OFFSETS: "Offsets committed by the groups coordinated here.",
    GROUP_PARTITIONS: "Partitions of __consumer_offsets led here, by the state of their coordinator.",
    GROUP_LOAD_TIME_MAX_MS: "Longest time that a partition of __consumer_offsets took to load, in milliseconds.",
    TRANSACTIONS: "Transactional ids coordinated here, by the state of their transaction.",
    TRANSACTION_PARTITIONS: "Partitions of __transaction_state led here, by the state of their coordinator.",
    TRANSACTION_LOAD_TIME_MAX_MS: "Longest time that a partition of __transaction_state took to load, in milliseconds.",
    MARKERS_PENDING: "Transactions that are decided and not yet marked on all of their partitions.",
    OPEN_FILES: "Open file descriptors of this process.",
    MAX_FILES: "Limit of open file descriptors of this process.",
    RESIDENT_MEMORY: "Resident memory of this process in bytes.",
    CPU_SECONDS: "CPU seconds this process has used.",
    START_TIME: "When this process started, in seconds since the epoch.",
}

_PER_TOPIC: Final = "`topic`, and once without it for all topics together"
_PER_API: Final = "`request`"
_PER_LISTENER: Final = "`listener`"
_PER_PARTITION: Final = "`topic`, `partition`"

LABELS: Final[dict[str, str]] = {
    **dict.fromkeys((name for name in HELP if name.startswith("kafka_server_brokertopicmetrics_")), _PER_TOPIC),
    **dict.fromkeys((name for name in HELP if name.startswith("kafka_network_requestmetrics_")), _PER_API),
    **dict.fromkeys((name for name in HELP if name.startswith("kafka_server_socket_server_")), _PER_LISTENER),
    **dict.fromkeys((name for name in HELP if name.startswith("kafka_log_log_")), _PER_PARTITION),
    REQUESTS: "`request`, `version`",
    CONNECTIONS_IDLE_CLOSED: _PER_LISTENER,
    CONNECTIONS_REFUSED: _PER_LISTENER,
    PURGATORY_SIZE: "`delayedOperation`",
    NUM_DELAYED_OPERATIONS: "`delayedOperation`",
    DELAYED_FETCH_EXPIRES: "`fetcherType`",
    **dict.fromkeys((GROUP_PARTITIONS, TRANSACTION_PARTITIONS, TRANSACTIONS), "`state`"),
}
"""The labels that a metric has besides `quantile`, for the documentation."""
