"""Settings of queries: the names people may set, and what of a request's properties reaches a plan.

Names come as ksqlDB's clients send them: `auto.offset.reset` and `ksql.streams.auto.offset.reset` are the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from penstock.sql.errors import SemanticError
from penstock.sql.plan.nodes import SourceNode

STARTING: Final = "auto.offset.reset"
FAIL_ON_DATA_LOSS: Final = "penstock.fail.on.data.loss"
"""Whether a query stops when records that it was to read are gone: deleted by retention, or with their topic."""

ROWS_PER_BATCH: Final = "penstock.rows.per.batch"
"""How many records a query takes at most in one of Spark's batches."""

_PREFIXES_DROPPED: Final = ("ksql.streams.consumer.", "ksql.streams.", "consumer.")
_CHOICES: Final = {
    STARTING: ("earliest", "latest"),
    FAIL_ON_DATA_LOSS: ("true", "false"),
    "processing.guarantee": ("exactly_once", "exactly_once_v2", "at_least_once"),
}
_POSITIVE: Final = re.compile("[1-9][0-9]{0,8}")
_SETTABLE: Final = frozenset({
    STARTING, "processing.guarantee", "cache.max.bytes.buffering", "statestore.cache.max.bytes", "commit.interval.ms",
    "num.stream.threads", "max.poll.records", "max.task.idle.ms", "topology.optimization",
})  # fmt: skip
_DEFAULT_PREFIXES: Final = ("ksql.streams.", "ksql.persistence.")
_SETTABLE_PREFIXES: Final = ("ksql.", "spark.", "penstock.", "producer.", "consumer.")


def normal_name(name: str) -> str:
    for prefix in _PREFIXES_DROPPED:
        if name.startswith(prefix):
            return name.removeprefix(prefix)
    return name


def is_settable(name: str) -> bool:
    return normal_name(name) in _SETTABLE or name.startswith(_SETTABLE_PREFIXES)


def is_query_default(name: str) -> bool:
    """Whether a server's configuration may give it to all queries."""
    return name.startswith(_DEFAULT_PREFIXES) or name in (FAIL_ON_DATA_LOSS, ROWS_PER_BATCH)


def check_property(name: str, value: Any) -> None:
    if not is_settable(name):
        raise SemanticError(
            f"Not recognizable as ksql, streams, consumer, or producer property: '{name}'",
            hint="SHOW PROPERTIES lists those there are.",
        )
    reason = why_invalid(name, value)
    if reason is not None:
        raise SemanticError(f"Invalid value {value} for property {name}: {reason}")


def why_invalid(name: str, value: Any) -> str | None:
    """What is wrong with the value of a property, if anything is."""
    choices = _CHOICES.get(normal_name(name))
    if choices is not None and str(value).lower() not in choices:
        return f"String must be one of: {', '.join(choices)}"
    if name == ROWS_PER_BATCH and not _POSITIVE.fullmatch(str(value)):
        return "it is a number of records, 1 or more"
    return None


def is_read_from_beginning(node: SourceNode, properties: Mapping[str, Any]) -> bool:
    """Unless it is set, a table is read whole and a stream from now on, as in ksqlDB."""
    default = "earliest" if node.kind == "TABLE" else "latest"
    return str(properties.get(STARTING, default)).lower() == "earliest"


def query_properties(server: Mapping[str, Any], request: Mapping[str, Any]) -> dict[str, Any]:
    """The settings a query is made with: the server's defaults, overridden by the request's, under plain names."""
    for name, value in request.items():
        check_property(name, value)
    defaults = {normal_name(name): value for name, value in server.items() if is_settable(name)}
    return {**defaults, **{normal_name(name): value for name, value in request.items()}}
