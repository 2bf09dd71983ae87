"""Tables with tables on their primary keys, and streams with tables by look-up."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from penstock.sql.spark.lookup import answer
from penstock.sql.stores.table_store import Change, TableStore
from tests.sql.operators.bench import Bench, gone, row

Values = Callable[..., list[tuple[Any, ...]]]

CHANGES = (
    {"T": [row(1, K="a", V=1)], "U": [row(2, K="b", W=1)]},
    {"T": [row(5, K="b", V=6), row(3, K="b", V=7)]},
    {"T": [gone(6, K="a"), gone(7, K="b")]},
)
"""The second batch has a row whose time goes back: the place in the topic counts."""


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("", [[("a", None), ("b", None)], [("b", (7, 1))], [("a", None), ("b", None)]]),
        ("LEFT", [[("a", (1, None)), ("b", None)], [("b", (7, 1))], [("a", None), ("b", None)]]),
        ("RIGHT", [[("a", None), ("b", (None, 1))], [("b", (7, 1))], [("a", None), ("b", (None, 1))]]),
    ],
)
def test_a_join_of_tables_changes_with_either_side(bench: Bench, kind: str, expected: list[Any]) -> None:
    results = bench.run(f"CREATE TABLE o AS SELECT t.k, v, w FROM t {kind} JOIN u ON t.k = u.k", *CHANGES)
    shown = [
        sorted(((each["T_K"], None if each["__DELETED"] else (each["V"], each["W"])) for each in rows), key=repr)
        for rows in results
    ]
    assert shown == [sorted(rows, key=repr) for rows in expected]
    assert {each["ROWTIME"] for each in results[1]} == {3}


def test_a_side_shows_only_where_its_own_join_has_a_row(bench: Bench, values: Values) -> None:
    """Three tables; `u` belongs to `t`, so without `t` there is no `u`, though `x` makes a row."""
    results = bench.run(
        "CREATE TABLE o AS SELECT ROWKEY, t.k AS tk, v, w, z FROM t LEFT JOIN u ON t.k = u.k FULL JOIN x ON t.k = x.k",
        *CHANGES,
        {"X": [row(9, K="b", Z=2)]},
        {"X": [gone(10, K="b")]},
    )
    names = ("ROWKEY", "TK", "V", "W", "Z", "__DELETED")
    assert values(results[1], *names) == [("b", "b", 7, 1, None, False)]
    assert values(results[3], *names) == [("b", None, None, None, 2, False)]
    assert [(each["ROWKEY"], each["__DELETED"]) for each in results[4]] == [("b", True)]


def test_a_filter_over_a_join_of_tables_deletes(bench: Bench, values: Values) -> None:
    results = bench.run(
        "CREATE TABLE o AS SELECT t.k, v + w AS total FROM t JOIN u ON t.k = u.k WHERE v > 5",
        {"T": [row(1, K="a", V=9)], "U": [row(2, K="a", W=1)]},
        {"T": [row(3, K="a", V=2)]},
    )
    assert values(results[0], "T_K", "TOTAL", "__DELETED") == [("a", 10, False)]
    assert [(each["T_K"], each["__DELETED"]) for each in results[1]] == [("a", True)]


def _store(bench: Bench, folder: Path, name: str, rows: list[tuple[Any, ...]]) -> TableStore:
    made = TableStore(folder / f"{name}.db", bench.catalog.sources[name].node(), "topic-id")
    made.apply([Change((row[0],), None, row, 1, 0, 0) for row in rows], {0: len(rows)})
    return made


@pytest.fixture
def store(bench: Bench, tmp_path: Path) -> Iterator[TableStore]:
    with closing(_store(bench, tmp_path, "T", [("a", 1, "x"), ("b", 2, None)])) as made:
        yield made


def _rows() -> dict[str, list[dict[str, Any]]]:
    return {"S": [row(5, K="b", V=1), row(4, K="none", V=2), row(3, K=None, V=3), row(2, K="a", V=4)]}


def test_a_stream_finds_the_rows_of_a_table(bench: Bench, store: TableStore) -> None:
    bench.stores["T"] = str(store.path)
    [rows] = bench.run(
        "CREATE STREAM o AS SELECT s.k, s.v AS sv, t.v AS tv, g FROM s LEFT JOIN t ON s.k = t.k", _rows()
    )
    assert [(each["S_K"], each["SV"], each["TV"], each["G"], each["ROWTIME"]) for each in rows] == [
        ("b", 1, 2, None, 5),
        ("none", 2, None, None, 4),
        (None, 3, None, None, 3),
        ("a", 4, 1, "x", 2),
    ]
    [rows] = bench.run("CREATE STREAM o AS SELECT s.k, t.v AS tv FROM s JOIN t ON s.k = t.k WHERE t.v > 1", _rows())
    assert [(each["S_K"], each["TV"]) for each in rows] == [("b", 2)]
    assert [table.name for table in bench.build("SELECT * FROM s JOIN t ON s.k = t.k EMIT CHANGES", [{}]).tables] == [
        "T"
    ]


def test_a_stream_finds_rows_of_two_tables(bench: Bench, store: TableStore, tmp_path: Path) -> None:
    with closing(_store(bench, tmp_path, "U", [("x", 9)])) as other:
        bench.stores |= {"T": str(store.path), "U": str(other.path)}
        [rows] = bench.run(
            "CREATE STREAM o AS SELECT t.g, s.k AS sk, w FROM s JOIN t ON s.k = t.k LEFT JOIN u ON t.g = u.k", _rows()
        )
    assert [(each["G"], each["SK"], each["W"]) for each in rows] == [(None, "b", None), ("x", "a", 9)]


def test_what_was_looked_up_can_be_aggregated_in_windows(bench: Bench, store: TableStore, values: Values) -> None:
    bench.stores["T"] = str(store.path)
    [rows] = bench.run(
        "CREATE TABLE o AS SELECT g, COUNT(*) AS c, SUM(s.v) AS total FROM s JOIN t ON s.k = t.k"
        " WINDOW TUMBLING (SIZE 1 SECOND) GROUP BY g",
        _rows(),
    )
    assert values(rows, "G", "C", "TOTAL", "WINDOWSTART") == [("x", 1, 4, 0)]


def test_a_worker_elsewhere_asks_the_server(bench: Bench, store: TableStore) -> None:
    class Answering(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = answer(self.rfile.read(int(self.headers["Content-Length"])), store)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        bench.stores["T"] = f"http://127.0.0.1:{server.server_port}/rows"
        [rows] = bench.run(
            "CREATE STREAM o AS SELECT s.k, t.v AS tv, t.ROWTIME AS at FROM s LEFT JOIN t ON s.k = t.k", _rows()
        )
        server.shutdown()
        thread.join()
    assert [(each["S_K"], each["TV"], each["AT"]) for each in rows] == [
        ("b", 2, 1),
        ("none", None, None),
        (None, None, None),
        ("a", 1, 1),
    ]
