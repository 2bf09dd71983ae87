"""The shell against a real REST server, with an engine that says what the test wants."""

from __future__ import annotations

import fcntl
import io
import json
import os
import pty
import select
import socket
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator
from decimal import Decimal as PythonDecimal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

import penstock
from penstock.cli.sql import command
from penstock.sql.engine.rows import Row, RowQueue
from penstock.sql.errors import SqlError
from penstock.sql.shell.completion import Names, SqlCompleter
from penstock.sql.shell.prompt import is_finished
from penstock.sql.shell.rest import RestClient
from penstock.sql.types import BIGINT, DOUBLE, STRING, Array, Decimal
from tests.unit.sql.server.fakes import FakeService, pull, push, serving

STREAMS = {
    "@type": "streams",
    "statementText": "SHOW STREAMS",
    "streams": [{"name": "S", "topic": "s", "keyFormat": "KAFKA", "valueFormat": "JSON", "isWindowed": False}],
    "warnings": [{"message": "mind the gap"}],
}


@pytest.fixture
def service() -> FakeService:
    return FakeService()


@pytest.fixture
def url(service: FakeService) -> Iterator[str]:
    with serving(service) as url:
        yield url


def shell(url: str, *arguments: str, stdin: str = "") -> Result:
    return CliRunner().invoke(command, [url, *arguments], input=stdin)


def test_statements_one_by_one_with_the_sessions_settings(url: str, service: FakeService) -> None:
    service.answers |= {"SHOW STREAMS;": [STREAMS], "DROP STREAM S;": []}
    script = (
        "-- a comment; with a semicolon\nSHOW STREAMS; SET 'auto.offset.reset' = 'earliest'; DEFINE name = 'S';\n"
        "drop stream ${NAME}; UNSET 'auto.offset.reset'; SHOW STREAMS;"
    )
    service.answers |= {"drop stream S;": [], "SET 'auto.offset.reset'='earliest';": []}
    result = shell(url, "-e", script)
    assert result.exit_code == 0, result.output
    assert [(asked[0], asked[1]) for asked in service.asked] == [
        ("SHOW STREAMS;", {}),
        ("SET 'auto.offset.reset'='earliest';", {}),
        ("drop stream S;", {"auto.offset.reset": "earliest"}),
        ("SHOW STREAMS;", {}),
    ]
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["name", "topic", "key", "value", "windowed"]
    assert lines[1].split() == ["S", "s", "KAFKA", "JSON", "no"]
    assert lines[2] == "Warning: mind the gap"
    assert "auto.offset.reset is 'earliest' for the statements that follow." in lines


def test_the_last_command_is_waited_for(url: str, service: FakeService) -> None:
    done = {
        "@type": "currentStatus",
        "commandStatus": {"status": "SUCCESS", "message": "Created query with ID Q_1", "queryId": "Q_1"},
    }
    service.answers |= {"CREATE;": [{**done, "commandSequenceNumber": 7}], "SHOW STREAMS;": []}
    result = shell(url, "-e", "CREATE; SHOW STREAMS;")
    assert result.stdout == "Created query with ID Q_1.\n"
    assert [asked[3] for asked in service.asked] == [None, 7]


def test_a_statement_that_fails_ends_the_script(url: str, service: FakeService) -> None:
    service.answers |= {"A;": [STREAMS], "B;": SqlError("B is wrong."), "C;": []}
    result = shell(url, "-o", "json", "-e", "A; B; C;")
    assert result.exit_code == 1
    assert json.loads(result.stdout) == STREAMS
    assert result.stderr == "B is wrong.\n"
    assert [asked[0] for asked in service.asked] == ["A;", "B;"]


def test_rows_for_pipes_and_for_programs(url: str, service: FakeService) -> None:
    service.answers["SELECT 1;"] = pull([1, "a\tb"], [2, None])
    assert shell(url, "-e", "SELECT 1;").stdout == "ID\tNAME\n1\ta\tb\n2\tnull\n"
    service.answers["SELECT 1;"] = pull([1, "ü"], [2, None])
    result = shell(url, "-o", "json", stdin="SELECT 1;")
    assert [json.loads(line) for line in result.stdout.splitlines()] == [
        {"ID": 1, "NAME": "ü"},
        {"ID": 2, "NAME": None},
    ]


