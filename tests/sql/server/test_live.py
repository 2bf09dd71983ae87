"""REST and shell over a real engine, a real broker and real Spark."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest
from click.testing import CliRunner

from penstock.cli.sql import command
from penstock.sql.server.config import PUSH_QUERIES_MAX


@pytest.fixture(scope="module")
def http(url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=url, timeout=90) as client:
        yield client


def ksql(http: httpx.Client, text: str) -> Any:
    answer = http.post("/ksql", json={"ksql": text, "streamsProperties": {"auto.offset.reset": "earliest"}}).json()
    assert isinstance(answer, list), answer
    return answer


def rows(http: httpx.Client, text: str) -> list[Any]:
    answer = http.post("/query-stream", json={"sql": text})
    assert answer.status_code == 200, answer.text
    return [json.loads(line) for line in answer.text.splitlines()][1:]


def test_the_first_statement_people_write(http: httpx.Client) -> None:
    """From a stream to a table that can be watched and asked."""
    ksql(
        http,
        "CREATE STREAM monitoring_stream (error_code INT, type STRING, at BIGINT) "
        "WITH (kafka_topic='monitoring', value_format='json', partitions=1, timestamp='at');",
    )
    inserts = [
        {"error_code": 500, "type": "ERROR", "at": 1_000},
        {"error_code": 500, "type": "ERROR", "at": 2_000},
        {"error_code": 404, "type": "WARN", "at": 3_000},
        {"ERROR_CODE": 500, "TYPE": "ERROR", "AT": 61_000},
    ]
    body = "\n".join(json.dumps(line) for line in [{"target": "monitoring_stream"}, *inserts])
    acknowledged = http.post("/inserts-stream", content=body).text.splitlines()
    assert [json.loads(line) for line in acknowledged] == [{"status": "ok", "seq": number} for number in range(4)]

    (created,) = ksql(
        http,
        "CREATE TABLE error_counts AS SELECT error_code, count(*) FROM monitoring_stream "
        "WINDOW TUMBLING (SIZE 1 MINUTE) WHERE type = 'ERROR';",
    )
    assert created["commandStatus"]["status"] == "SUCCESS"
    assert created["warnings"]

    pushed = rows(http, "SELECT error_code, windowstart, ksql_col_0 FROM error_counts EMIT CHANGES LIMIT 2;")
    assert sorted(pushed) == [[500, 0, 2], [500, 60_000, 1]]
    pulled = rows(http, "SELECT error_code, windowstart, ksql_col_0 FROM error_counts WHERE error_code = 500;")
    assert sorted(pulled) == [[500, 0, 2], [500, 60_000, 1]]

    for emit, key in (("", " KEY"), (" EMIT CHANGES LIMIT 1", "")):
        head = http.post("/query", json={"ksql": f"SELECT * FROM error_counts{emit};"}).json()[0]["header"]
        assert head["schema"] == (
            f"`ERROR_CODE` INTEGER{key}, `WINDOWSTART` BIGINT{key}, `WINDOWEND` BIGINT{key}, `KSQL_COL_0` BIGINT"
        )
    head = http.post("/query", json={"ksql": "SELECT type, error_code FROM monitoring_stream;"}).json()[0]["header"]
    assert head["schema"] == "`TYPE` STRING, `ERROR_CODE` INTEGER"

    (queries,) = ksql(http, "SHOW QUERIES;")
    query_id, state = next(
        (query["id"], query["state"]) for query in queries["queries"] if query["sinks"] == ["ERROR_COUNTS"]
    )
    assert state == "RUNNING"
    (explained,) = ksql(http, f"EXPLAIN {query_id};")
    assert "HashAggregate" in explained["queryDescription"]["topology"]
    (explained,) = ksql(http, "EXPLAIN SELECT type FROM monitoring_stream EMIT CHANGES;")
    assert "StreamingRelationV2 penstock [TYPE#" in explained["queryDescription"]["topology"]
    assert http.get("/status/table/ERROR_COUNTS/create").json()["status"] == "SUCCESS"


def test_errors_have_codes_and_places(http: httpx.Client) -> None:
    for path, body, status, code in [
        ("/ksql", {"ksql": "SELECT * FROM monitoring_stream EMIT CHANGES;"}, 400, 40002),
        ("/ksql", {"ksql": "SHOW STREAMS; DESCRIBE nope;"}, 400, 40001),
        ("/ksql", {"ksql": "SHOW\nSTREEMS;"}, 400, 40001),
        ("/query-stream", {"sql": "SELECT * FROM nope;"}, 400, 40001),
        ("/query-stream", {"sql": "SELECT 1; SELECT 2;"}, 400, 40001),
        ("/close-query", {"queryId": "nope"}, 400, 40000),
        ("/inserts-stream", {"target": "nope"}, 400, 40001),
    ]:
        answer = http.post(path, json=body)
        assert (answer.status_code, answer.json()["error_code"]) == (status, code), answer.text
    unknown = http.post(
        "/query-stream", json={"sql": "SELECT type,\n nope FROM monitoring_stream EMIT CHANGES;"}
    ).json()
    assert unknown["message"].startswith("line 2:2: SELECT column 'NOPE' cannot be resolved.")
    misspelt = http.post("/ksql", json={"ksql": "SHOW\nSTREEMS;"}).json()
    assert misspelt["message"] == "line 2:1: Unexpected 'STREEMS'. Did you mean STREAMS?"


def test_a_push_query_that_is_closed_by_its_id(http: httpx.Client, url: str) -> None:
    with http.stream("POST", "/query-stream", json={"sql": "SELECT * FROM monitoring_stream EMIT CHANGES;"}) as answer:
        received = answer.iter_lines()
        query_id = json.loads(next(received))["queryId"]
        assert [len(json.loads(next(received))) for _ in range(4)] == [3] * 4
        assert httpx.post(f"{url}/close-query", json={"queryId": query_id}).status_code == 200
        assert list(received) == []


def test_a_push_query_is_listed_and_terminated(http: httpx.Client) -> None:
    text = "SELECT type FROM monitoring_stream EMIT CHANGES;"
    with http.stream("POST", "/query-stream", json={"sql": text}) as answer:
        received = answer.iter_lines()
        query_id = json.loads(next(received))["queryId"]
        assert len([next(received) for _ in range(4)]) == 4
        (listed,) = ksql(http, "LIST QUERIES;")
        (found,) = [each for each in listed["queries"] if each["id"] == query_id]
        assert found == {
            "id": query_id, "queryString": text, "queryType": "PUSH", "state": "RUNNING",
            "statusCount": {"RUNNING": 1}, "sinks": [], "sinkKafkaTopics": [],
        }  # fmt: skip
        (listed,) = ksql(http, "SHOW QUERIES EXTENDED;")
        (found,) = [each for each in listed["queryDescriptions"] if each["id"] == query_id]
        assert (found["queryType"], found["state"], found["sinks"]) == ("PUSH", "RUNNING", [])
        # Names without quotes have no case.
        _, ended = ksql(http, f"SHOW STREAMS; TERMINATE {query_id.lower()};")
        assert ended["wasTerminated"] is True
        assert list(received) == []
    (listed,) = ksql(http, "SHOW QUERIES;")
    assert query_id not in [each["id"] for each in listed["queries"]]
    refused = http.post("/ksql", json={"ksql": f"TERMINATE {query_id};"})
    assert "Unknown queryId" in refused.json()["message"]


def test_only_so_many_push_queries_at_once(http: httpx.Client, url: str) -> None:
    push = {"sql": "SELECT * FROM monitoring_stream EMIT CHANGES;"}

    def refused(query: dict[str, str]) -> bool:
        with http.stream("POST", "/query-stream", json=query) as answer:
            return answer.status_code == 400 and json.loads(answer.read())["error_code"] == 40003

    with ExitStack() as stack:
        many = stack.enter_context(httpx.Client(base_url=url, timeout=90, limits=httpx.Limits(max_connections=None)))
        for _ in range(PUSH_QUERIES_MAX.default):
            answer = stack.enter_context(many.stream("POST", "/query-stream", json=push))
            assert answer.status_code == 200
        assert refused(push)
        assert refused({"sql": "PRINT monitoring;"})
        assert ksql(http, "SHOW STREAMS;")
        assert rows(http, "SELECT type FROM monitoring_stream LIMIT 1;") == [["ERROR"]]
    deadline = time.monotonic() + 60
    while refused(push):
        assert time.monotonic() < deadline, "queries whose clients have gone are still open"


def test_the_shell_from_end_to_end(url: str) -> None:
    script = """
        SET 'auto.offset.reset' = 'earliest';
        DEFINE topic = 'greetings';
        CREATE STREAM greetings (name STRING KEY, text STRING, n DECIMAL(4, 2))
          WITH (kafka_topic='${topic}', value_format='json', partitions=1);
        INSERT INTO greetings VALUES ('a', 'hello', 1.50);
        SELECT * FROM greetings EMIT CHANGES LIMIT 1;
        PRINT '${topic}' FROM BEGINNING LIMIT 1;
        DESCRIBE greetings;
        DROP STREAM greetings DELETE TOPIC;
    """
    result = CliRunner().invoke(command, [url, "-o", "json", "-e", script])
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[2] == '{"NAME": "a", "TEXT": "hello", "N": 1.50}'
    assert "hello" in lines[-3]
    assert json.loads(lines[-2])["sourceDescription"]["name"] == "GREETINGS"
    failing = CliRunner().invoke(command, [url, "-e", "DESCRIBE greetings;"])
    assert failing.exit_code == 1
    assert "GREETINGS" in failing.stderr
