"""Where a query begins that reads what comes from now on.

Spark starts a query seconds after its statement was answered. What is written meanwhile belongs to the query, so the
ends of its topics are looked up with the statement, and stay with its plan.
"""

from __future__ import annotations

import msgspec

from penstock.sql.engine.properties import is_read_from_beginning
from penstock.sql.engine.topics import Topics
from penstock.sql.plan.nodes import QueryPlan
from penstock.sql.plan.walk import source_nodes


def with_starts(plan: QueryPlan, topics: Topics, replaced: QueryPlan | None = None) -> QueryPlan:
    """`replaced` may not have run yet: then its place is taken where it was to begin."""
    known = {} if replaced is None else replaced.starts
    read = {node.topic for node in source_nodes(plan.root) if not is_read_from_beginning(node, plan.properties)}
    return msgspec.structs.replace(plan, starts={**topics.ends(read - known.keys()), **known})
