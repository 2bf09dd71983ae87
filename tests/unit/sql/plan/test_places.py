"""Errors that are found while planning tell where in the text their column or function stands."""

from __future__ import annotations

import pytest

from penstock.sql.errors import SqlError
from penstock.sql.parser import parse
from penstock.sql.plan.planner import plan_query
from penstock.sql.statements import SelectStatement
from tests.unit.sql.plan.planning import CATALOG, FUNCTIONS


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT nope FROM orders EMIT CHANGES;", "line 1:8: SELECT column 'NOPE' cannot be resolved."),
        (
            "SHOW STREAMS;\n SELECT id\n FROM orders WHERE UCASE(nope) = 'A' AND nope > 1;",
            "line 3:26: WHERE column 'NOPE'",
        ),
        ("SELECT id, nope(UCASE(customer)) FROM orders;", "line 1:12: Can't find any functions with the name 'NOPE'."),
        ("SELECT o.nope FROM orders o;", "line 1:8: SELECT column 'O.NOPE'"),
        ("SELECT id, COUNT(*) FROM orders GROUP BY id, nope EMIT CHANGES;", "line 1:46: GROUP BY column 'NOPE'"),
        ("SELECT id, COUNT(*) FROM orders GROUP BY id HAVING nope > 1 EMIT CHANGES;", "line 1:52: HAVING column"),
        ("SELECT * FROM orders PARTITION BY nope EMIT CHANGES;", "line 1:35: PARTITION BY column 'NOPE'"),
        (
            "SELECT o.id, id FROM orders o JOIN shipments s WITHIN 1 MINUTE ON o.id = s.id EMIT CHANGES;",
            "line 1:14: Column 'ID' is ambiguous.",
        ),
    ],
)  # fmt: skip
def test_the_place_of_what_cannot_be_resolved(text: str, message: str) -> None:
    parsed = parse(text)[-1]
    assert isinstance(parsed.statement, SelectStatement)
    with pytest.raises(SqlError) as raised:
        plan_query(parsed.statement.query, CATALOG, FUNCTIONS, query_id="Q", text=text)
    parsed.places.tell(raised.value)
    assert str(raised.value).startswith(message)


def test_a_place_is_no_part_of_a_statement() -> None:
    [one], [other] = parse("SELECT a FROM s;"), parse("SELECT    a FROM s;")
    assert one.statement == other.statement
    assert one != other
    assert one == parse("SELECT a FROM s;")[0]
    assert "Places" not in repr(one)
