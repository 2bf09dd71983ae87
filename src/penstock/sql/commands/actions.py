"""What must be done to running queries when one catalog becomes another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from penstock.sql.catalog.catalog import Catalog
from penstock.sql.plan.nodes import QueryPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Begin, or go on with a new plan on the same state."""

    plan: QueryPlan
    paused: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """STOP is for ever: the query's state goes too."""

    action: Literal["STOP", "PAUSE", "RESUME"]
    query_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Forget:
    """A source is gone: what was kept for reading it may go."""

    source_name: str


Action = Start | Change | Forget


def actions_between(before: Catalog, after: Catalog) -> list[Action]:
    """Stops first, so that what takes a query's place finds its topic free."""
    stopped = [query_id for query_id in before.queries if query_id not in after.queries]
    actions: list[Action] = [Change(action="STOP", query_id=query_id) for query_id in stopped]
    for query_id, query in after.queries.items():
        old = before.queries.get(query_id)
        if old is None or old.plan != query.plan:
            actions.append(Start(plan=query.plan, paused=query.state == "PAUSED"))
        elif old.state != query.state:
            actions.append(Change(action="PAUSE" if query.state == "PAUSED" else "RESUME", query_id=query_id))
    return actions + [Forget(source_name=name) for name in before.sources if name not in after.sources]
