"""Keys of the producer, Kafka's defaults."""

from __future__ import annotations

from penstock.base.config.declaration import INT_MAX, boolean, integer, long, string
from penstock.base.config.rules import OneOf
from penstock.client.config import effects
from penstock.client.config.common_keys import *  # noqa: F403 - a producer has the common keys too
from penstock.client.config.values import an_object, objects

KEY_SERIALIZER = an_object("key.serializer", None, "Turns keys into bytes; without one, bytes and text are taken.")
VALUE_SERIALIZER = an_object(
    "value.serializer", None, "Turns values into bytes; without one, bytes and text are taken."
)
RECEIVE_BUFFER_BYTES = integer(
    "receive.buffer.bytes", 32_768, "Size of the sockets' receive buffers; -1 leaves it to the system.", at_least=-1
)
BUFFER_MEMORY = long("buffer.memory", 33_554_432, "Bytes of records that may wait to be sent.", at_least=0)
BATCH_SIZE = integer("batch.size", 16_384, "Bytes at which a batch of records is full.", at_least=0)
LINGER_MS = long("linger.ms", 5, "How long a batch that is not full waits for more records.", at_least=0)
DELIVERY_TIMEOUT_MS = integer(
    "delivery.timeout.ms", 120_000, "From send() to the last moment of success or failure.", at_least=0
)
ACKS = string(
    "acks",
    "all",
    "Which replicas must have a record before it counts as sent: all in sync, the leader (1), or none (0).",
    rule=OneOf("all", "-1", "0", "1"),
)
RETRIES = integer(
    "retries", INT_MAX, "How often a request is repeated; delivery.timeout.ms is the better limit.", at_least=0
)
MAX_REQUEST_SIZE = integer("max.request.size", 1_048_576, "Largest request, and largest record, in bytes.", at_least=0)
MAX_BLOCK_MS = long("max.block.ms", 60_000, "How long send() may wait for memory or metadata.", at_least=0)
MAX_IN_FLIGHT_REQUESTS_PER_CONNECTION = integer(
    "max.in.flight.requests.per.connection", 5, "Requests to one broker that wait for answers.", at_least=1
)
METADATA_MAX_IDLE_MS = long(
    "metadata.max.idle.ms", 300_000, "A topic that was not written to for so long is forgotten.", at_least=5_000
)
COMPRESSION_TYPE = string(
    "compression.type",
    "none",
    "Compression of batches.",
    rule=OneOf("none", "gzip", "snappy", "lz4", "zstd"),
)
COMPRESSION_GZIP_LEVEL = integer("compression.gzip.level", -1, "Level of gzip, -1 or 1 to 9.", at_least=-1, at_most=9)
COMPRESSION_LZ4_LEVEL = integer("compression.lz4.level", 9, "Level of lz4.", at_least=1, at_most=17)
COMPRESSION_ZSTD_LEVEL = integer("compression.zstd.level", 3, "Level of zstd.", at_least=-131_072, at_most=22)
PARTITIONER_CLASS = an_object("partitioner.class", None, "Chooses partitions; without one, by key or sticky.")
PARTITIONER_IGNORE_KEYS = boolean("partitioner.ignore.keys", False, "Choose partitions as if there were no keys.")
PARTITIONER_ADAPTIVE_PARTITIONING_ENABLE = boolean(
    "partitioner.adaptive.partitioning.enable", True, "Give more records to brokers that answer faster (KIP-794)."
)
PARTITIONER_AVAILABILITY_TIMEOUT_MS = long(
    "partitioner.availability.timeout.ms",
    0,
    "A broker that took nothing for so long gets no keyless records; 0 turns this off.",
    at_least=0,
    effect=effects.PLAIN_STICKY,
)
PARTITIONER_RACK_AWARE = boolean(
    "partitioner.rack.aware",
    False,
    "Prefer partitions whose leader is in client.rack (KIP-1123).",
    effect=effects.PLAIN_STICKY,
)
INTERCEPTOR_CLASSES = objects("interceptor.classes", (), "Interceptors, in the order in which they are called.")
ENABLE_IDEMPOTENCE = boolean(
    "enable.idempotence", True, "A record is written once and in order, whatever must be repeated."
)
TRANSACTION_TIMEOUT_MS = integer(
    "transaction.timeout.ms", 60_000, "A transaction open for longer is aborted by its coordinator."
)
TRANSACTIONAL_ID = string("transactional.id", None, "Name that makes transactions possible; unique to this producer.")
TRANSACTION_TWO_PHASE_COMMIT_ENABLE = boolean(
    "transaction.two.phase.commit.enable",
    False,
    "Let an outer coordinator decide transactions (KIP-939).",
    effect="brokers do not serve it yet",
)
PARTITIONER_KEYLESS = string(
    "penstock.partitioner.keyless",
    "sticky",
    "How records without keys are spread.",
    rule=OneOf("sticky", "round_robin", "random"),
)
ENABLE_AUTO_TOPIC_CREATION = boolean(
    "allow.auto.create.topics", True, "Let a broker that is set so create a topic that is written to."
)
DEFAULT_API_TIMEOUT_MS = integer(
    "default.api.timeout.ms", 60_000, "How long calls without a time-out of their own may take.", at_least=0
)
