"""Profiles: settings below file, environment and flags."""

from __future__ import annotations

from typing import Final

PROFILE_ORIGIN: Final = "development profile"

DEVELOPMENT: Final[dict[str, str]] = {
    # A laptop's broker has no protection, so it listens to the laptop alone; and it advertises an address that needs
    # no name service.
    "listeners": "PLAINTEXT://127.0.0.1:9092",
    # Waits that make sense with many members and many brokers, and only delay one developer.
    "group.initial.rebalance.delay.ms": "0",
    "group.streams.initial.rebalance.delay.ms": "0",
    "log.initial.task.delay.ms": "500",
    # One broker has one replica. Fewer partitions mean fewer files to open, check and close.
    "offsets.topic.num.partitions": "4",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}

PROFILES: Final[dict[str, dict[str, str]]] = {"development": DEVELOPMENT}
