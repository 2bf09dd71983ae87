"""Quotas, metrics and telemetry."""

from __future__ import annotations

from penstock.base.config.declaration import CLUSTER_WIDE, class_name, integer, long, string, words
from penstock.base.config.effects import NO_JVM, NO_QUOTAS, NO_TELEMETRY, OWN_METRICS

QUOTA_WINDOW_NUM = integer(
    "quota.window.num", 11, "Samples over which a client's rate is measured.", at_least=1, effect=NO_QUOTAS
)
QUOTA_WINDOW_SIZE_SECONDS = integer(
    "quota.window.size.seconds", 1, "Length of a sample of a client's rate.", at_least=1, effect=NO_QUOTAS
)
REPLICATION_QUOTA_WINDOW_NUM = integer(
    "replication.quota.window.num", 11, "Samples over which replication is measured.", at_least=1, effect=NO_QUOTAS
)
REPLICATION_QUOTA_WINDOW_SIZE_SECONDS = integer(
    "replication.quota.window.size.seconds",
    1,
    "Length of a sample of the replication rate.",
    at_least=1,
    effect=NO_QUOTAS,
)
ALTER_LOG_DIRS_REPLICATION_QUOTA_WINDOW_NUM = integer(
    "alter.log.dirs.replication.quota.window.num",
    11,
    "Samples over which moves between directories are measured.",
    at_least=1,
    effect=NO_QUOTAS,
)
ALTER_LOG_DIRS_REPLICATION_QUOTA_WINDOW_SIZE_SECONDS = integer(
    "alter.log.dirs.replication.quota.window.size.seconds",
    1,
    "Length of a sample of the rate of such moves.",
    at_least=1,
    effect=NO_QUOTAS,
)
CONTROLLER_QUOTA_WINDOW_NUM = integer(
    "controller.quota.window.num", 11, "Samples over which topic changes are measured.", at_least=1, effect=NO_QUOTAS
)
CONTROLLER_QUOTA_WINDOW_SIZE_SECONDS = integer(
    "controller.quota.window.size.seconds",
    1,
    "Length of a sample of the rate of topic changes.",
    at_least=1,
    effect=NO_QUOTAS,
)
CLIENT_QUOTA_CALLBACK_CLASS = class_name(
    "client.quota.callback.class", None, "A Java class that computes quotas.", effect=NO_JVM
)
METRICS_NUM_SAMPLES = integer("metrics.num.samples", 2, "Samples kept for a rate.", at_least=1, effect=OWN_METRICS)
METRICS_SAMPLE_WINDOW_MS = long(
    "metrics.sample.window.ms", 30_000, "Length of a sample of a rate.", at_least=1, effect=OWN_METRICS
)
METRIC_REPORTERS = words(
    "metric.reporters",
    ("org.apache.kafka.common.metrics.JmxReporter",),
    "Java classes that are told about metrics.",
    update=CLUSTER_WIDE,
    effect=OWN_METRICS,
)
METRICS_RECORDING_LEVEL = string("metrics.recording.level", "INFO", "How detailed metrics are.", effect=OWN_METRICS)
KAFKA_METRICS_REPORTERS = words(
    "kafka.metrics.reporters", (), "Java classes that are told about the older kind of metrics.", effect=OWN_METRICS
)
KAFKA_METRICS_POLLING_INTERVAL_SECS = integer(
    "kafka.metrics.polling.interval.secs", 10, "How often those classes look.", at_least=1, effect=OWN_METRICS
)
TELEMETRY_MAX_BYTES = integer(
    "telemetry.max.bytes", 1_048_576, "Largest telemetry push accepted from a client.", at_least=1, effect=NO_TELEMETRY
)
