"""Persistent queries on real Spark from their first batch to their end: paused, replaced, failing, dropped."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock.base.types import TopicPartition
from penstock.sql.errors import SqlError
from penstock.sql.processing_log import topic_name
from penstock.sql.server.parts import Parts
from penstock.sql.spark.running.markers import read_marker
from penstock.testing import EphemeralBroker
from tests.sql.conftest import BROKER, NewParts

WAIT_S = 150.0
EARLIEST = {"auto.offset.reset": "earliest"}


class Bench:
    """A SQL server without HTTP, and hands for its topics."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.bootstrap_servers = parts.kafka.bootstrap_servers

    def run(self, text: str, **properties: str) -> list[dict[str, Any]]:
        return self.parts.engine.execute(text, EARLIEST | {name.replace("_", "."): v for name, v in properties.items()})

    def start(self, text: str) -> str:
        """The id of the query that the statement made."""
        (entity,) = self.run(text)
        query_id: str = entity["commandStatus"]["queryId"]
        return query_id

    def send(self, topic: str, *values: dict[str, Any], key: str | None = None) -> None:
        with penstock.Producer(bootstrap_servers=self.bootstrap_servers) as producer:
            for value in values:
                producer.send(topic, json.dumps(value), key=key)

    def values(self, topic: str) -> list[Any]:
        """Of all committed records."""
        settings = {"isolation_level": "read_committed", "auto_offset_reset": "earliest", "enable_auto_commit": False}
        with penstock.Consumer(bootstrap_servers=self.bootstrap_servers, **settings) as consumer:
            partitions = [TopicPartition(topic, info.partition) for info in consumer.partitions_for(topic)]
            consumer.assign(partitions)
            ends = consumer.end_offsets(partitions)
            found: list[Any] = []
            while any(consumer.position(each) < ends[each] for each in partitions):
                found += [json.loads(record.value) for record in consumer.poll(200) if record.value is not None]
            return found

    def rows(self, query: str) -> list[list[Any]]:
        (parsed,) = self.parts.engine.parse(query, {})
        asked = self.parts.queries.open(parsed, EARLIEST)
        found: list[list[Any]] = []
        while (taken := asked.take(1_000, 1.0)) is not None:
            found += [row.columns for row in taken]
        asked.close()
        return found

    def states(self) -> dict[str, str]:
        """Of all queries, as SHOW QUERIES tells them."""
        (shown,) = self.run("SHOW QUERIES;")
        return {each["id"]: each["state"] for each in shown["queries"]}

    def errors_of(self, name: str) -> str:
        """The last errors of the queries that write and read this stream or table, as its description tells them."""
        (described,) = self.run(f"DESCRIBE {name} EXTENDED;")
        errors: str = described["sourceDescription"]["errorStats"]
        return errors


def until(check: Callable[[], Any]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not check():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.1)


def becomes(found: Callable[[], Any], expected: Any) -> None:
    deadline = time.monotonic() + WAIT_S
    while (now := found()) != expected:
        assert time.monotonic() < deadline, f"{now} instead of {expected}"
        time.sleep(0.1)


@pytest.fixture(scope="module")
def broker() -> Iterator[EphemeralBroker]:
    with EphemeralBroker(BROKER) as running:
        yield running


@pytest.fixture(scope="module")
def bench(new_parts: NewParts, broker: EphemeralBroker) -> Iterator[Bench]:
    with ExitStack() as stack:
        yield Bench(new_parts(stack, broker.bootstrap_servers))


def stream(bench: Bench, name: str) -> None:
    bench.run(
        f"CREATE STREAM {name} (k VARCHAR, n INT) WITH (kafka_topic='{name}', value_format='json', partitions=1);"
    )


