"""What statements become, part by part."""

from __future__ import annotations

import pytest

from penstock.sql.errors import SqlSyntaxError
from penstock.sql.expressions import nodes as n
from penstock.sql.parser import parse, parse_type
from penstock.sql.plan.nodes import Window
from penstock.sql.statements import (
    AssertSchema,
    AssertTopic,
    ColumnDefinition,
    ControlQuery,
    CreateAsSelect,
    CreateConnector,
    CreateSource,
    Describe,
    DropSource,
    Explain,
    InsertSelect,
    InsertValues,
    Join,
    ListThings,
    PrintTopic,
    Query,
    Relation,
    SelectItem,
    SelectStatement,
    Statement,
    Within,
)
from penstock.sql.types import BIGINT, BYTES, INTEGER, STRING, Array, Decimal, Field, Map, Struct


def one(text: str) -> Statement:
    (parsed,) = parse(text)
    return parsed.statement


def query(text: str) -> Query:
    statement = one(text)
    assert isinstance(statement, SelectStatement)
    return statement.query


def test_a_stream_with_all_roles_of_columns() -> None:
    statement = one(
        "CREATE OR REPLACE STREAM IF NOT EXISTS s (id BIGINT KEY, `v` STRING, h BYTES HEADER('trace Id')) "
        "WITH (kafka_topic='T', Value_Format='json', partitions=3, wrap_single_value=FALSE, ratio=-0.5);"
    )
    assert statement == CreateSource(
        kind="STREAM",
        name="S",
        columns=(
            ColumnDefinition(name="ID", type=BIGINT, role="KEY"),
            ColumnDefinition(name="v", type=STRING),
            ColumnDefinition(name="H", type=BYTES, role="HEADER", header="trace Id"),
        ),
        properties={
            "KAFKA_TOPIC": "T",
            "VALUE_FORMAT": "json",
            "PARTITIONS": 3,
            "WRAP_SINGLE_VALUE": False,
            "RATIO": -0.5,
        },
        or_replace=True,
        if_not_exists=True,
    )


def test_a_read_only_table() -> None:
    statement = one("CREATE SOURCE TABLE t (id INT PRIMARY KEY) WITH (kafka_topic='t')")
    assert isinstance(statement, CreateSource)
    assert statement.read_only
    assert statement.columns == (ColumnDefinition(name="ID", type=INTEGER, role="PRIMARY KEY"),)


def test_clauses_of_a_query() -> None:
    found = query(
        "SELECT a.*, b->*, COUNT(*) AS c, d e FROM s AS a WINDOW HOPPING (SIZE 1 MINUTE, ADVANCE BY 10 SECONDS, "
        "GRACE PERIOD 0 SECONDS, RETENTION 2 HOURS) WHERE x > 1 GROUP BY (p, q) HAVING COUNT(*) > 2 EMIT FINAL LIMIT 7"
    )
    assert found == Query(
        items=(
            SelectItem(expression=None, star_source="A"),
            SelectItem(expression=n.Column("B"), struct_all=True),
            SelectItem(expression=n.Call("COUNT"), alias="C"),
            SelectItem(expression=n.Column("D"), alias="E"),
        ),
        source=Relation(name="S", alias="A"),
        window=Window(type="HOPPING", size_ms=60_000, advance_ms=10_000, grace_ms=0, retention_ms=7_200_000),
        where=n.Comparison(">", n.Column("X"), n.IntegerLiteral(1)),
        group_by=(n.Column("P"), n.Column("Q")),
        having=n.Comparison(">", n.Call("COUNT"), n.IntegerLiteral(2)),
        emit="FINAL",
        limit=7,
        grace_given=True,
    )


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("1 MILLISECOND", 1),
        ("250 milliseconds", 250),
        ("1 SECOND", 1000),
        ("2 SECONDS", 2000),
        ("1 MINUTE", 60_000),
        ("3 HOURS", 10_800_000),
        ("1 DAY", 86_400_000),
        ("30 DAYS", 2_592_000_000),
    ],
)
def test_durations(text: str, milliseconds: int) -> None:
    window = query(f"SELECT COUNT(*) FROM s WINDOW SESSION ({text}) GROUP BY a").window
    assert window == Window(type="SESSION", size_ms=milliseconds)


def test_a_group_that_begins_with_a_bracket_but_is_no_list() -> None:
    found = query("SELECT COUNT(*) FROM s GROUP BY (a + b) * 2, c")
    total = n.Arithmetic("+", n.Column("A"), n.Column("B"))
    assert found.group_by == (n.Arithmetic("*", total, n.IntegerLiteral(2)), n.Column("C"))


