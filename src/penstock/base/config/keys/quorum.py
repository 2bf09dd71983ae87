"""KRaft: quorum, metadata log and registration."""

from __future__ import annotations

from penstock.base.config.declaration import boolean, integer, long, string, words
from penstock.base.config.effects import NO_QUORUM

CONTROLLER_LISTENER_NAMES = words(
    "controller.listener.names",
    (),
    "Listeners that belong to the KRaft controller. They are left closed here.",
    effect=NO_QUORUM,
)
CONTROLLER_QUORUM_VOTERS = words("controller.quorum.voters", (), "Members of the KRaft quorum.", effect=NO_QUORUM)
CONTROLLER_QUORUM_BOOTSTRAP_SERVERS = words(
    "controller.quorum.bootstrap.servers", (), "Where a node finds the KRaft quorum.", effect=NO_QUORUM
)
CONTROLLER_QUORUM_ELECTION_TIMEOUT_MS = integer(
    "controller.quorum.election.timeout.ms",
    1000,
    "Patience of a candidate before it starts another election.",
    at_least=0,
    effect=NO_QUORUM,
)
CONTROLLER_QUORUM_FETCH_TIMEOUT_MS = integer(
    "controller.quorum.fetch.timeout.ms", 2000, "Patience with a silent quorum leader.", at_least=0, effect=NO_QUORUM
)
CONTROLLER_QUORUM_ELECTION_BACKOFF_MAX_MS = integer(
    "controller.quorum.election.backoff.max.ms",
    1000,
    "Longest random pause between elections.",
    at_least=0,
    effect=NO_QUORUM,
)
CONTROLLER_QUORUM_APPEND_LINGER_MS = integer(
    "controller.quorum.append.linger.ms",
    25,
    "How long the quorum leader gathers records before it writes them.",
    at_least=0,
    effect=NO_QUORUM,
)
CONTROLLER_QUORUM_REQUEST_TIMEOUT_MS = integer(
    "controller.quorum.request.timeout.ms", 2000, "Limit on a request within the quorum.", at_least=0, effect=NO_QUORUM
)
CONTROLLER_QUORUM_RETRY_BACKOFF_MS = integer(
    "controller.quorum.retry.backoff.ms",
    20,
    "Pause before a request within the quorum is repeated.",
    at_least=0,
    effect=NO_QUORUM,
)
CONTROLLER_QUORUM_AUTO_JOIN_ENABLE = boolean(
    "controller.quorum.auto.join.enable", False, "Let a controller add itself to the voters.", effect=NO_QUORUM
)
CONTROLLER_QUORUM_FETCH_SNAPSHOT_MAX_BYTES = integer(
    "controller.quorum.fetch.snapshot.max.bytes",
    1_048_576,
    "Bytes fetched at a time from a metadata snapshot.",
    at_least=1,
    effect=NO_QUORUM,
)
CONTROLLER_QUORUM_FETCH_MAX_BYTES = integer(
    "controller.quorum.fetch.max.bytes",
    1_048_576,
    "Bytes fetched at a time from the metadata log.",
    at_least=1,
    effect=NO_QUORUM,
)
SASL_MECHANISM_CONTROLLER_PROTOCOL = string(
    "sasl.mechanism.controller.protocol", "GSSAPI", "SASL mechanism spoken with KRaft controllers.", effect=NO_QUORUM
)
CONTROLLER_PERFORMANCE_SAMPLE_PERIOD_MS = long(
    "controller.performance.sample.period.ms",
    60_000,
    "How often the controller reports its slow events.",
    at_least=100,
    effect=NO_QUORUM,
    internal=True,
)
CONTROLLER_PERFORMANCE_ALWAYS_LOG_THRESHOLD_MS = long(
    "controller.performance.always.log.threshold.ms",
    2000,
    "A controller event slower than this is always reported.",
    at_least=0,
    effect=NO_QUORUM,
    internal=True,
)
INITIAL_BROKER_REGISTRATION_TIMEOUT_MS = integer(
    "initial.broker.registration.timeout.ms",
    60_000,
    "How long a starting broker tries to register with the quorum.",
    effect=NO_QUORUM,
)
BROKER_HEARTBEAT_INTERVAL_MS = integer(
    "broker.heartbeat.interval.ms", 2000, "Time between a broker's heartbeats to the quorum.", effect=NO_QUORUM
)
BROKER_SESSION_TIMEOUT_MS = integer(
    "broker.session.timeout.ms", 9000, "A broker without heartbeats for this long is fenced.", effect=NO_QUORUM
)
METADATA_LOG_DIR = string(
    "metadata.log.dir",
    None,
    "Directory of the KRaft metadata log. The metadata file here is in the first of log.dirs.",
    effect=NO_QUORUM,
)
METADATA_LOG_MAX_RECORD_BYTES_BETWEEN_SNAPSHOTS = long(
    "metadata.log.max.record.bytes.between.snapshots",
    20_971_520,
    "Bytes of metadata log after which a snapshot is made.",
    at_least=1,
    effect=NO_QUORUM,
)
METADATA_LOG_MAX_SNAPSHOT_INTERVAL_MS = long(
    "metadata.log.max.snapshot.interval.ms",
    3_600_000,
    "Time after which a metadata snapshot is made.",
    at_least=0,
    effect=NO_QUORUM,
)
METADATA_LOG_SEGMENT_BYTES = integer(
    "metadata.log.segment.bytes",
    1_073_741_824,
    "Segment size of the metadata log.",
    at_least=8_388_608,
    effect=NO_QUORUM,
)
METADATA_LOG_SEGMENT_MS = long(
    "metadata.log.segment.ms", 604_800_000, "Segment age of the metadata log.", effect=NO_QUORUM
)
METADATA_MAX_RETENTION_BYTES = long(
    "metadata.max.retention.bytes",
    104_857_600,
    "Size of metadata log and snapshots above which old ones go.",
    effect=NO_QUORUM,
)
METADATA_MAX_RETENTION_MS = long(
    "metadata.max.retention.ms", 604_800_000, "Age at which old metadata segments and snapshots go.", effect=NO_QUORUM
)
METADATA_MAX_IDLE_INTERVAL_MS = integer(
    "metadata.max.idle.interval.ms",
    500,
    "How often an idle controller writes a record to show that it lives.",
    at_least=0,
    effect=NO_QUORUM,
)
INTERNAL_METADATA_LOG_SEGMENT_BYTES = integer(
    "internal.metadata.log.segment.bytes",
    None,
    "Segment size of the metadata log in tests.",
    effect=NO_QUORUM,
    internal=True,
)
INTERNAL_METADATA_MAX_BATCH_SIZE_IN_BYTES = integer(
    "internal.metadata.max.batch.size.in.bytes",
    8_388_608,
    "Largest metadata batch in tests.",
    effect=NO_QUORUM,
    internal=True,
)
INTERNAL_METADATA_DELETE_DELAY_MILLIS = long(
    "internal.metadata.delete.delay.millis",
    60_000,
    "Delay before metadata files are removed in tests.",
    effect=NO_QUORUM,
    internal=True,
)
