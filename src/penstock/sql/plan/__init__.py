"""Plans: what a query does, as data.

`planner.plan_query` makes one from a parsed query and a catalog (pure), `nodes` are its parts, `explain` shows it,
`walk` looks into it. A plan knows nothing of what runs it.
"""
