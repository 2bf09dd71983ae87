"""What other clients call their settings, and what to write here: hints for messages about unknown keys.

Names that mean exactly the same are few enough to be aliases (`config._ALIASES`); the others are told, not taken.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Final

_LIBRDKAFKA: Final = {
    "metadata.broker.list": "bootstrap.servers",
    "request.required.acks": "acks",
    "queue.buffering.max.ms": "linger.ms",
    "queue.buffering.max.kbytes": "buffer.memory",
    "message.max.bytes": "max.request.size",
    "message.timeout.ms": "delivery.timeout.ms",
    "message.send.max.retries": "retries",
    "compression.codec": "compression.type",
    "max.in.flight": "max.in.flight.requests.per.connection",
    "auto.commit.enable": "enable.auto.commit",
    "fetch.wait.max.ms": "fetch.max.wait.ms",
    "fetch.message.max.bytes": "max.partition.fetch.bytes",
    "fetch.error.backoff.ms": "retry.backoff.ms",
    "queued.max.messages.kbytes": "penstock.prefetch.bytes",
    "socket.timeout.ms": "request.timeout.ms",
    "socket.send.buffer.bytes": "send.buffer.bytes",
    "socket.receive.buffer.bytes": "receive.buffer.bytes",
    "topic.metadata.refresh.interval.ms": "metadata.max.age.ms",
    "ssl.ca.pem": "ssl.truststore.certificates",
    "ssl.certificate.pem": "ssl.keystore.certificate.chain",
    "ssl.key.pem": "ssl.keystore.key",
    "oauth.cb": "sasl.login.callback.handler.class",
    "sasl.oauthbearer.client.id": "sasl.oauthbearer.client.credentials.client.id",
    "sasl.oauthbearer.client.secret": "sasl.oauthbearer.client.credentials.client.secret",
}
_KAFKA_PYTHON: Final = {
    "ssl.cafile": "ssl.ca.location",
    "ssl.certfile": "ssl.certificate.location",
    "ssl.keyfile": "ssl.key.location",
    "ssl.password": "ssl.key.password",
    "ssl.ciphers": "ssl.cipher.suites",
    "ssl.context": "ssl.engine.factory.class",
    "sasl.oauth.token.provider": "sasl.login.callback.handler.class",
    "max.batch.size": "batch.size",
    "rebalance.timeout.ms": "max.poll.interval.ms",
}
_WHOSE: Final = {
    **dict.fromkeys(_LIBRDKAFKA, "librdkafka"),
    **dict.fromkeys(_KAFKA_PYTHON, "kafka-python"),
    "ssl.context": "aiokafka",
    "max.batch.size": "aiokafka",
    "rebalance.timeout.ms": "aiokafka",
}
_KEYS: Final = {**_LIBRDKAFKA, **_KAFKA_PYTHON}
_UNITS: Final = {"queue.buffering.max.kbytes": ", in bytes", "queued.max.messages.kbytes": ", in bytes"}

_ADVICE: Final = {
    "api.version": "leave it out: each broker is asked for the versions that it speaks",
    "api.version.auto.timeout.ms": "leave it out: each broker is asked for the versions that it speaks",
    "api.version.request": "leave it out: each broker is asked for the versions that it speaks",
    "broker.version.fallback": "leave it out: each broker is asked for the versions that it speaks",
    "batch.num.messages": "batches are limited in bytes, by batch.size",
    "queue.buffering.max.messages": "what waits is limited in bytes, by buffer.memory",
    "queued.min.messages": "what is fetched ahead is limited in bytes, by penstock.prefetch.bytes",
    "compression.level": "set compression.gzip.level, compression.lz4.level or compression.zstd.level",
    "sticky.partitioning.linger.ms": "records without keys change the partition when batch.size bytes went there",
    "statistics.interval.ms": "call metrics() when you want the numbers",
    "stats.cb": "call metrics() when you want the numbers",
    "throttle.cb": "call metrics() when you want the numbers",
    "error.cb": "errors are raised where they matter, and logged",
    "logger": "logs go to the loggers penstock.client... of Python's logging",
    "log.level": "logs go to the loggers penstock.client... of Python's logging",
    "debug": "set the level of the loggers penstock.client... in Python's logging",
    "dr.cb": "give on_delivery to send()",
    "on.delivery": "give on_delivery to send()",
    "enable.partition.eof": "at the end poll() gives nothing, and lag(partition) is 0",
    "consumer.timeout.ms": "give timeout_ms to poll()",
    "enable.auto.offset.store": "set enable.auto.commit=false and commit the offsets that you want",
    "on.commit": "give a callback to commit_async()",
    "ssl.check.hostname": "host names are checked unless ssl.endpoint.identification.algorithm is empty",
    "enable.ssl.certificate.verification": "give an SSLContext that does not check in ssl.engine.factory.class",
    "default.topic.config": "write its keys beside the others",
    "loop": "leave it out: the running loop is used",
    "topics": "give topics to subscribe()",
}


def hint_of(name: str, keys: Container[str], client: str) -> str:
    """What to write in place of another client's name, which is given with dots; empty for a name of nobody's.

    `keys` are those that `client` ("a producer") has.
    """
    if name in _ADVICE:
        return _ADVICE[name]
    if name not in _KEYS:
        return ""
    ours, whose = _KEYS[name], f"{_WHOSE[name]}'s name"
    if ours not in keys:
        return f"it is {whose} for {ours}, which {client} does not have"
    return f"it is {whose}: use {ours}{_UNITS.get(name, '')}"


# What `partitioner.class` may say in text.

PARTITIONERS: Final[Mapping[str, Mapping[str, object]]] = {
    "": {},
    "DefaultPartitioner": {},
    "murmur2_random": {},
    "UniformStickyPartitioner": {"partitioner.ignore.keys": True},
    "RoundRobinPartitioner": {"partitioner.ignore.keys": True, "penstock.partitioner.keyless": "round_robin"},
    "random": {"partitioner.ignore.keys": True, "penstock.partitioner.keyless": "random"},
}
"""Partitioners of Java and librdkafka that are settings here; Java's without the package."""

_CRC32 = (
    "hashes keys with CRC32: give a function of (topic, key, key_bytes, value, value_bytes, snapshot) that returns "
    "zlib.crc32(key_bytes) % snapshot.partition_count(topic), and without a key any partition; or leave it out for "
    "Java's murmur2, which sends keys to other partitions"
)
_FNV1A = (
    "hashes keys with FNV-1a: give a function of (topic, key, key_bytes, value, value_bytes, snapshot) that does, or "
    "leave it out for Java's murmur2, which sends keys to other partitions"
)
REFUSED_PARTITIONERS: Final = {
    "consistent": _CRC32,
    "consistent_random": _CRC32,
    "fnv1a": _FNV1A,
    "fnv1a_random": _FNV1A,
    "murmur2": (
        "sends every record without a key to one partition: leave it out for the same hash of keys, and "
        "penstock.partitioner.keyless spreads the others"
    ),
}
"""librdkafka's that have no equivalent, and what to do."""

RESETS: Final = {
    "smallest": "earliest",
    "beginning": "earliest",
    "largest": "latest",
    "end": "latest",
    "error": "none",
}
"""Other clients' words for `auto.offset.reset`."""