def test_numbers_stay_as_the_server_sends_them(url: str, service: FakeService) -> None:
    """As floats they would lose digits, and zeros at their end."""
    long = PythonDecimal("123456789012345678901234567890.12")
    types = (Decimal(38, 2), Decimal(10, 2), DOUBLE, DOUBLE, BIGINT, Array(Decimal(10, 2)))
    columns = [(f"C{index}", sql_type) for index, sql_type in enumerate(types)]
    row = [long, PythonDecimal("12.50"), 1e30, 0.1, 2**63 - 1, [PythonDecimal("1.10"), None]]
    text = ["123456789012345678901234567890.12", "12.50", "1e30", "0.1", "9223372036854775807", "[1.10, null]"]
    service.answers["SELECT 1;"] = pull(row, columns=columns)
    assert shell(url, "-e", "SELECT 1;").stdout.splitlines()[1] == "\t".join(text)
    service.answers["SELECT 1;"] = pull(row, columns=columns)
    shown = shell(url, "-o", "json", "-e", "SELECT 1;").stdout
    assert shown == "{" + ", ".join(f'"C{index}": {each}' for index, each in enumerate(text)) + "}\n"


def test_print_shows_lines(url: str, service: FakeService) -> None:
    queue = RowQueue(limit=1)
    queue.put([Row(["key: 1, value: x"])])
    service.answers["PRINT t LIMIT 1;"] = push(queue, kind="PRINT", columns=(("LINE", STRING),))
    assert shell(url, "-e", "PRINT t LIMIT 1;").stdout == "key: 1, value: x\n"


def test_a_query_that_breaks_is_told(url: str, service: FakeService) -> None:
    queue = RowQueue()
    queue.end(SqlError("It broke."))
    service.answers["SELECT 1;"] = push(queue)
    result = shell(url, "-e", "SELECT 1;")
    assert (result.exit_code, result.stderr) == (1, "It broke.\n")


def test_scripts_and_spool(url: str, service: FakeService, tmp_path: Path) -> None:
    service.answers["SHOW STREAMS;"] = [STREAMS]
    inner = tmp_path / "inner.sql"
    inner.write_text("SHOW STREAMS;")
    outer = tmp_path / "outer.sql"
    outer.write_text(f"SPOOL '{tmp_path}/log'; RUN SCRIPT '{inner}'; SPOOL OFF; SHOW STREAMS;")
    result = shell(url, "-f", str(outer))
    assert result.exit_code == 0, result.output
    assert (tmp_path / "log").read_text() * 2 == result.stdout
    inner.write_text(f"RUN SCRIPT '{inner}';")
    assert "at most 10 deep" in shell(url, "-f", str(inner)).stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SET 'nope' = '1';", "nope is not a property that can be set: SHOW PROPERTIES; lists those there are."),
        ("SET 'auto.offset.reset' = 'middle';", "Invalid value middle for property auto.offset.reset: choose."),
        ("OUTPUT XML;", "XML is no form of output: TABLE and JSON are."),
        ("SET x;", "line 1:5: Unexpected 'x'. Expected a string in single quotes."),
        ("UNSET 'x';", "x is not set in this session."),
        ("UNDEFINE x;", "The variable x is not defined."),
        ("SHOW ${x};", "line 1:6: The variable ${x} is not defined. Set it with: DEFINE x = 'value';"),
        ("RUN SCRIPT '/nowhere';", "/nowhere cannot be read: no such file or directory."),
        ("SPOOL '/nowhere/x';", "/nowhere/x cannot be written: no such file or directory."),
    ],
)
def test_errors_of_the_shell_itself(url: str, service: FakeService, text: str, message: str) -> None:
    refusal = SqlError("Invalid value middle for property auto.offset.reset: choose.")
    service.answers["SET 'auto.offset.reset'='middle';"] = refusal
    result = shell(url, "-e", text)
    assert (result.exit_code, result.stderr) == (1, f"{message}\n")


def test_variables_and_help_need_no_server_statement(url: str, service: FakeService) -> None:
    result = shell(url, "-d", "b=2", "-e", "DEFINE a = '1'; SHOW VARIABLES; HELP; EXIT; NEVER;")
    assert result.exit_code == 0
    assert [line.split() for line in result.stdout.splitlines()[:3]] == [["variable", "value"], ["a", "1"], ["b", "2"]]
    assert "SHOW STREAMS" in result.stdout
    assert service.asked == []


def test_commands_about_the_shell_and_its_server(url: str, service: FakeService) -> None:
    service.answers |= {"SHOW STREAMS;": [STREAMS], "SERVER X;": SqlError("Unexpected 'SERVER'.")}
    script = "SERVER; VERSION; OUTPUT; OUTPUT JSON; SHOW STREAMS; output tabular; CLEAR; HISTORY; SERVER X;"
    result = shell(url, "-e", script)
    server, version, form, streams = result.stdout.splitlines()
    assert server == f"{url}: service test_, running."
    assert version == f"Shell: Penstock {penstock.__version__}. Server: {penstock.__version__}."
    assert form == "Output is table; OUTPUT JSON; and OUTPUT TABLE; change it."
    assert json.loads(streams) == STREAMS
    assert result.stderr == "Unexpected 'SERVER'.\n"