def test_a_paused_query_goes_on_where_it_was(bench: Bench) -> None:
    stream(bench, "p")
    query_id = bench.start("CREATE STREAM p_copy AS SELECT n FROM p;")
    bench.send("p", {"n": 1}, {"n": 2})
    becomes(lambda: bench.values("P_COPY"), [{"N": 1}, {"N": 2}])
    bench.run(f"PAUSE {query_id};")
    (shown,) = bench.run("SHOW QUERIES;")
    assert [each["state"] for each in shown["queries"] if each["id"] == query_id] == ["PAUSED"]
    bench.send("p", {"n": 3})
    bench.run(f"RESUME {query_id};")
    bench.send("p", {"n": 4})
    becomes(lambda: bench.values("P_COPY"), [{"N": 1}, {"N": 2}, {"N": 3}, {"N": 4}])


def test_terminate_and_other_statements_answer_while_queries_start(
    new_parts: NewParts, broker: EphemeralBroker
) -> None:
    """Many queries take their time to start, on RESUME ALL as after a restart; nothing else waits for that."""
    with ExitStack() as stack:
        bench = Bench(new_parts(stack, broker.bootstrap_servers))
        stream(bench, "many")
        ids = [
            bench.start(f"CREATE STREAM many_{number} AS SELECT n + {number} AS n FROM many;") for number in range(6)
        ]
        bench.run("PAUSE ALL;")
        assert bench.states() == dict.fromkeys(ids, "PAUSED")
        bench.run("RESUME ALL;")
        assert bench.states() == dict.fromkeys(ids, "STARTING")
        bench.run(f"TERMINATE {ids[-1]};")
        stream(bench, "another")
        bench.run(f"PAUSE {ids[-2]};")
        states = bench.states()
        assert list(states) == ids[:-1]
        assert states[ids[-2]] == "PAUSED"
        assert "STARTING" in states.values()
        bench.run("DROP STREAM many_5 DELETE TOPIC;")
        until(lambda: [bench.states()[query_id] for query_id in ids[:4]] == ["RUNNING"] * 4)
        bench.send("many", {"n": 1})
        becomes(lambda: bench.values("MANY_3"), [{"N": 4}])


def test_a_replaced_query_keeps_what_it_has_counted(bench: Bench) -> None:
    stream(bench, "r")
    bench.run("CREATE TABLE r_counts AS SELECT k, COUNT(*) AS c FROM r GROUP BY k;")
    bench.send("r", {"k": "a", "n": 1}, {"k": "a", "n": 9})
    becomes(lambda: bench.rows("SELECT c FROM r_counts WHERE k = 'a';"), [[2]])
    bench.run("CREATE OR REPLACE TABLE r_counts AS SELECT k, COUNT(*) AS c FROM r WHERE n < 5 GROUP BY k;")
    bench.send("r", {"k": "a", "n": 9}, {"k": "a", "n": 2})
    becomes(lambda: bench.rows("SELECT c FROM r_counts WHERE k = 'a';"), [[3]])
    with pytest.raises(SqlError, match=r"(?s)cannot be replaced, its list of aggregates changes.*drop the source"):
        bench.run("CREATE OR REPLACE TABLE r_counts AS SELECT k, COUNT(n) AS c FROM r WHERE n < 5 GROUP BY k;")


def test_a_dropped_query_leaves_nothing_and_another_of_its_name_begins_anew(bench: Bench) -> None:
    stream(bench, "d")
    create = "CREATE TABLE d_counts AS SELECT k, COUNT(*) AS c FROM d GROUP BY k;"
    query_id = bench.start(create)
    bench.send("d", {"k": "a"})
    becomes(lambda: bench.rows("SELECT c FROM d_counts;"), [[1]])
    assert read_marker(bench.parts.kafka, query_id) is not None
    bench.run("DROP TABLE d_counts DELETE TOPIC;")
    assert read_marker(bench.parts.kafka, query_id) is None
    bench.run(create)
    bench.send("d", {"k": "a"})
    becomes(lambda: bench.rows("SELECT c FROM d_counts;"), [[2]])


