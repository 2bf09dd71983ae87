"""The REST interface as clients see it: over HTTP/1.1 and HTTP/2, with an engine that says what the test wants."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal as PythonDecimal
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from h2.connection import H2Connection
from h2.events import DataReceived, PingAckReceived, ResponseReceived, StreamEnded
from wsproto import ConnectionType, WSConnection
from wsproto.events import CloseConnection, TextMessage
from wsproto.events import Request as WebSocketRequest

from penstock.sql.engine.rows import Row, RowQueue
from penstock.sql.errors import EngineError, SqlError
from penstock.sql.server import connections
from penstock.sql.server.requests import BODY_BYTES_MAX, DELIMITED, KSQL_JSON
from penstock.sql.types import BIGINT, BYTES, DATE, DOUBLE, STRING, TIME, TIMESTAMP, Array, Decimal, Field, Map, Struct
from tests.unit.sql.server.fakes import FakeService, pull, push, serving


@pytest.fixture
def service() -> FakeService:
    return FakeService()


@pytest.fixture
def url(service: FakeService) -> Iterator[str]:
    with serving(service) as url:
        yield url


@pytest.fixture(params=["http/1.1", "http/2"])
def http(request: pytest.FixtureRequest, url: str) -> Iterator[httpx.Client]:
    two = request.param == "http/2"
    with httpx.Client(base_url=url, http1=not two, http2=two, timeout=10) as client:
        yield client


def lines(response: httpx.Response) -> list[Any]:
    return [json.loads(line) for line in response.text.splitlines()]


def test_statements_are_executed(http: httpx.Client, service: FakeService) -> None:
    service.answers["SHOW STREAMS;"] = [{"@type": "streams", "statementText": "SHOW STREAMS;", "streams": []}]
    response = http.post(
        "/ksql",
        content=json.dumps(
            {
                "ksql": "SHOW STREAMS;",
                "streamsProperties": {"auto.offset.reset": "latest"},
                "sessionVariables": {"v": 1},
                "commandSequenceNumber": 7,
            }
        ),
        headers={"Content-Type": f"{KSQL_JSON}; charset=utf-8", "Accept": KSQL_JSON},
    )
    assert response.status_code == 200
    assert response.headers["content-type"] == KSQL_JSON
    assert response.json() == service.answers["SHOW STREAMS;"]
    assert service.asked == [("SHOW STREAMS;", {"auto.offset.reset": "latest"}, {"v": "1"}, 7)]


def test_a_bad_statement_is_told_with_its_text(http: httpx.Client, service: FakeService) -> None:
    error = SqlError("S does not exist.", hint="SHOW STREAMS;")
    error.statement_text = "DROP STREAM S"  # type: ignore[attr-defined]
    error.entities = [{"@type": "currentStatus"}]  # type: ignore[attr-defined]
    service.answers["DROP STREAM S;"] = error
    response = http.post("/ksql", json={"ksql": "DROP STREAM S;"})
    assert response.status_code == 400
    assert response.json() == {
        "@type": "statement_error",
        "error_code": 40001,
        "message": "S does not exist. SHOW STREAMS;",
        "statementText": "DROP STREAM S",
        "entities": [{"@type": "currentStatus"}],
    }


def test_a_query_or_statement_that_cannot_be_read_is_told_with_its_text(http: httpx.Client) -> None:
    for path, field in (("/ksql", "ksql"), ("/query", "ksql"), ("/query-stream", "sql")):
        body = http.post(path, json={field: "NONSENSE;"}).json()
        assert (body["@type"], body["error_code"], body["statementText"]) == ("statement_error", 40001, "NONSENSE;")


def test_a_method_that_a_path_does_not_have(http: httpx.Client) -> None:
    response = http.delete("/ksql")
    assert (response.status_code, response.headers["allow"]) == (405, "POST")
    assert response.json()["message"] == "DELETE /ksql is not possible: the path takes POST."


def test_a_fault_of_the_server_shows_nothing_of_its_inside(http: httpx.Client, service: FakeService) -> None:
    service.answers["X;"] = RuntimeError("secret inside")
    response = http.post("/ksql", json={"ksql": "X;"})
    assert response.status_code == 500
    assert response.json() == {
        "@type": "generic_error",
        "error_code": 50000,
        "message": "The server failed while it worked on the request. Its log says more.",
    }


@pytest.mark.parametrize(
    ("method", "path", "content", "headers", "code"),
    [
        ("POST", "/ksql", b"{not json", {}, 40000),
        ("POST", "/ksql", b"\xff\xfe", {}, 40000),
        ("POST", "/ksql", b"", {}, 40000),
        ("POST", "/ksql", b'{"sql": "x"}', {}, 40000),
        ("POST", "/ksql", b'{"ksql": 3}', {}, 40000),
        ("POST", "/ksql", b'{"ksql": "x;"}', {"Content-Type": "application/xml"}, 41500),
        ("POST", "/ksql", b"x" * (BODY_BYTES_MAX + 1), {}, 41300),
        ("POST", "/query", b'{"ksql": "x;"}', {"Accept": "application/vnd.ksql.v1+protobuf"}, 40600),
        ("POST", "/inserts-stream", b"", {}, 40000),
        ("POST", "/inserts-stream", b"[]\n", {}, 40000),
        ("POST", "/inserts-stream", b'{"target": "NOPE"}\n', {}, 40001),
        ("POST", "/inserts-stream", b'{"target": "`s`"}\n', {}, 40001),
        ("POST", "/inserts-stream", b'{"target": "a b"}\n', {}, 40001),
        ("POST", "/close-query", b'{"queryId": "nope"}', {}, 40000),
        ("GET", "/ksql", b"", {}, 40500),
        ("GET", "/nowhere", b"", {}, 40400),
        ("GET", "/status/stream/X/create", b"", {}, 40400),
        ("GET", "/is_valid_property/nope", b"", {}, 40000),
        ("GET", "/is_valid_property/ksql.service.id", b"", {}, 40000),
    ],
)
def test_requests_that_are_refused(
    http: httpx.Client, method: str, path: str, content: bytes, headers: dict[str, str], code: int
) -> None:
    response = http.request(method, path, content=content, headers=headers)
    body = response.json()
    assert (response.status_code, body["error_code"], body["@type"]) == (code // 100, code, "generic_error")
    assert body["message"]
    assert "Traceback" not in response.text


def test_an_early_refusal_does_not_cost_the_connection(url: str) -> None:
    """hypercorn forgets an HTTP/2 stream once it is answered, and fails on the body that still comes."""
    with Http2(url) as client:
        for stream in (1, 3, 5):
            client.begin(stream, "/ksql", ("content-type", "application/xml"))
            client.send(stream, b"{", end=False)
            # By then the request was refused, if the server did not wait for its end.
            for _ in range(20):
                client.ping()
            client.send(stream, b"}", end=True)
            assert client.status(stream) == "415"


def test_a_pull_query_in_the_two_forms_of_query_stream(http: httpx.Client, service: FakeService) -> None:
    service.answers["SELECT;"] = pull([1, "a"], [2, None])
    response = http.post("/query-stream", json={"sql": "SELECT;", "properties": {"p": 1}})
    assert response.headers["content-type"] == DELIMITED
    head = {"queryId": "transient_S_1", "columnNames": ["ID", "NAME"], "columnTypes": ["BIGINT", "STRING"]}
    assert lines(response) == [head, [1, "a"], [2, None]]
    assert service.asked == [("SELECT;", {"p": 1}, {})]

    service.answers["SELECT;"] = pull([1, "a"])
    response = http.post("/query-stream", json={"sql": "SELECT;"}, headers={"Accept": "application/json"})
    assert response.json() == [head, [1, "a"]]


def test_a_pull_query_in_the_two_forms_of_query(http: httpx.Client, service: FakeService) -> None:
    head = {"header": {"queryId": "transient_S_1", "schema": "`ID` BIGINT, `NAME` STRING"}}
    service.answers["SELECT;"] = pull([1, "a"])
    assert http.post("/query", json={"ksql": "SELECT;"}).json() == [head, {"row": {"columns": [1, "a"]}}]
    service.answers["SELECT;"] = pull()
    response = http.post("/query", json={"ksql": "SELECT;"}, headers={"Accept": DELIMITED})
    assert lines(response) == [head]


def test_keys_are_told_in_the_header_of_query(url: str, service: FakeService) -> None:
    columns = [("ID", STRING), ("WINDOWSTART", BIGINT), ("WINDOWEND", BIGINT), ("N", BIGINT)]
    keys = frozenset({"ID", "WINDOWSTART", "WINDOWEND"})
    service.answers["SELECT;"] = pull(columns=columns, key_columns=keys)
    (head,) = httpx.post(f"{url}/query", json={"ksql": "SELECT;"}).json()
    assert head["header"]["schema"] == ("`ID` STRING KEY, `WINDOWSTART` BIGINT KEY, `WINDOWEND` BIGINT KEY, `N` BIGINT")
    service.answers["SELECT;"] = pull(columns=columns, key_columns=keys)
    (head,) = lines(httpx.post(f"{url}/query-stream", json={"sql": "SELECT;"}))
    assert head["columnTypes"] == ["STRING", "BIGINT", "BIGINT", "BIGINT"]
    service.answers["SELECT;"] = pull(columns=columns, key_columns=keys)
    (fields,), _ = _web_socket(url, f"/ws/query?request={quote(json.dumps({'ksql': 'SELECT;'}))}")
    assert [each.get("type") for each in fields] == ["KEY", "KEY", "KEY", None]


def test_a_setting_that_a_statement_does_not_need_is_looked_at(url: str, service: FakeService) -> None:
    service.answers["SHOW STREAMS;"] = []
    for name, value in (("foo", "1"), ("auto.offset.reset", "middle")):
        answer = httpx.post(f"{url}/ksql", json={"ksql": "SHOW STREAMS;", "streamsProperties": {name: value}})
        assert (answer.status_code, answer.json()["error_code"]) == (400, 40001)
        assert name in answer.json()["message"]
    assert service.asked == []


def test_a_push_query_ends_at_its_limit(http: httpx.Client, service: FakeService) -> None:
    queue = RowQueue(limit=2)
    service.answers["SELECT LIMIT 2;"] = push(queue)
    queue.put([Row([1, "a"]), Row([1, None], True), Row([3, "c"])])
    assert http.post("/query", json={"ksql": "SELECT LIMIT 2;"}).json()[1:] == [
        {"row": {"columns": [1, "a"]}},
        {"row": {"columns": [1, None], "tombstone": True}},
        {"finalMessage": "Limit Reached"},
    ]


def test_rows_come_as_they_happen(http: httpx.Client, service: FakeService) -> None:
    queue = RowQueue()
    service.answers["SELECT;"] = push(queue)
    with http.stream("POST", "/query-stream", json={"sql": "SELECT;"}) as response:
        received = response.iter_lines()
        assert "queryId" in next(received)
        for number in range(3):
            queue.put([Row([number, "x"])])
            assert json.loads(next(received)) == [number, "x"]
        assert http.post("/close-query", json={"queryId": "transient_S_1"}).status_code == 200
        assert list(received) == []


def test_a_query_that_breaks_says_so_in_the_stream(http: httpx.Client, service: FakeService) -> None:
    for path, field, expected in [
        ("/query-stream", "sql", {"status": "error", "@type": "generic_error", "error_code": 50000, "message": "gone"}),
        ("/query", "ksql", {"errorMessage": {"@type": "generic_error", "error_code": 50000, "message": "gone"}}),
    ]:
        queue = RowQueue()
        queue.put([Row([1, "a"])])
        queue.end(EngineError("gone"))
        service.answers["SELECT;"] = push(queue)
        response = http.post(path, json={field: "SELECT;"}, headers={"Accept": DELIMITED})
        assert response.status_code == 200
        assert lines(response)[-1] == expected


@pytest.mark.parametrize("two", [False, True])
def test_a_client_that_leaves_ends_its_push_query(url: str, service: FakeService, two: bool) -> None:
    query = service.answers["SELECT;"] = push()
    with (
        httpx.Client(base_url=url, http1=not two, http2=two, timeout=10) as http,
        http.stream("POST", "/query-stream", json={"sql": "SELECT;"}) as response,
    ):
        next(response.iter_lines())
    assert query.closed.wait(10)


class Http2:
    """A client that says when each frame goes out."""

    def __init__(self, url: str) -> None:
        host, port = url.removeprefix("http://").split(":")
        self.raw = socket.create_connection((host, int(port)), 10)
        self._connection = H2Connection()
        self._events: list[Any] = []
        self._connection.initiate_connection()

    def __enter__(self) -> Http2:
        return self

    def __exit__(self, *_: object) -> None:
        self.raw.close()

    def begin(self, stream: int, path: str, *headers: tuple[str, str]) -> None:
        pseudo = [(":method", "POST"), (":path", path), (":scheme", "http"), (":authority", "x")]
        self._connection.send_headers(stream, [*pseudo, *headers])

    def send(self, stream: int, body: bytes, *, end: bool) -> None:
        self._connection.send_data(stream, body, end_stream=end)
        self._flush()

    def reset(self, stream: int) -> None:
        self._connection.reset_stream(stream)
        self._flush()

    def ping(self) -> None:
        self._connection.ping(b"12345678")
        self._flush()
        self._wait_for(lambda event: isinstance(event, PingAckReceived))

    def status(self, stream: int) -> str:
        found = self._wait_for(lambda event: isinstance(event, ResponseReceived) and event.stream_id == stream)
        return str(dict(found.headers)[b":status"].decode())

    def wait_for_data(self) -> None:
        self._wait_for(lambda event: isinstance(event, DataReceived))

    def chunks(self, stream: int) -> Iterator[bytes]:
        """What the frames of an answer hold."""
        while True:
            event = self._wait_for(
                lambda event: isinstance(event, (DataReceived, StreamEnded)) and event.stream_id == stream
            )
            if isinstance(event, StreamEnded):
                return
            if event.data:
                yield event.data

    def _wait_for(self, wanted: Callable[[Any], bool]) -> Any:
        while True:
            for event in self._events:
                if wanted(event):
                    self._events.remove(event)
                    return event
            data = self.raw.recv(65536)
            assert data, "the server closed the connection"
            self._events += self._connection.receive_data(data)

    def _flush(self) -> None:
        self.raw.sendall(self._connection.data_to_send())


def test_a_stream_that_is_reset_ends_its_query_and_leaves_the_connection(url: str, service: FakeService) -> None:
    query = service.answers["SELECT;"] = push()
    with Http2(url) as client:
        client.begin(1, "/query-stream")
        client.send(1, json.dumps({"sql": "SELECT;"}).encode(), end=True)
        client.wait_for_data()
        assert not query.closed.is_set()
        client.reset(1)
        assert query.closed.wait(10)
        client.ping()


def test_a_query_over_a_web_socket(url: str, service: FakeService) -> None:
    service.answers["SELECT;"] = pull([1, "a"])
    request = quote(json.dumps({"ksql": "SELECT;"}))
    messages, code = _web_socket(url, f"/ws/query?request={request}")
    assert [each["name"] for each in messages[0]] == ["ID", "NAME"]
    assert messages[1:] == [{"row": {"columns": [1, "a"]}}]
    assert code == 1000
    assert _web_socket(url, "/ws/query?request=nonsense")[1] == 1003


def _web_socket(url: str, path: str) -> tuple[list[Any], int]:
    """The messages, and the code with which the server closed."""
    host, port = url.removeprefix("http://").split(":")
    connection = WSConnection(ConnectionType.CLIENT)
    messages: list[Any] = []
    with socket.create_connection((host, int(port)), 10) as raw:
        raw.sendall(connection.send(WebSocketRequest(host=host, target=path)))
        while True:
            connection.receive_data(raw.recv(65536))
            for event in connection.events():
                if isinstance(event, TextMessage):
                    messages.append(json.loads(event.data))
                if isinstance(event, CloseConnection):
                    return messages, event.code


def test_a_reader_that_does_not_read_holds_back_its_query_only(url: str, service: FakeService) -> None:
    class Endless(RowQueue):
        taken = 0
        quiet = threading.Event()

        def take(self, count_max: int, timeout_s: float) -> list[Row] | None:
            self.taken += count_max
            return [Row([1, "x" * 1000])] * count_max

    queue = Endless()
    query = service.answers["SELECT;"] = push(queue)
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), 10) as slow:
        body = json.dumps({"sql": "SELECT;"}).encode()
        slow.sendall(b"POST /query-stream HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        service.answers["Y;"] = []
        before = -1
        while queue.taken != before:
            before = queue.taken
            # Other requests are answered meanwhile.
            for _ in range(20):
                assert httpx.post(f"{url}/ksql", json={"ksql": "Y;"}).json() == []
        assert queue.taken < 100_000
    assert query.closed.wait(10)


def _ended(raw: socket.socket) -> bool:
    """Whether the server closes its side too; raises TimeoutError when it does not."""
    raw.shutdown(socket.SHUT_WR)
    while raw.recv(65536):
        pass
    return True


def _post(path: str, body: bytes) -> bytes:
    return b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (path.encode(), len(body), body)


def test_the_connection_of_a_client_that_has_gone_is_closed(
    url: str, service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """hypercorn keeps an idle one for its time, and forgets one over HTTP/2 to which an answer was on its way."""
    monkeypatch.setattr(connections, "LAST_WORDS_S", 0.1)
    address = tuple(url.removeprefix("http://").split(":"))
    with socket.create_connection(address, 10) as idle:
        idle.sendall(b"GET /info HTTP/1.1\r\nHost: x\r\n\r\n")
        assert idle.recv(65536)
        assert _ended(idle)

    class Held(dict[str, Any]):
        asked, free = threading.Event(), threading.Event()

        def get(self, *_: object) -> list[Any]:
            self.asked.set()
            assert self.free.wait(10)
            return []

    service.answers = Held()
    with Http2(url) as waiting:
        waiting.begin(1, "/ksql")
        waiting.send(1, b'{"ksql": "x;"}', end=True)
        assert Held.asked.wait(10)
        waiting.raw.shutdown(socket.SHUT_WR)
        Held.free.set()
        assert _ended(waiting.raw)

    query = push()
    service.answers = {"SELECT;": query}
    with socket.create_connection(address, 10) as eager:
        eager.sendall(_post("/query-stream", b'{"sql": "SELECT;"}') + b"GET /info HTTP/1.1\r\nHost: x\r\n\r\n")
        assert eager.recv(65536)
        assert _ended(eager)
    assert query.closed.wait(10)


def test_a_reader_that_does_not_read_does_not_hold_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "LAST_WORDS_S", 0.1)

    class Endless(RowQueue):
        def take(self, count_max: int, timeout_s: float) -> list[Row] | None:
            return [Row([1, "x" * 1000])] * count_max

    query = push(Endless())
    with serving(FakeService(answers={"SELECT;": query})) as url:
        slow = socket.create_connection(tuple(url.removeprefix("http://").split(":")), 10)
        slow.sendall(_post("/query-stream", b'{"sql": "SELECT;"}'))
        assert slow.recv(1)
    assert query.closed.wait(10)
    slow.close()


def test_print_gives_plain_lines(http: httpx.Client, service: FakeService) -> None:
    queue = RowQueue(limit=2)
    queue.put([Row(["rowtime: 1, key: a"]), Row(["rowtime: 2, key: ü"])])
    service.answers["PRINT x LIMIT 2;"] = push(queue, kind="PRINT", columns=(("LINE", STRING),))
    response = http.post("/query", json={"ksql": "PRINT x LIMIT 2;"})
    assert response.headers["content-type"] == "text/plain; charset=utf-8"
    assert response.text == "rowtime: 1, key: a\nrowtime: 2, key: ü\n"


def test_values_of_every_type(http: httpx.Client, service: FakeService) -> None:
    moment = datetime(2020, 1, 2, 3, 4, 5, 6000, tzinfo=UTC)
    columns = {
        "TS": (TIMESTAMP, moment, "2020-01-02T03:04:05.006"),
        "D": (DATE, date(2020, 1, 2), "2020-01-02"),
        "T": (TIME, time(10, 0), "10:00"),
        "T_MS": (TIME, time(7, 8, 0, 5000), "07:08:00.005"),
        "B": (BYTES, b"\x00\x01", "AAE="),
        "DEC": (Decimal(4, 2), PythonDecimal("1.50"), 1.5),
        "ZERO": (Decimal(10, 8), PythonDecimal("0E-8"), 0.0),
        "NAN": (DOUBLE, float("nan"), "NaN"),
        "A": (Array(TIMESTAMP), [moment, None], ["2020-01-02T03:04:05.006", None]),
        "M": (Map(STRING, DOUBLE), {"x": float("-inf"), "y": None}, {"x": "-Infinity", "y": None}),
        "S": (
            Struct((Field("t", TIME), Field("s", STRING))),
            {"t": time(7, 8, 9), "s": "x"},
            {"t": "07:08:09", "s": "x"},
        ),
    }
    query = pull(
        [value for _, value, _ in columns.values()], columns=[(name, each[0]) for name, each in columns.items()]
    )
    service.answers["SELECT;"] = query
    response = http.post("/query-stream", json={"sql": "SELECT;"})
    assert lines(response)[1] == [shown for _, _, shown in columns.values()]
    assert "1.50,0.00000000," in response.text
    assert lines(response)[0]["columnTypes"][-1] == "STRUCT<`t` TIME, `s` STRING>"


def test_rows_are_inserted_and_acknowledged(http: httpx.Client, service: FakeService) -> None:
    body = b'{"target": "s"}\n{"ID": 1}\n\n{"ID": 2}\n{"ID": 3}'
    response = http.post("/inserts-stream", content=body)
    assert lines(response) == [{"status": "ok", "seq": number} for number in range(3)]
    assert service.inserted == [("S", {"ID": number}) for number in (1, 2, 3)]
    response = http.post("/inserts-stream", content=body, headers={"Accept": "application/json"})
    assert [each["seq"] for each in response.json()] == [0, 1, 2]


@pytest.mark.parametrize("bad", [b'{"bad": 1}', b"no json"])
def test_the_first_bad_row_ends_the_inserts(http: httpx.Client, service: FakeService, bad: bytes) -> None:
    response = http.post("/inserts-stream", content=b'{"target": "S"}\n{"ID": 1}\n%s\n{"ID": 3}\n' % bad)
    first, second = lines(response)
    assert first == {"status": "ok", "seq": 0}
    assert (second["status"], second["seq"]) == ("error", 1)
    assert second["message"]


def test_rows_are_acknowledged_while_the_request_goes_on(url: str, service: FakeService) -> None:
    acknowledged = threading.Event()

    def body() -> Iterator[bytes]:
        yield b'{"target": "S"}\n{"ID": 1}\n'
        assert acknowledged.wait(10)
        yield b'{"ID": 2}\n'

    with httpx.Client(base_url=url, http1=False, http2=True, timeout=10) as http:
        done: list[Any] = []

        def read() -> None:
            with http.stream("POST", "/inserts-stream", content=body()) as response:
                done.extend(json.loads(line) for line in response.iter_lines())

        thread = threading.Thread(target=read)
        thread.start()
        while not service.inserted and thread.is_alive():
            thread.join(0.01)
        acknowledged.set()
        thread.join(10)
    assert [each["seq"] for each in done] == [0, 1]


def test_how_the_server_is(http: httpx.Client, service: FakeService) -> None:
    info = http.get("/", follow_redirects=True).json()["KsqlServerInfo"]
    assert info["ksqlServiceId"] == "test_"
    assert info["kafkaClusterId"] == "cluster-1"
    assert info["serverStatus"] == "RUNNING"
    assert http.get("/healthcheck").json()["isHealthy"] is True
    assert http.get("/status").json() == {"commandStatuses": {"stream/S/create": "SUCCESS"}}
    assert http.get("/status/stream/S/create").json()["message"] == "Stream created"
    assert http.get("/is_valid_property/auto.offset.reset").json() is True
    assert http.get("/v1/metadata").json()["clusterId"]["scope"]["clusters"]["ksql-cluster"] == "test_"
    assert http.get("/v1/metadata/id").json()["id"] == ""
    assert len(http.get("/clusterStatus").json()["clusterStatus"]) == 1
    assert http.post("/ksql/terminate", json={"deleteTopicList": ["a"]}).json()[0]["topics"] == ["a"]
    service.healthy = False
    response = http.get("/healthcheck")
    assert (response.status_code, response.json()["details"]["kafka"]) == (503, {"isHealthy": False})


def test_rows_for_executors_on_other_machines(http: httpx.Client) -> None:
    response = http.post("/internal/tables/T/rows", content=b"\x00keys", headers={"Content-Type": "text/plain"})
    assert response.content == b"T\x00keys"


def test_a_row_and_an_acknowledgement_are_a_frame_each(url: str, service: FakeService) -> None:
    """There are clients, such as ksqldb-js and the crate ksqldb, that take a frame for a row."""
    queue = RowQueue(limit=3)
    queue.put([Row([number, "x"]) for number in range(3)])
    service.answers["SELECT LIMIT 3;"] = push(queue)
    service.answers["SELECT;"] = pull(*([number, "x"] for number in range(3)))
    with Http2(url) as client:
        for stream, text in ((1, "SELECT LIMIT 3;"), (3, "SELECT;")):
            client.begin(stream, "/query-stream")
            client.send(stream, json.dumps({"sql": text}).encode(), end=True)
            assert [json.loads(chunk) for chunk in client.chunks(stream)][1:] == [[number, "x"] for number in range(3)]
        client.begin(5, "/inserts-stream")
        client.send(5, b'{"target": "S"}\n{"ID": 1}\n{"ID": 2}\n', end=True)
        assert [json.loads(chunk)["seq"] for chunk in client.chunks(5)] == [0, 1]


def test_a_row_of_query_is_a_line_that_is_sent_at_once(http: httpx.Client, service: FakeService) -> None:
    """Its clients read lines, and end them at the comma; the array has one element more only at its end."""
    queue = RowQueue()
    service.answers["SELECT;"] = push(queue)
    with http.stream("POST", "/query", json={"ksql": "SELECT;"}) as response:
        received = response.iter_lines()
        assert next(received).startswith('[{"header":')
        for number in range(2):
            queue.put([Row([number, "x"])])
            # Empty lines tell that the query lives.
            assert next(filter(None, received)) == f'{{"row":{{"columns":[{number},"x"]}}}},'
        assert next(received) == ""
        queue.end()
        assert list(filter(None, received)) == ['{"finalMessage":"Query Completed"}]']


def test_the_rows_of_a_pull_query_are_a_whole_array(http: httpx.Client, service: FakeService) -> None:
    for count in (0, 1, 2, 2500):
        service.answers["SELECT;"] = pull(*([number, "x"] for number in range(count)))
        rows = http.post("/query", json={"ksql": "SELECT;"}).json()[1:]
        assert [each["row"]["columns"][0] for each in rows] == list(range(count))


def test_a_status_has_its_words(url: str, service: FakeService) -> None:
    """HTTP needs none, but hyper, and with it the Python client ksql, does."""
    service.answers["SELECT;"] = pull()
    answer = httpx.post(f"{url}/query-stream", json={"sql": "SELECT;"})
    assert answer.extensions["reason_phrase"] == b"OK"
    assert httpx.get(f"{url}/nowhere").extensions["reason_phrase"] == b"Not Found"


def test_a_request_may_name_its_whole_address(url: str) -> None:
    """As a proxy's clients do, and the Python client ksql."""
    with socket.create_connection(tuple(url.removeprefix("http://").split(":")), 10) as raw:
        raw.sendall(f"GET {url}/info HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        answer = b"".join(iter(lambda: raw.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 200 OK")
    assert b"KsqlServerInfo" in answer