def test_a_server_that_is_not_there() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        result = shell(f"http://127.0.0.1:{port}", "-e", "SHOW STREAMS;")
    assert result.exit_code == 1
    assert result.stderr.startswith(
        f"No SQL server answers at http://127.0.0.1:{port}: connection refused. Start one with"
    )
    assert "is no address" in shell("ftp://x", "-e", "X;").stderr


def read_request(connection: socket.socket) -> None:
    """All of it: a connection that is closed over unread bytes is reset, and what was answered may be lost."""
    with connection.makefile("rb") as request:
        head = list(iter(request.readline, b"\r\n"))
        sizes = [int(line.split(b":")[1]) for line in head if line.lower().startswith(b"content-length:")]
        request.read(sum(sizes))


def test_a_server_that_goes_away_during_a_query() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:

        def answer() -> None:
            accepted, _ = other.accept()
            with accepted:
                read_request(accepted)
                head = b'{"columnNames": ["A"], "columnTypes": ["INTEGER"]}\n[1]\n'
                chunk = b"%x\r\n%s\r\n" % (len(head), head)
                accepted.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk)

        thread = threading.Thread(target=answer)
        thread.start()
        url = f"http://127.0.0.1:{other.getsockname()[1]}"
        result = shell(url, "-e", "SELECT 1;")
        thread.join()
    assert result.exit_code == 1
    assert result.stdout == "A\n1\n"
    assert result.stderr == f"The connection to {url} broke: the server ended it.\n"


