"""Statements on a real broker: what they answer, what they do to topics, and what the runner of queries is told."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from penstock import Admin, Consumer, NewTopic, Producer, TopicPartition
from penstock.sql.engine.engine import Engine, EngineSettings
from penstock.sql.errors import NotSupportedError, SemanticError, SqlError, SqlSyntaxError, WrongEndpointError
from penstock.sql.functions.registry import FunctionRegistry
from penstock.sql.kafka import KafkaAccess
from penstock.testing import EphemeralBroker
from tests.sql.engine.recording import RecordingRunner

WAIT_S = 30.0
SERVICES = itertools.count(1)
ORDERS = (
    "CREATE STREAM orders (id INT KEY, customer STRING, amount DOUBLE) "
    "WITH (KAFKA_TOPIC='{}', VALUE_FORMAT='JSON', PARTITIONS=3);"
)


@pytest.fixture(scope="module")
def broker() -> Iterator[EphemeralBroker]:
    with EphemeralBroker({"log.retention.ms": "-1", "auto.create.topics.enable": "false"}) as running:
        yield running


@pytest.fixture(scope="module")
def admin(broker: EphemeralBroker) -> Iterator[Admin]:
    with Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
        yield admin


@pytest.fixture
def runner() -> RecordingRunner:
    return RecordingRunner()


@pytest.fixture
def service() -> str:
    return f"test{next(SERVICES)}_"


@pytest.fixture
def engine(broker: EphemeralBroker, runner: RecordingRunner, service: str) -> Iterator[Engine]:
    made = start_engine(broker, runner, service)
    yield made
    made.close()


def start_engine(broker: EphemeralBroker, runner: RecordingRunner, service: str) -> Engine:
    engine = Engine(
        kafka=KafkaAccess(bootstrap_servers=broker.bootstrap_servers, service_id=service),
        functions=FunctionRegistry.builtin(),
        runner=runner,
        settings=EngineSettings(properties={"ksql.service.id": service, "ksql.streams.auto.offset.reset": "earliest"}),
    )
    engine.start()
    assert engine.wait_ready(WAIT_S)
    return engine


@pytest.fixture
def orders(engine: Engine, service: str) -> str:
    """A stream ORDERS on a topic of its own, whose name this is."""
    topic = f"{service}orders"
    engine.execute(ORDERS.format(topic))
    return topic


def one(engine: Engine, text: str, **properties: Any) -> dict[str, Any]:
    [entity] = engine.execute(text, properties)
    return entity


def error_of(engine: Engine, text: str) -> str:
    with pytest.raises(SqlError) as raised:
        engine.execute(text)
    return str(raised.value)


# -- Sources -------------------------------------------------------------------------------------------------------


def test_create_stream_makes_its_topic_and_answers_as_ksqldb(engine: Engine, admin: Admin, service: str) -> None:
    text = ORDERS.format(f"{service}orders")
    entity = one(engine, text)
    assert entity == {
        "@type": "currentStatus",
        "statementText": text,
        "commandId": "stream/ORDERS/create",
        "commandStatus": {"status": "SUCCESS", "message": "Stream created", "queryId": None},
        "commandSequenceNumber": 0,
        "warnings": [],
    }
    assert len(admin.describe_topics([f"{service}orders"])[f"{service}orders"].partitions) == 3
    assert engine.command_statuses()["stream/ORDERS/create"]["message"] == "Stream created"


def test_a_missing_topic_without_partitions_is_refused_with_the_remedy(engine: Engine) -> None:
    message = error_of(engine, "CREATE STREAM s (a INT) WITH (KAFKA_TOPIC='nowhere', VALUE_FORMAT='JSON');")
    assert message.startswith("Topic 'nowhere' does not exist. If you want to create a new topic")
    assert "PARTITIONS" in message


def test_an_existing_topic_of_other_size_is_refused(engine: Engine, orders: str) -> None:
    message = error_of(
        engine, f"CREATE STREAM s (a INT) WITH (KAFKA_TOPIC='{orders}', VALUE_FORMAT='JSON', PARTITIONS=5);"
    )
    assert "KSQL expects 5 partitions (topic has 3)" in message


def test_a_name_is_taken_once(engine: Engine, orders: str) -> None:
    assert "A stream with the same name already exists" in error_of(engine, ORDERS.format(orders))
    again = ORDERS.format(orders).replace("STREAM orders", "STREAM IF NOT EXISTS orders")
    entity = one(engine, again)
    assert entity["@type"] == "warning_entity"
    assert entity["message"] == "Cannot add stream `ORDERS`: A stream with the same name already exists."


def test_tables_are_compacted(engine: Engine, admin: Admin, service: str) -> None:
    from penstock import ConfigResource, ConfigResourceType

    topic = f"{service}users"
    engine.execute(
        "CREATE TABLE users (id INT PRIMARY KEY, name STRING) "
        f"WITH (KAFKA_TOPIC='{topic}', VALUE_FORMAT='JSON', PARTITIONS=1);"
    )
    resource = ConfigResource(ConfigResourceType.TOPIC, topic)
    assert admin.describe_configs([resource])[resource]["cleanup.policy"].value == "compact"


def test_alter_adds_columns_at_the_end(engine: Engine, orders: str) -> None:
    entity = one(engine, "ALTER STREAM orders ADD COLUMN note STRING, ADD COLUMN n INT;")
    assert entity["commandStatus"]["message"] == "Stream ORDERS altered."
    names = [column.name for column in engine.catalog.sources["ORDERS"].schema.value]
    assert names == ["CUSTOMER", "AMOUNT", "NOTE", "N"]
    assert "already exists" in error_of(engine, "ALTER STREAM orders ADD COLUMN note STRING;")


def test_create_or_replace_may_add_columns_and_nothing_else(engine: Engine, orders: str) -> None:
    base = "CREATE OR REPLACE STREAM orders ({}) WITH (KAFKA_TOPIC='{}', VALUE_FORMAT='{}');"
    columns = "id INT KEY, customer STRING, amount DOUBLE"
    engine.execute(base.format(columns + ", more INT", orders, "JSON"))
    assert engine.catalog.sources["ORDERS"].schema.column("MORE") is not None
    assert "changed, missing or reordered" in error_of(engine, base.format(columns, orders, "JSON"))
    assert "value format" in error_of(engine, base.format(columns + ", more INT", orders, "DELIMITED"))
    source = base.format(columns, orders, "JSON").replace("STREAM orders", "SOURCE STREAM fresh")
    assert "CREATE OR REPLACE is not supported on source streams" in error_of(engine, source)


def test_drop_removes_the_source_and_keeps_or_deletes_the_topic(engine: Engine, orders: str, admin: Admin) -> None:
    entity = one(engine, "DROP STREAM orders;")
    assert entity["commandStatus"]["message"] == f"Source `ORDERS` (topic: {orders}) was dropped."
    assert orders in admin.list_topics()
    engine.execute(ORDERS.format(orders))
    engine.execute("DROP STREAM orders DELETE TOPIC;")
    assert orders not in admin.list_topics()
    assert "does not exist" in error_of(engine, "DROP STREAM orders;")
    assert one(engine, "DROP STREAM IF EXISTS orders;")["@type"] == "warning_entity"


# -- Queries -------------------------------------------------------------------------------------------------------


def test_create_as_select_starts_a_query_and_makes_its_topic(
    engine: Engine, orders: str, admin: Admin, runner: RecordingRunner, service: str
) -> None:
    entity = one(
        engine, f"CREATE STREAM big WITH (KAFKA_TOPIC='{service}big') AS SELECT * FROM orders WHERE amount > 3;"
    )
    query_id = entity["commandStatus"]["queryId"]
    assert query_id == f"CSAS_BIG_{entity['commandSequenceNumber']}"
    assert entity["commandStatus"]["message"] == f"Created query with ID {query_id}"
    assert len(admin.describe_topics([f"{service}big"])[f"{service}big"].partitions) == 3
    assert runner.plans[query_id].properties["auto.offset.reset"] == "earliest"
    assert engine.catalog.sources["BIG"].query_id == query_id


def test_the_properties_of_a_request_reach_the_plan(engine: Engine, orders: str, runner: RecordingRunner) -> None:
    text = "CREATE STREAM a WITH (KAFKA_TOPIC='a1') AS SELECT * FROM orders;"
    entity = engine.execute(text, {"ksql.streams.auto.offset.reset": "latest"})[0]
    assert runner.plans[entity["commandStatus"]["queryId"]].properties["auto.offset.reset"] == "latest"
    text = "SET 'auto.offset.reset'='latest'; CREATE STREAM b WITH (KAFKA_TOPIC='b1') AS SELECT * FROM orders;"
    [entity] = engine.execute(text)
    assert runner.plans[entity["commandStatus"]["queryId"]].properties["auto.offset.reset"] == "latest"
    assert "must be one of" in error_of(engine, "SET 'auto.offset.reset'='nearest';")
    assert "Not recognizable" in error_of(engine, "SET 'nope'='x';")


def test_warnings_of_the_planner_are_told(engine: Engine, orders: str) -> None:
    entity = one(engine, "CREATE TABLE c WITH (KAFKA_TOPIC='c1') AS SELECT customer, COUNT(*) AS n FROM orders;")
    assert "grouped by CUSTOMER" in entity["warnings"][0]["message"]


def test_what_the_runner_refuses_is_not_written_down(engine: Engine, orders: str, runner: RecordingRunner) -> None:
    runner.refusal = "no such thing"
    with pytest.raises(NotSupportedError, match="no such thing"):
        engine.execute("CREATE STREAM bad WITH (KAFKA_TOPIC='bad1') AS SELECT * FROM orders;")
    assert "BAD" not in engine.catalog.sources


@pytest.mark.parametrize(
    "wrong",
    [
        "CREATE STREAM no1 AS SELECT nope FROM orders;",
        "DESCRIBE nope;",
        "DESCRIBE FUNCTION nope;",
        "EXPLAIN SELECT nope FROM ok1;",
        "INSERT INTO nope VALUES (1);",
    ],
)
def test_a_request_with_an_error_does_nothing(engine: Engine, orders: str, wrong: str) -> None:
    good = "CREATE STREAM ok1 WITH (KAFKA_TOPIC='ok1') AS SELECT * FROM orders;"
    with pytest.raises(SemanticError) as raised:
        engine.execute(f"{good} {wrong}")
    assert raised.value.statement_text == wrong
    assert "OK1" not in engine.catalog.sources


def test_statements_of_one_request_see_each_other(engine: Engine, service: str) -> None:
    text = (
        "CREATE TYPE address AS STRUCT<city STRING>;"
        f"CREATE STREAM p (a INT KEY, b address) WITH (KAFKA_TOPIC='{service}p', VALUE_FORMAT='JSON', PARTITIONS=2);"
        f"CREATE STREAM q WITH (KAFKA_TOPIC='{service}q') AS SELECT a, b->city FROM p;"
        "DESCRIBE q;"
    )
    entities = engine.execute(text)
    assert [entity["@type"] for entity in entities] == ["currentStatus"] * 3 + ["sourceDescription"]
    assert [field["name"] for field in entities[-1]["sourceDescription"]["fields"]] == ["A", "CITY"]


def test_terminate_pause_and_resume(engine: Engine, orders: str, runner: RecordingRunner) -> None:
    query_id = one(engine, "CREATE STREAM t1 WITH (KAFKA_TOPIC='t1') AS SELECT * FROM orders;")["commandStatus"][
        "queryId"
    ]
    assert one(engine, f"PAUSE {query_id};")["commandStatus"]["message"] == "Query paused."
    assert one(engine, "SHOW QUERIES;")["queries"][0]["state"] == "PAUSED"
    assert one(engine, f"RESUME {query_id};")["commandStatus"]["message"] == "Query resumed."
    assert one(engine, f"TERMINATE {query_id};")["commandStatus"]["message"] == "Query terminated."
    assert runner.calls == [("start", query_id), ("pause", query_id), ("resume", query_id), ("forget", query_id)]
    assert "Unknown queryId" in error_of(engine, f"TERMINATE {query_id};")
    engine.close_transient = lambda query: query.lower() == "transient_1"
    assert one(engine, "TERMINATE transient_1;")["wasTerminated"]


def test_a_topic_is_not_deleted_while_its_query_has_not_stopped(
    engine: Engine, orders: str, admin: Admin, runner: RecordingRunner, service: str
) -> None:
    topic = f"{service}slow"
    one(engine, f"CREATE STREAM slow WITH (KAFKA_TOPIC='{topic}') AS SELECT * FROM orders;")
    runner.ends = False
    [warning] = one(engine, "DROP STREAM slow DELETE TOPIC;")["warnings"]
    assert f"The topic {topic} was not deleted: its query did not stop in time." in warning["message"]
    assert topic in admin.list_topics()


def test_a_source_in_use_is_not_dropped_and_the_users_are_named(engine: Engine, orders: str) -> None:
    made = one(engine, "CREATE STREAM u1 WITH (KAFKA_TOPIC='u1') AS SELECT * FROM orders;")
    query_id = made["commandStatus"]["queryId"]
    message = error_of(engine, "DROP STREAM orders;")
    assert f"The following queries read from this source: [{query_id}]." in message
    inserted = one(engine, "INSERT INTO u1 SELECT * FROM orders;")["commandStatus"]["queryId"]
    assert inserted.startswith("INSERTQUERY_")
    assert f"write into this source: [{inserted}]" in error_of(engine, "DROP STREAM u1;")
    engine.execute(f"TERMINATE {inserted};")
    engine.execute("DROP STREAM u1;")
    assert not engine.catalog.queries


def test_insert_into_select_checks_its_target(engine: Engine, orders: str) -> None:
    assert "Incompatible schema" in error_of(engine, "INSERT INTO orders SELECT id, customer FROM orders;")
    assert "Unknown source: NOPE" in error_of(engine, "INSERT INTO nope SELECT * FROM orders;")
    assert "is a table" in error_of(
        engine,
        "CREATE TABLE tt WITH (KAFKA_TOPIC='tt') AS SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer;"
        "INSERT INTO tt SELECT customer, amount AS n FROM orders PARTITION BY customer;",
    )
    made = one(engine, "INSERT INTO orders WITH (QUERY_ID='mine') SELECT * FROM orders;")
    assert made["commandStatus"]["queryId"] == "MINE"


def test_replacing_a_query_keeps_its_id(engine: Engine, orders: str, runner: RecordingRunner) -> None:
    head = "CREATE OR REPLACE TABLE r WITH (KAFKA_TOPIC='r1') AS "
    text = head + "SELECT customer, COUNT(*) AS n FROM orders {} GROUP BY customer;"
    first = one(engine, text.format(""))["commandStatus"]["queryId"]
    second = one(engine, text.format("WHERE amount > 5"))["commandStatus"]["queryId"]
    assert first == second
    assert runner.calls == [("start", first), ("start", first)]
    assert "list of aggregates changes" in error_of(engine, text.format("").replace("COUNT(*)", "COUNT(amount)"))
    assert "Key columns must be identical" in error_of(
        engine, head + "SELECT id, COUNT(*) AS n FROM orders GROUP BY id;"
    )


# -- Several servers, and starting again ---------------------------------------------------------------------------


def test_a_second_server_replays_everything_and_starts_what_runs(
    broker: EphemeralBroker, engine: Engine, orders: str, service: str
) -> None:
    kept = one(engine, "CREATE STREAM k1 WITH (KAFKA_TOPIC='k1') AS SELECT * FROM orders;")["commandStatus"]["queryId"]
    gone = one(engine, "CREATE STREAM k2 WITH (KAFKA_TOPIC='k2') AS SELECT * FROM orders;")["commandStatus"]["queryId"]
    engine.execute(f"TERMINATE {gone}; PAUSE {kept};")
    other_runner = RecordingRunner()
    other = start_engine(broker, other_runner, service)
    try:
        assert other.catalog == engine.catalog
        assert other_runner.calls == [("start", kept)]
        assert other_runner.paused == {kept}
        sequence = one(engine, f"RESUME {kept};")["commandSequenceNumber"]
        [entity] = other.execute("SHOW QUERIES;", command_sequence_number=sequence)
        assert entity["queries"][0]["state"] == "RUNNING"
        other_runner.plans.clear()  # as before the runner has heard of it
        [entity] = other.execute("SHOW QUERIES;")
        assert (entity["queries"][0]["state"], entity["queries"][0]["statusCount"]) == ("STARTING", {"RUNNING": 1})
    finally:
        other.close()


def test_terminating_the_cluster_ends_everything(engine: Engine, orders: str, admin: Admin) -> None:
    engine.execute("CREATE STREAM z1 WITH (KAFKA_TOPIC='z1') AS SELECT * FROM orders;")
    engine.terminate_cluster(["z.*"])
    assert not engine.catalog.queries
    assert set(engine.catalog.sources) == {"KSQL_PROCESSING_LOG"}
    assert "z1" not in admin.list_topics()
    assert orders in admin.list_topics()


# -- INSERT VALUES -------------------------------------------------------------------------------------------------


def records(broker: EphemeralBroker, topic: str, count: int) -> list[tuple[bytes | None, Any, int]]:
    with Consumer(bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest") as consumer:
        partitions = [TopicPartition(topic, info.partition) for info in consumer.partitions_for(topic)]
        consumer.assign(partitions)
        consumer.seek_to_beginning(partitions)
        found: list[tuple[bytes | None, Any, int]] = []
        while len(found) < count:
            found += [
                (record.key, record.value and msgspec.json.decode(record.value), record.timestamp)
                for record in consumer.poll(1_000)
            ]
    return sorted(found, key=lambda record: record[2])


def test_insert_values_writes_a_record(engine: Engine, orders: str, broker: EphemeralBroker) -> None:
    assert engine.execute("INSERT INTO orders (ROWTIME, id, amount) VALUES (1000, 1, 2);") == []
    engine.execute("INSERT INTO orders (ROWTIME, id, customer) VALUES ('1970-01-01T00:00:02', 1 + 1, UCASE('bob'));")
    engine.execute("INSERT INTO orders VALUES (3, NULL, 1.5);")
    first, second, third = records(broker, orders, 3)
    assert first == (b"\x00\x00\x00\x01", {"CUSTOMER": None, "AMOUNT": 2.0}, 1000)
    assert second == (b"\x00\x00\x00\x02", {"CUSTOMER": "BOB", "AMOUNT": None}, 2000)
    assert third[:2] == (b"\x00\x00\x00\x03", {"CUSTOMER": None, "AMOUNT": 1.5})


def test_insert_values_is_checked(engine: Engine, orders: str) -> None:
    for text, expected in (
        ("INSERT INTO nope VALUES (1);", "unknown stream/table: NOPE"),
        ("INSERT INTO orders VALUES (1);", "Expected a value for each column"),
        ("INSERT INTO orders (id, amount) VALUES (1);", "2 columns are named and 1 values given"),
        ("INSERT INTO orders (id, nope) VALUES (1, 2);", "Column name NOPE does not exist"),
        ("INSERT INTO orders (id) VALUES ('x');", "Expected type INTEGER for field `ID` but got STRING('x')"),
        ("INSERT INTO orders (id) VALUES (99999999999);", "Expected type INTEGER for field `ID` but got BIGINT"),
        ("INSERT INTO orders (id, customer) VALUES (1, other);", "Unsupported column reference"),
        ("INSERT INTO orders (ROWPARTITION) VALUES (1);", "Inserting into column ROWPARTITION is not allowed"),
        ("INSERT INTO KSQL_PROCESSING_LOG (level) VALUES ('x');", "read-only stream"),
    ):
        assert expected in error_of(engine, text), text


def test_rows_of_clients_are_acknowledged_one_by_one(engine: Engine, orders: str, broker: EphemeralBroker) -> None:
    good, bad, unknown = engine.insert_rows(
        "ORDERS", [{"id": 1, "Amount": 2, "ROWTIME": 5}, {"id": "x"}, {"id": 3, "nope": 1}]
    )
    assert good is None
    assert "Can't coerce 'x' to INTEGER" in str(bad)
    assert "Column name NOPE does not exist" in str(unknown)
    assert records(broker, orders, 1)[0][2] == 5


# -- Questions -----------------------------------------------------------------------------------------------------


def test_show_streams_tables_and_types(engine: Engine, orders: str) -> None:
    engine.execute("CREATE TYPE point AS STRUCT<x INT, y INT>;")
    streams = one(engine, "SHOW STREAMS;")["streams"]
    assert {
        "type": "STREAM",
        "name": "ORDERS",
        "topic": orders,
        "keyFormat": "KAFKA",
        "valueFormat": "JSON",
        "isWindowed": False,
    } in streams
    assert one(engine, "LIST TABLES;")["tables"] == []
    assert one(engine, "SHOW TYPES;")["types"]["POINT"]["type"] == "STRUCT"
    assert "already registered" in error_of(engine, "CREATE TYPE point AS INT;")
    engine.execute("DROP TYPE point;")
    assert one(engine, "SHOW TYPES;")["types"] == {}


def test_show_topics_hides_the_platforms_own(engine: Engine, orders: str) -> None:
    shown = {topic["name"]: topic["replicaInfo"] for topic in one(engine, "SHOW TOPICS;")["topics"]}
    assert shown[orders] == [1, 1, 1]
    assert not any(name.startswith("_") for name in shown)
    everything = [topic["name"] for topic in one(engine, "SHOW ALL TOPICS;")["topics"]]
    assert any(name.startswith("_penstock-sql_") for name in everything)
    assert "consumerCount" in one(engine, "SHOW TOPICS EXTENDED;")["topics"][0]


def test_show_properties_and_variables(engine: Engine) -> None:
    [entity] = engine.execute("SHOW PROPERTIES;", {"auto.offset.reset": "latest"})
    assert entity["overwrittenProperties"] == ["auto.offset.reset"]
    assert "ksql.service.id" in entity["defaultProperties"]
    [entity] = engine.execute("DEFINE a='1'; SHOW VARIABLES;", variables={"b": "2"})
    assert entity["variables"] == [{"name": "a", "value": "1"}, {"name": "b", "value": "2"}]
    assert engine.is_valid_property("auto.offset.reset")
    assert not engine.is_valid_property("nope")


def test_functions_are_listed_and_described(engine: Engine) -> None:
    names = {function["name"]: function["type"] for function in one(engine, "SHOW FUNCTIONS;")["functions"]}
    assert names["COUNT"] == "AGGREGATE"
    described = one(engine, "DESCRIBE FUNCTION sum;")
    assert described["type"] == "AGGREGATE"
    assert described["functions"][0]["arguments"][0]["type"]
    assert "Can't find any functions" in error_of(engine, "DESCRIBE FUNCTION nope;")


def test_describe_tells_readers_writers_and_in_full_lag_and_errors(engine: Engine, orders: str) -> None:
    query_id = one(engine, "CREATE STREAM d1 WITH (KAFKA_TOPIC='d1') AS SELECT * FROM orders;")["commandStatus"][
        "queryId"
    ]
    described = one(engine, "DESCRIBE orders;")["sourceDescription"]
    assert [query["id"] for query in described["readQueries"]] == [query_id]
    assert described["fields"][0] == {
        "name": "ID",
        "schema": {"type": "INTEGER", "fields": None, "memberSchema": None},
        "type": "KEY",
    }
    assert described["partitions"] == 0
    extended = one(engine, "DESCRIBE d1 EXTENDED;")["sourceDescription"]
    assert extended["partitions"] == 3
    assert extended["replication"] == 1
    assert "lag: 7" in extended["statistics"]
    assert "it broke" in extended["errorStats"]
    assert one(engine, "SHOW STREAMS EXTENDED;")["@type"] == "source_descriptions"
    assert "Could not find STREAM/TABLE 'NOPE'" in error_of(engine, "DESCRIBE nope;")


def test_explain_shows_both_plans(engine: Engine, orders: str) -> None:
    query_id = one(engine, "CREATE STREAM e1 WITH (KAFKA_TOPIC='e1') AS SELECT * FROM orders;")["commandStatus"][
        "queryId"
    ]
    by_id = one(engine, f"EXPLAIN {query_id};")["queryDescription"]
    assert by_id["executionPlan"].startswith("SINK STREAM E1")
    assert by_id["topology"] == f"physical plan of {query_id}"
    assert by_id["queryErrors"] == [{"timestamp": 5, "errorMessage": "it broke", "type": "UNKNOWN"}]
    by_text = one(engine, "EXPLAIN SELECT customer FROM orders EMIT CHANGES;")["queryDescription"]
    assert by_text["sources"] == ["ORDERS"]
    assert "does not exist" in error_of(engine, "EXPLAIN CSAS_NOPE_1;")


def test_assert_topic(engine: Engine, orders: str) -> None:
    assert one(engine, f"ASSERT TOPIC '{orders}' WITH (PARTITIONS=3) TIMEOUT 1 SECOND;")["exists"]
    with pytest.raises(SqlError, match="expected 4 got 3") as raised:
        engine.execute(f"ASSERT TOPIC '{orders}' WITH (PARTITIONS=4) TIMEOUT 0 SECONDS;")
    assert raised.value.code == 41700
    assert one(engine, "ASSERT NOT EXISTS TOPIC 'never' TIMEOUT 1 SECOND;")["exists"] is False


def test_statements_of_other_places_are_refused_by_name(engine: Engine) -> None:
    with pytest.raises(WrongEndpointError):
        engine.execute("SELECT * FROM orders EMIT CHANGES;")
    with pytest.raises(SqlSyntaxError):
        engine.execute("SELEC nothing;")
    with pytest.raises(NotSupportedError, match="Connect"):
        engine.execute("SHOW CONNECTORS;")
    with pytest.raises(NotSupportedError, match="ALTER SYSTEM"):
        engine.execute("ALTER SYSTEM 'ksql.x'='y';")


def test_health_tells_the_cluster_and_the_replay(engine: Engine) -> None:
    assert engine.health() == {"metastore": True, "kafka": True, "commandRunner": True}
    assert engine.kafka_cluster_id
    assert "KSQL_PROCESSING_LOG" in engine.catalog.sources


def test_a_topic_made_beforehand_is_used_as_it_is(engine: Engine, admin: Admin, orders: str) -> None:
    admin.create_topics([NewTopic(name="made", num_partitions=7)])
    engine.execute("CREATE STREAM m WITH (KAFKA_TOPIC='made') AS SELECT * FROM orders;")
    assert len(admin.describe_topics(["made"])["made"].partitions) == 7


def test_a_query_keeps_where_its_topics_ended_with_the_statement(
    engine: Engine, runner: RecordingRunner, orders: str, broker: EphemeralBroker
) -> None:
    with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
        producer.send(orders, "{}", partition=1)
    latest = {"auto.offset.reset": "latest"}
    [made] = engine.execute("CREATE STREAM copied AS SELECT id, amount FROM orders;", latest)
    query_id = made["commandStatus"]["queryId"]
    assert runner.plans[query_id].starts == {orders: {0: 0, 1: 1, 2: 0}}
    with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
        producer.send(orders, "{}", partition=2)
    engine.execute("CREATE OR REPLACE STREAM copied AS SELECT id, amount FROM orders WHERE amount > 1;", latest)
    assert runner.plans[query_id].starts == {orders: {0: 0, 1: 1, 2: 0}}
    [made] = engine.execute("CREATE STREAM all_copied AS SELECT id, amount FROM orders;")
    assert runner.plans[made["commandStatus"]["queryId"]].starts == {}
