"""How this server reaches its Kafka cluster: one address and the security settings every client of it shares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaAccess:
    """`properties` are client keys under Kafka's names (`security.protocol`, `sasl.jaas.config`, ...)."""

    bootstrap_servers: str
    service_id: str
    properties: Mapping[str, object] = field(default_factory=dict)

    def config(self, role: str, extra: Mapping[str, object] | None = None) -> dict[str, object]:
        """The configuration of a producer or consumer; `role` says in the broker's log who it is.

        Topics are made by statements only: a deleted one must not come back, empty, because somebody still asks for it.
        """
        return {**self.admin_config(role), "allow.auto.create.topics": False, **(extra or {})}

    def admin_config(self, role: str) -> dict[str, object]:
        return {
            "bootstrap.servers": self.bootstrap_servers,
            "client.id": f"penstock-sql-{self.service_id}-{role}",
            **self.properties,
        }


def query_group(service_id: str, query_id: str) -> str:
    """The consumer group that shows how far a query has read."""
    return f"{service_id}_query_{query_id}"