def test_joins_of_every_kind() -> None:
    found = query(
        "SELECT * FROM a JOIN b WITHIN 1 HOUR ON a.k = b.k LEFT OUTER JOIN c d ON a.k = d.k "
        "RIGHT JOIN e WITHIN (1 MINUTE, 2 MINUTES) GRACE PERIOD 3 SECONDS ON a.k = e.k FULL JOIN f ON a.k = f.k"
    )
    assert [(join.kind, join.relation, join.within) for join in found.joins] == [
        ("INNER", Relation(name="B"), Within(before_ms=3_600_000, after_ms=3_600_000)),
        ("LEFT", Relation(name="C", alias="D"), None),
        ("RIGHT", Relation(name="E"), Within(before_ms=60_000, after_ms=120_000, grace_ms=3_000)),
        ("FULL", Relation(name="F"), None),
    ]
    assert isinstance(found.joins[0], Join)
    assert found.joins[0].condition == n.Comparison("=", n.Column("K", "A"), n.Column("K", "B"))


def test_words_after_a_source_are_clauses_and_not_its_alias() -> None:
    assert query("SELECT * FROM s PARTITION BY a EMIT CHANGES").source == Relation(name="S")


def test_create_as_select_has_its_properties() -> None:
    statement = one("CREATE TABLE t WITH (kafka_topic='x') AS SELECT a, COUNT(*) FROM s GROUP BY a")
    assert isinstance(statement, CreateAsSelect)
    assert (statement.kind, statement.name, statement.properties) == ("TABLE", "T", {"KAFKA_TOPIC": "x"})


def test_inserts() -> None:
    assert one("INSERT INTO s (a, `b`) VALUES (1, 'it''s')") == InsertValues(
        target="S", columns=("A", "b"), values=(n.IntegerLiteral(1), n.StringLiteral("it's"))
    )
    statement = one("INSERT INTO s WITH (query_id='q') SELECT a FROM b")
    assert isinstance(statement, InsertSelect)
    assert statement.properties == {"QUERY_ID": "q"}


def test_small_statements() -> None:
    assert one("DROP STREAM IF EXISTS s DELETE TOPIC") == DropSource(
        kind="STREAM", name="S", if_exists=True, delete_topic=True
    )
    assert one("list all topics") == ListThings(thing="ALL TOPICS")
    assert one("SHOW SINK CONNECTORS") == ListThings(thing="SINK CONNECTORS")
    assert one("DESCRIBE s EXTENDED") == Describe(what="SOURCE", name="S", extended=True)
    assert one("DESCRIBE FUNCTION len") == Describe(what="FUNCTION", name="LEN")
    assert one("TERMINATE ALL") == ControlQuery(action="TERMINATE", query_id=None)
    assert one("PAUSE ctas_x_1") == ControlQuery(action="PAUSE", query_id="CTAS_X_1")
    assert one("EXPLAIN csas_x_1") == Explain(query_id="CSAS_X_1")
    assert one("EXPLAIN SHOW STREAMS") == Explain(statement=ListThings(thing="STREAMS"))


def test_topics_keep_their_case() -> None:
    assert one("PRINT myTopic FROM BEGINNING LIMIT 3") == PrintTopic(topic="myTopic", from_beginning=True, limit=3)
    assert one("ASSERT NOT EXISTS TOPIC 'my-Topic' TIMEOUT 2 SECONDS") == AssertTopic(
        name="my-Topic", properties={}, exists=False, timeout_ms=2000
    )


def test_assertions_of_schemas() -> None:
    assert one("ASSERT SCHEMA SUBJECT 'x-Value' ID 3") == AssertSchema(subject="x-Value", schema_id=3)


def test_properties_of_connectors_keep_their_case() -> None:
    assert one("""CREATE SINK CONNECTOR c WITH ("connector.class"='X', 'tasks.max'=2)""") == CreateConnector(
        direction="SINK", name="c", properties={"connector.class": "X", "tasks.max": 2}
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("int", INTEGER),
        ("VARCHAR(20)", STRING),
        ("DECIMAL(12)", Decimal(12, 0)),
        ("dec(5, 5)", Decimal(5, 5)),
        ("ARRAY<ARRAY<INT>>", Array(Array(INTEGER))),
        ("MAP<STRING, STRUCT<A INT, `b` BYTES>>", Map(STRING, Struct((Field("A", INTEGER), Field("b", BYTES))))),
        ("STRUCT<>", Struct(())),
        ("STRUCT< >", Struct(())),
    ],
)
def test_types(text: str, expected: object) -> None:
    assert parse_type(text) == expected


def test_custom_types_are_known_by_name_and_within_the_script() -> None:
    assert parse_type("ARRAY<address>", {"ADDRESS": STRING}) == Array(STRING)
    statements = parse("CREATE TYPE age AS INT; CREATE STREAM s (a age) WITH (kafka_topic='s');")
    created = statements[1].statement
    assert isinstance(created, CreateSource)
    assert created.columns[0].type == INTEGER
    with pytest.raises(SqlSyntaxError, match=r"line 1:57: There is no type AGE"):
        parse("CREATE TYPE age AS INT; DROP TYPE age; SELECT CAST(a AS age) FROM s")