def test_what_is_written_after_the_answer_belongs_to_the_query(bench: Bench) -> None:
    """However long Spark takes to start it. Streams begin there, tables are read whole."""
    stream(bench, "s")
    bench.run(
        "CREATE TABLE t (k VARCHAR PRIMARY KEY, n INT) WITH (kafka_topic='t', value_format='json', partitions=1);"
    )
    bench.send("s", {"n": 1})
    bench.send("t", {"n": 1}, key="a")
    (paused,) = bench.parts.engine.execute("CREATE STREAM s_copy AS SELECT n FROM s;")
    bench.run(f"PAUSE {paused['commandStatus']['queryId']};")
    bench.parts.engine.execute("CREATE TABLE t_copy AS SELECT k, n FROM t;")
    bench.send("s", {"n": 2})
    with penstock.Admin(bootstrap_servers=bench.bootstrap_servers) as admin:
        admin.create_partitions({"s": 2})
    with penstock.Producer(bootstrap_servers=bench.bootstrap_servers) as producer:
        producer.send("s", json.dumps({"n": 3}), partition=1)
    bench.run(f"RESUME {paused['commandStatus']['queryId']};")
    becomes(lambda: sorted(each["N"] for each in bench.values("S_COPY")), [2, 3])
    becomes(lambda: bench.rows("SELECT n FROM t_copy;"), [[1]])


def test_partitions_that_are_added_are_read_from_their_beginning(bench: Bench) -> None:
    stream(bench, "g")
    bench.run("CREATE TABLE g_counts AS SELECT k, COUNT(*) AS c FROM g GROUP BY k;")
    bench.send("g", {"k": "a"})
    becomes(lambda: bench.rows("SELECT c FROM g_counts;"), [[1]])
    with penstock.Admin(bootstrap_servers=bench.bootstrap_servers) as admin:
        admin.create_partitions({"g": 3})
    with penstock.Producer(bootstrap_servers=bench.bootstrap_servers) as producer:
        for partition in range(3):
            producer.send("g", json.dumps({"k": "a"}), partition=partition)
    becomes(lambda: bench.rows("SELECT c FROM g_counts;"), [[4]])


def test_a_deleted_topic_stops_its_query_with_the_remedy_and_no_other(bench: Bench) -> None:
    stream(bench, "gone")
    stream(bench, "stays")
    bench.run("CREATE STREAM gone_copy AS SELECT n FROM gone;")
    bench.run("CREATE STREAM stays_copy AS SELECT n FROM stays;")
    bench.send("gone", {"n": 1})
    becomes(lambda: bench.values("GONE_COPY"), [{"N": 1}])
    with penstock.Admin(bootstrap_servers=bench.bootstrap_servers) as admin:
        admin.delete_topics(["gone"])
    until(lambda: "opic gone does not exist" in bench.errors_of("gone_copy"))
    bench.send("stays", {"n": 7})
    becomes(lambda: bench.values("STAYS_COPY"), [{"N": 7}])


def test_a_topic_that_was_made_anew_is_read_on_only_when_that_is_wished(bench: Bench) -> None:
    stream(bench, "anew")
    query_id = bench.start("CREATE STREAM anew_copy AS SELECT n FROM anew;")
    bench.send("anew", {"n": 1}, {"n": 2})
    becomes(lambda: bench.values("ANEW_COPY"), [{"N": 1}, {"N": 2}])
    bench.run(f"PAUSE {query_id};")
    with penstock.Admin(bootstrap_servers=bench.bootstrap_servers) as admin:
        admin.delete_topics(["anew"])
        admin.create_topics([penstock.NewTopic("anew", 1)])
    bench.run(f"RESUME {query_id};")
    until(lambda: "SET 'penstock.fail.on.data.loss'='false'" in bench.errors_of("anew_copy"))
    assert "DROP STREAM ANEW_COPY; and create it again" in bench.errors_of("anew_copy")
    bench.run("CREATE OR REPLACE STREAM anew_copy AS SELECT n FROM anew;", penstock_fail_on_data_loss="false")
    bench.send("anew", {"n": 3})
    becomes(lambda: bench.values("ANEW_COPY"), [{"N": 1}, {"N": 2}, {"N": 3}])


