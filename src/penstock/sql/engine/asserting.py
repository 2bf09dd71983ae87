"""ASSERT TOPIC: waits until a topic is, or is not, as it should be."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from penstock.sql.engine.new_topics import TopicFacts
from penstock.sql.engine.topics import Topics
from penstock.sql.errors import SqlError
from penstock.sql.statements import AssertTopic

_TIMEOUT_MS = 1_000
_LOOK_S = 0.05


class AssertionFailedError(SqlError):
    """What a statement asserted is not so."""

    code = 41700


def assert_topic(statement: AssertTopic, topics: Topics) -> None:
    timeout_ms = _TIMEOUT_MS if statement.timeout_ms is None else statement.timeout_ms
    deadline = time.monotonic() + timeout_ms / 1_000
    while (reason := mismatch(statement, topics.facts([statement.name]).get(statement.name))) is not None:
        if time.monotonic() >= deadline:
            raise AssertionFailedError(reason)
        time.sleep(_LOOK_S)


def mismatch(statement: AssertTopic, facts: TopicFacts | None) -> str | None:
    """What is not as asserted, or None."""
    if not statement.exists:
        return None if facts is None else f"Topic {statement.name} exists"
    if facts is None:
        return f"Topic {statement.name} does not exist"
    found: Mapping[str, Any] = {"PARTITIONS": facts.partitions, "REPLICAS": facts.replicas}
    problems = [_problem(statement.name, name, wanted, found) for name, wanted in statement.properties.items()]
    return "\n".join(problem for problem in problems if problem) or None


def _problem(topic: str, name: str, wanted: object, found: Mapping[str, Any]) -> str | None:
    if name.upper() not in found:
        return f"Cannot assert unknown topic property: {name}"
    actual = found[name.upper()]
    if str(wanted) == str(actual):
        return None
    return f"Mismatched configuration for topic {topic}: For config {name.lower()}, expected {wanted} got {actual}"
