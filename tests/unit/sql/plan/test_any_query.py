"""Queries put together at random: each gives a plan that survives JSON, or an error made for people."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.sql.errors import SqlError
from penstock.sql.plan.explain import explain
from penstock.sql.plan.nodes import from_json, to_json
from tests.unit.sql.plan.planning import plan

SOURCES = {
    "orders": ("id", "customer", "amount", "address->city", "tags", "ROWTIME", "ROWOFFSET"),
    "clicks": ("page", "user_id", "spent"),
    "pairs": ("a", "b", "c"),
    "customers c": ("c.name", "city", "credit"),
    "windowed": ("k", "n", "WINDOWSTART"),
    "per_minute": ("k", "n", "WINDOWEND"),
    "orders o JOIN shipments s WITHIN 1 HOUR ON o.id = s.order_id": ("o.id", "s.id", "customer", "carrier"),
    "orders o LEFT JOIN shipments s WITHIN 1 HOUR ON s.order_id = o.id": ("o.id", "s.order_id", "amount", "s.ROWTIME"),
    "orders o FULL OUTER JOIN shipments s WITHIN 1 HOUR ON o.id = s.order_id": ("ROWKEY", "o.id", "carrier"),
    "orders o JOIN shipments s WITHIN 1 HOUR ON o.id + 1 = s.order_id + 2": ("ROWKEY", "carrier", "s.id"),
    "orders o LEFT JOIN customers c ON o.customer = c.name": ("customer", "c.name", "o.id", "city"),
    "customers c FULL OUTER JOIN scores s ON c.name = s.name": ("ROWKEY", "c.name", "s.name", "score"),
    "customers c JOIN scores s ON c.name = s.name JOIN badges b ON b.name = s.name": ("c.name", "b.name", "badge"),
}
"""With columns to select, the key first."""

SHAPES = (
    "{}",
    "CAST({} AS STRING)",
    "AS_VALUE({})",
    "COALESCE({0}, {0})",
    "COUNT({})",
    "LATEST_BY_OFFSET({})",
    "nope({})",
)
HEADS = (
    "", "", "CREATE STREAM made AS ", "CREATE TABLE made AS ", "CREATE TABLE made WITH (KEY_FORMAT='JSON') AS ",
    "CREATE STREAM made WITH (FORMAT='JSON') AS ", "CREATE STREAM made WITH (VALUE_FORMAT='KAFKA') AS ",
    "INSERT INTO target ",
)  # fmt: skip
WINDOWS = ("TUMBLING (SIZE 1 MINUTE)", "HOPPING (SIZE 2 MINUTES, ADVANCE BY 1 MINUTE)", "SESSION (1 MINUTE)")


def rarely(draw: st.DrawFn, text: str) -> list[str]:
    return [text] if draw(st.integers(0, 3)) == 0 else []


@st.composite
def queries(draw: st.DrawFn) -> str:
    source = draw(st.sampled_from(sorted(SOURCES)))
    columns = st.sampled_from(SOURCES[source])
    shaped = st.builds(str.format, st.sampled_from(SHAPES), columns)
    items = [f"{draw(shaped)} AS x{number}" for number in range(draw(st.integers(0, 3)))]
    head = draw(st.sampled_from(HEADS))
    first = draw(st.sampled_from((SOURCES[source][0], SOURCES[source][0], "*", "COUNT(*)")))
    parts = [
        *rarely(draw, f"WINDOW {draw(st.sampled_from(WINDOWS))}"),
        *rarely(draw, f"WHERE {draw(shaped)} IS NOT NULL"),
        *rarely(draw, f"GROUP BY {draw(columns)}"),
        *rarely(draw, f"PARTITION BY {draw(shaped)}"),
        *rarely(draw, f"HAVING COUNT(*) > 1 OR {draw(columns)} IS NULL"),
        *rarely(draw, f"EMIT {draw(st.sampled_from(('CHANGES', 'FINAL')))}"),
    ]
    return f"{head}SELECT {', '.join([first, *items])} FROM {source} {' '.join(parts)};"


@given(queries())
@settings(max_examples=800)
def test_any_query_is_planned_or_refused(text: str) -> None:
    try:
        made = plan(text).plan
    except SqlError:
        return
    assert from_json(to_json(made)) == made
    assert explain(made)
    names = [column.name for column in made.schema.columns]
    assert len(names) == len(set(names))
    assert (made.sink is None) == bool(made.columns)
