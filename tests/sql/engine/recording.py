"""A runner that runs nothing and remembers what it was told."""

from __future__ import annotations

from collections.abc import Collection

from penstock.sql.engine.ports import QueryStatus
from penstock.sql.errors import NotSupportedError
from penstock.sql.plan.nodes import QueryPlan


class RecordingRunner:
    def __init__(self) -> None:
        self.plans: dict[str, QueryPlan] = {}
        self.paused: set[str] = set()
        self.calls: list[tuple[str, str]] = []
        self.refusal: str | None = None
        self.ends = True

    def check(self, plan: QueryPlan) -> None:
        if self.refusal is not None:
            raise NotSupportedError(self.refusal)

    def start(self, plan: QueryPlan, *, paused: bool = False) -> None:
        self.calls.append(("start", plan.query_id))
        self.plans[plan.query_id] = plan
        if paused:
            self.paused.add(plan.query_id)

    def stop(self, query_id: str, *, forget: bool) -> None:
        self.calls.append(("forget" if forget else "stop", query_id))
        self.plans.pop(query_id, None)

    def pause(self, query_id: str) -> None:
        self.calls.append(("pause", query_id))
        self.paused.add(query_id)

    def resume(self, query_id: str) -> None:
        self.calls.append(("resume", query_id))
        self.paused.discard(query_id)

    def status(self, query_id: str) -> QueryStatus | None:
        if query_id not in self.plans:
            return None
        return QueryStatus(
            state="PAUSED" if query_id in self.paused else "RUNNING", lag=7, last_error="it broke", last_error_time_ms=5
        )

    def forget_source(self, name: str) -> None:
        self.calls.append(("forget source", name))

    def wait_ended(self, query_ids: Collection[str], source_names: Collection[str], timeout_s: float) -> bool:
        return self.ends

    def physical_plan(self, plan: QueryPlan) -> str:
        return f"physical plan of {plan.query_id}"
