"""What the engine asks of whoever runs its queries."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Literal, Protocol

from penstock.sql.plan.nodes import QueryPlan

QueryState = Literal["STARTING", "RUNNING", "PAUSED", "ERROR"]
"""STARTING: until Spark has the query's sources."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryStatus:
    """`lag` is the number of records the query has not read yet; rates are per second, of the last batch."""

    state: QueryState
    last_error: str | None = None
    last_error_time_ms: int | None = None
    restarts: int = 0
    input_rate: float = 0.0
    output_rows: int = 0
    lag: int | None = None
    properties: dict[str, str] = field(default_factory=dict)


class QueryRunner(Protocol):
    """Runs persistent queries. Calls return at once, for the replay of the command topic must not wait for Spark, and
    take effect in their order. What happens later is told by `status`; `wait_ended` is for those who must wait.
    """

    def check(self, plan: QueryPlan) -> None:
        """Raise a SqlError when the plan cannot run."""

    def start(self, plan: QueryPlan, *, paused: bool = False) -> None:
        """Begin, or begin again where the query was. A running query of this id takes the new plan."""

    def stop(self, query_id: str, *, forget: bool) -> None:
        """End a query; `forget` also removes its checkpoint."""

    def pause(self, query_id: str) -> None: ...

    def resume(self, query_id: str) -> None: ...

    def status(self, query_id: str) -> QueryStatus | None: ...

    def forget_source(self, name: str) -> None:
        """A stream or table was dropped: what was kept to read it goes once the queries stopped so far have ended."""

    def wait_ended(self, query_ids: Collection[str], source_names: Collection[str], timeout_s: float) -> bool:
        """Whether what was asked so far is done within the time-out: queries stopped or paused, sources forgotten."""

    def physical_plan(self, plan: QueryPlan) -> str:
        """Spark's plan, for EXPLAIN."""
