"""Keys of older Kafka versions: an old file that has them still starts, and its owner is told what became of them."""

from __future__ import annotations

from typing import Final

_ZOOKEEPER: Final = "ZooKeeper is not used by a broker that is alone"
_REMOVED: Final = "removed in Kafka 4.0"

RETIRED: Final[dict[str, str]] = {
    "advertised.host.name": "use advertised.listeners",
    "advertised.port": "use advertised.listeners",
    "auto.include.jmx.reporter": _REMOVED,
    "broker.id.generation.enable": "a broker without node.id is broker 1",
    "control.plane.listener.name": _REMOVED,
    "controlled.shutdown.max.retries": _REMOVED,
    "controlled.shutdown.retry.backoff.ms": _REMOVED,
    "delegation.token.master.key": "use delegation.token.secret.key",
    "group.coordinator.new.enable": _REMOVED,
    "host.name": "use listeners",
    "inter.broker.protocol.version": _REMOVED,
    "leader.imbalance.per.broker.percentage": _REMOVED,
    "log.message.downconversion.enable": "records are kept in the format v2 only",
    "log.message.format.version": "records are kept in the format v2 only",
    "log.message.timestamp.difference.max.ms": (
        "use log.message.timestamp.before.max.ms and log.message.timestamp.after.max.ms"
    ),
    "offsets.commit.required.acks": _REMOVED,
    "port": "use listeners",
    "reserved.broker.max.id": _REMOVED,
    "zookeeper.connect": _ZOOKEEPER,
    "zookeeper.connection.timeout.ms": _ZOOKEEPER,
    "zookeeper.max.in.flight.requests": _ZOOKEEPER,
    "zookeeper.session.timeout.ms": _ZOOKEEPER,
    "zookeeper.set.acl": _ZOOKEEPER,
    "zookeeper.sync.time.ms": _ZOOKEEPER,
}
