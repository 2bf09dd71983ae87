"""Keys that only Penstock has; their names start with `penstock.`."""

from __future__ import annotations

from penstock.base.config.declaration import integer, long, string
from penstock.base.config.rules import OneOf

PENSTOCK_PRODUCE_VALIDATION = string(
    "penstock.produce.validation",
    "records",
    "How far batches are checked: `records` walks every record, `headers` trusts the producer beyond that.",
    rule=OneOf("records", "headers"),
)
PENSTOCK_IO_THREADS = integer(
    "penstock.io.threads",
    4,
    "Worker threads beside the event loop, for fsync, recovery and reads that are not in the page cache.",
    at_least=1,
    at_most=256,
)
PENSTOCK_MAX_INFLIGHT_REQUESTS_PER_CONNECTION = integer(
    "penstock.max.inflight.requests.per.connection",
    100,
    "Requests of one connection that may be unanswered at a time; beyond it the connection is not read.",
    at_least=1,
)
PENSTOCK_MAX_UNSENT_BYTES_PER_CONNECTION = integer(
    "penstock.max.unsent.bytes.per.connection",
    1_048_576,
    "Answers in memory that one connection may leave unread; beyond it the connection is not read.",
    at_least=1,
)
PENSTOCK_MAX_DECOMPRESSED_BYTES = long(
    "penstock.max.decompressed.bytes",
    104_857_600,
    "Largest size to which one compressed batch may unfold when it is checked; a larger one is refused.",
    at_least=1,
)
PENSTOCK_METADATA_SNAPSHOT_BYTES = long(
    "penstock.metadata.snapshot.bytes",
    262_144,
    "Smallest size at which the metadata file, having grown to several times its content, is written anew.",
    at_least=4096,
)
PENSTOCK_LOG_FORMAT = string(
    "penstock.log.format",
    "text",
    "Form of the broker's own log lines: `text` for people, `json` for machines.",
    rule=OneOf("text", "json"),
)
PENSTOCK_LOG_LEVEL = string(
    "penstock.log.level",
    "INFO",
    "Least level of the broker's own log lines.",
    rule=OneOf("DEBUG", "INFO", "WARNING", "ERROR", any_case=True),
)
