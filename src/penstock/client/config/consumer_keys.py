"""Keys of the consumer, Kafka's defaults."""

from __future__ import annotations

from penstock.base.config.declaration import boolean, integer, string
from penstock.base.config.rules import OneOf
from penstock.client.config.common_keys import *  # noqa: F403 - a consumer has the common keys too
from penstock.client.config.effects import CLASSIC_ONLY
from penstock.client.config.rules import GroupProtocol, ResetPolicy
from penstock.client.config.values import an_object, objects

GROUP_ID = string("group.id", None, "The group whose members share partitions, and whose offsets are committed.")
GROUP_INSTANCE_ID = string(
    "group.instance.id", None, "A name that keeps the member's partitions over a restart (static membership)."
)
GROUP_PROTOCOL = string("group.protocol", "classic", "The group protocol.", rule=GroupProtocol())
GROUP_REMOTE_ASSIGNOR = string("group.remote.assignor", None, "The broker's assignor.", effect=CLASSIC_ONLY)
SESSION_TIMEOUT_MS = integer(
    "session.timeout.ms", 45_000, "A member that sends no heartbeat for so long is out of the group.", at_least=1
)
HEARTBEAT_INTERVAL_MS = integer(
    "heartbeat.interval.ms", 3_000, "Time between heartbeats; below a third of session.timeout.ms.", at_least=1
)
MAX_POLL_INTERVAL_MS = integer(
    "max.poll.interval.ms", 300_000, "A member that does not poll for so long leaves the group.", at_least=1
)
MAX_POLL_RECORDS = integer("max.poll.records", 500, "Most records that one poll gives.", at_least=1)
PARTITION_ASSIGNMENT_STRATEGY = objects(
    "partition.assignment.strategy",
    ("range", "cooperative-sticky"),
    "Assignors in the order of preference: range, roundrobin, sticky, cooperative-sticky, or objects.",
)
ENABLE_AUTO_COMMIT = boolean("enable.auto.commit", True, "Commit positions in the background.")
AUTO_COMMIT_INTERVAL_MS = integer("auto.commit.interval.ms", 5_000, "Time between such commits.", at_least=0)
AUTO_OFFSET_RESET = string(
    "auto.offset.reset",
    "latest",
    "Where to begin without a committed offset: earliest, latest, by_duration:<ISO-8601>, or none (raise).",
    rule=ResetPolicy(),
)
FETCH_MIN_BYTES = integer("fetch.min.bytes", 1, "A broker waits until it has so many bytes ...", at_least=0)
FETCH_MAX_WAIT_MS = integer("fetch.max.wait.ms", 500, "... or until this time is over.", at_least=0)
FETCH_MAX_BYTES = integer("fetch.max.bytes", 52_428_800, "Most bytes in one answer.", at_least=0)
MAX_PARTITION_FETCH_BYTES = integer(
    "max.partition.fetch.bytes", 1_048_576, "Most bytes of one partition in one answer.", at_least=0
)
CHECK_CRCS = boolean("check.crcs", True, "Check the checksum of each batch.")
ISOLATION_LEVEL = string(
    "isolation.level",
    "read_uncommitted",
    "Whether records of open and aborted transactions are given.",
    rule=OneOf("read_uncommitted", "read_committed", any_case=True),
)
RECEIVE_BUFFER_BYTES = integer(
    "receive.buffer.bytes", 65_536, "Size of the sockets' receive buffers; -1 leaves it to the system.", at_least=-1
)
DEFAULT_API_TIMEOUT_MS = integer(
    "default.api.timeout.ms", 60_000, "How long calls without a time-out of their own may take.", at_least=0
)
KEY_DESERIALIZER = an_object("key.deserializer", None, "Turns bytes into keys; without one, they stay bytes.")
VALUE_DESERIALIZER = an_object("value.deserializer", None, "Turns bytes into values; without one, they stay bytes.")
INTERCEPTOR_CLASSES = objects("interceptor.classes", (), "Interceptors, in the order in which they are called.")
EXCLUDE_INTERNAL_TOPICS = boolean(
    "exclude.internal.topics", True, "Leave internal topics out of subscriptions by pattern."
)
ALLOW_AUTO_CREATE_TOPICS = boolean(
    "allow.auto.create.topics", True, "Let a broker that is set so create a topic that is subscribed to."
)
OFFSET_STORE = an_object("penstock.offset.store", None, "Keeps offsets instead of the group's coordinator.")
PREFETCH_BYTES = integer(
    "penstock.prefetch.bytes", 67_108_864, "Bytes of records fetched ahead of poll(), in all.", at_least=0
)
MAX_IN_FLIGHT_REQUESTS_PER_CONNECTION = integer(
    "max.in.flight.requests.per.connection", 100, "Requests to one broker that wait for answers.", at_least=1,
    internal=True,
)  # fmt: skip