@pytest.mark.parametrize("words", [b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", b"SSH-2.0-Server\r\n"])
def test_what_answers_is_no_sql_server(words: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:

        def answer() -> None:
            accepted, _ = other.accept()
            with accepted:
                read_request(accepted)
                accepted.sendall(words)

        thread = threading.Thread(target=answer)
        thread.start()
        result = shell(f"http://127.0.0.1:{other.getsockname()[1]}", "-e", "X;")
        thread.join()
    assert "is no SQL server: check the address." in result.stderr


@pytest.mark.parametrize(
    ("text", "finished"),
    [
        ("", True),
        ("SELECT", False),
        ("SELECT ';", False),
        ("SELECT 1; SELECT", False),
        ("SELECT 1;", True),
        ("SELECT 1; -- done", True),
        ("exit", True),
        ("help", True),
        ("version", True),
    ],
)
def test_enter_runs_what_is_finished(text: str, finished: bool) -> None:
    assert is_finished(text) is finished


def test_completion_knows_words_functions_and_names(url: str, service: FakeService) -> None:
    service.answers |= {
        "SHOW FUNCTIONS;": [{"functions": [{"name": "UCASE"}]}],
        "SHOW STREAMS;": [{"streams": [{"name": "USERS"}, {"name": "uMixed"}]}],
        "SHOW TABLES;": [{"tables": []}],
        "SHOW QUERIES;": [{"queries": [{"id": "CSAS_U_1"}]}],
    }
    completer = SqlCompleter(Names(RestClient(url)))

    def completed(text: str) -> list[str]:
        return [each.text for each in completer.get_completions(Document(text), CompleteEvent())]

    assert completed("SELECT U") == ["USERS", "UCASE(", "UNDEFINE", "UNSET"]
    assert completed("select us") == ["users"]
    assert completed("TERMINATE CSA") == ["CSAS_U_1"]
    assert completed("SELECT 'us") == []


class Terminal:
    """The command on a pseudo terminal."""

    def __init__(self, url: str, home: Path) -> None:
        self._main, child = pty.openpty()
        termios.tcsetwinsize(child, (24, 100))
        environ = {
            **os.environ,
            "TERM": "xterm",
            "XDG_STATE_HOME": str(home),
            "PROMPT_TOOLKIT_NO_CPR": "1",
            "NO_COLOR": "1",
        }
        program = [sys.executable, "-c", "from penstock.cli.main import main; main()", "sql", url]
        self.process = subprocess.Popen(
            program,
            stdin=child,
            stdout=child,
            stderr=child,
            env=environ,
            start_new_session=True,
            preexec_fn=_own_terminal,
        )
        os.close(child)
        self.text = ""

    def send(self, text: str) -> None:
        os.write(self._main, text.encode())

    def expect(self, wanted: str, timeout_s: float = 30) -> None:
        """Reads until the text has come, after what was expected before."""
        end = time.monotonic() + timeout_s
        while wanted not in self.text:
            ready, _, _ = select.select([self._main], [], [], max(0, end - time.monotonic()))
            assert ready, f"{wanted!r} did not come, but {self.text!r}"
            self.text += os.read(self._main, 65536).decode(errors="replace")
        self.text = self.text.partition(wanted)[2]

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._main)


def _own_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def test_at_a_terminal(url: str, service: FakeService, tmp_path: Path) -> None:
    queue = RowQueue()
    query = push(queue)
    service.answers |= {
        "SHOW STREAMS;": [STREAMS],
        "SELECT *\nFROM s EMIT CHANGES;": query,
        "BAD;": SqlError("It is bad."),
        "INSERT INTO s VALUES (1);": [],
    }
    terminal = Terminal(url, tmp_path)
    try:
        terminal.expect("Connected to")
        terminal.expect("sql>")
        terminal.send("SHOW STREAMS;\r")
        terminal.expect("KAFKA")
        terminal.send("BAD;\r")
        terminal.expect("It is bad.")
        terminal.send("INSERT INTO s VALUES (1);\r")
        terminal.expect("The row is written.")
        terminal.send("HISTORY;\r")
        terminal.expect("SHOW STREAMS;\r\nBAD;\r\nINSERT INTO s VALUES (1);\r\nHISTORY;\r\n")
        terminal.send(f"SPOOL '{tmp_path}/spool';\r")
        terminal.expect("sql>")
        terminal.send("SELECT *\r")
        terminal.expect("...>")
        terminal.send("FROM s EMIT CHANGES;\r")
        terminal.expect("0 rows; Ctrl-C ends the query")
        queue.put([Row([41, "first"])])
        terminal.expect("first")
        terminal.expect("1 row; Ctrl-C ends the query")
        terminal.send("\x03")
        terminal.expect("ended by Ctrl-C")
        assert query.closed.wait(10)
        terminal.expect("sql>")
        terminal.send("SPOOL OFF;\r")
        terminal.expect("sql>")
        terminal.send("exit\r")
        assert terminal.process.wait(20) == 0
    finally:
        terminal.close()
    assert "SHOW STREAMS;" in (tmp_path / "penstock" / "sql_history").read_text()
    # What was drawn in its place is in the file row by row.
    assert (tmp_path / "spool").read_text() == "ID\tNAME\n41\tfirst\n"


def test_tables_of_every_kind_of_answer() -> None:
    from penstock.sql.shell.output import TextOutput

    integer = {"type": "INTEGER", "fields": None, "memberSchema": None}
    struct = {"type": "STRUCT", "fields": [{"name": "A", "schema": integer}], "memberSchema": None}
    source: dict[str, Any] = {
        "name": "T", "windowType": "TUMBLING", "type": "TABLE", "topic": "t", "keyFormat": "KAFKA",
        "valueFormat": "JSON",
        "fields": [{"name": "K", "schema": integer, "type": "KEY"}, {"name": "V", "schema": struct}],
        "extended": True, "partitions": 3, "replication": 1, "timestamp": "", "statement": "CREATE TABLE",
        "statistics": "", "errorStats": "", "readQueries": [{"id": "Q_1"}], "writeQueries": [],
    }  # fmt: skip
    query = {
        "id": "Q_1", "statementText": "SELECT", "windowType": None, "state": "RUNNING", "sources": ["S"],
        "sinks": ["T"], "queryErrors": [],
        "fields": source["fields"], "executionPlan": "Project\n  Source", "topology": "== Spark ==",
    }  # fmt: skip
    entities = [
        {"@type": "sourceDescription", "sourceDescription": source},
        {"@type": "queryDescription", "queryDescription": query},
        {"@type": "kafka_topics", "topics": [{"name": "a", "replicaInfo": [1, 1]}]},
        {"@type": "queries", "queries": []},
        {"@type": "queries", "queries": [
            {"id": "CSAS_T_1", "queryType": "PERSISTENT", "state": "RUNNING", "sinks": ["T"], "sinkKafkaTopics": ["t"],
             "queryString": "CREATE STREAM t AS\n  SELECT * FROM s;"},
            {"id": "transient_S_2", "queryType": "PUSH", "state": "RUNNING", "sinks": [], "sinkKafkaTopics": [],
             "queryString": "SELECT * FROM s EMIT CHANGES;"}]},
        {"@type": "type_list", "types": {"ADDRESS": struct}},
        {"@type": "describe_function", "name": "F", "description": "does it", "functions": [
            {"arguments": [{"name": "x", "type": "INT", "isVariadic": True}], "returnType": "INT"}]},
        {"@type": "something_new", "answer": 42},
    ]  # fmt: skip
    out = io.StringIO()
    for entity in entities:
        TextOutput(out).entity(entity)
    shown = out.getvalue()
    for text in (
        "T: table of topic t, key KAFKA, value JSON, TUMBLING windows", "INTEGER (primary key) (window type: TUMBLING)",
        "CSAS_T_1       PERSISTENT  RUNNING  T       t      CREATE STREAM t AS ...\n",
        "transient_S_2  PUSH        RUNNING                 SELECT * FROM s EMIT CHANGES;", "STRUCT<A INTEGER>",
        "read by", "Project\n  Source", "== Spark ==", "No query runs.", "F(x INT...)", "F: does it", "42",
    ):  # fmt: skip
        assert text in shown