def test_a_checkpoint_that_is_not_there_is_refused_with_the_command_that_rebuilds(
    bench: Bench, new_parts: NewParts, broker: EphemeralBroker
) -> None:
    """As for a second server of the service that keeps its checkpoints elsewhere: it must not begin the query anew."""
    stream(bench, "c")
    bench.run("CREATE TABLE c_counts AS SELECT k, COUNT(*) AS c FROM c GROUP BY k;")
    bench.send("c", {"k": "a"})
    becomes(lambda: bench.rows("SELECT c FROM c_counts;"), [[1]])
    with ExitStack() as stack:
        other = Bench(new_parts(stack, broker.bootstrap_servers, service_id=bench.parts.kafka.service_id))
        until(lambda: "is not at" in other.errors_of("c_counts"))
        assert "DROP TABLE C_COUNTS; and create it again" in other.errors_of("c_counts")
        bench.send("c", {"k": "a"})
        becomes(lambda: bench.rows("SELECT c FROM c_counts;"), [[2]])  # the first server was not disturbed
    assert bench.errors_of("c_counts") == ""


def test_a_full_disk_delays_a_query_and_refuses_statements_in_words(new_parts: NewParts) -> None:
    impatient = {"max.block.ms": "4000", "delivery.timeout.ms": "4000", "request.timeout.ms": "2000"}
    with EphemeralBroker(BROKER) as broker, ExitStack() as stack:
        bench = Bench(new_parts(stack, broker.bootstrap_servers, settings=impatient))
        stream(bench, "d")
        bench.send("d", *({"n": number} for number in range(5)))
        bench.start("CREATE STREAM d_copy AS SELECT n FROM d;")
        # What the statement starts takes longer than this.
        with broker.faults.full_disk():
            with pytest.raises(SqlError) as refused:
                bench.run("INSERT INTO d (n) VALUES (7);")
            until(lambda: bench.errors_of("d_copy"))
        assert "Failed to insert values into 'D'" in str(refused.value)
        becomes(lambda: bench.values("D_COPY"), [{"N": number} for number in range(5)])


def test_a_function_that_fails_gives_null_and_an_entry_in_the_processing_log(
    new_parts: NewParts, broker: EphemeralBroker, tmp_path: Path
) -> None:
    (tmp_path / "picky.py").write_text(
        "from penstock.sql.functions.user import scalar\n\n\n@scalar\ndef picky(text: str) -> str:\n"
        "    if text != 'good':\n        raise RuntimeError('I want ' + repr(text) + ' no more')\n    return text\n"
    )
    with ExitStack() as stack:
        bench = Bench(new_parts(stack, broker.bootstrap_servers, settings={"ksql.extension.dir": str(tmp_path)}))
        stream(bench, "picked")
        query_id = bench.start(
            "CREATE STREAM picked_copy AS SELECT PICKY(k) AS k, TRANSFORM(ARRAY[k], e => PICKY(e)) AS a FROM picked;"
        )
        bench.send("picked", {"k": "good"}, {"k": "bad"})
        becomes(lambda: bench.values("PICKED_COPY"), [{"K": "good", "A": ["good"]}, {"K": None, "A": [None]}])
        log = topic_name(bench.parts.kafka.service_id)
        entries = [entry for entry in bench.values(log) if entry["logger"] == f"processing.{query_id}"]
    assert [entry["message"]["recordProcessingError"]["errorMessage"] for entry in entries] == [
        "PICKY: I want 'bad' no more"
    ] * 2
    assert all("bad" in entry["message"]["recordProcessingError"]["record"] for entry in entries)
