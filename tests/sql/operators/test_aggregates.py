"""GROUP BY without a window, in windows, and over tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from penstock.sql.errors import SqlError
from tests.sql.operators.bench import Bench, gone, row

Values = Callable[..., list[tuple[Any, ...]]]


def test_groups_change_with_each_batch_and_rows_without_a_key_are_left_out(bench: Bench, values: Values) -> None:
    [first, second] = bench.run(
        "CREATE TABLE o AS SELECT k, COUNT(*) AS c, SUM(v) AS s, LATEST_BY_OFFSET(v) AS l, EARLIEST_BY_OFFSET(v) AS e,"
        " COLLECT_LIST(v) AS list, TOPK(v, 2) AS top, COUNT_DISTINCT(v) AS n, AVG(v) AS a FROM s GROUP BY k",
        {"S": [row(1, K="a", V=1), row(7, K="b", V=2), row(3, K=None, V=2), row(5, K="a", V=None)]},
        {"S": [row(9, K="a", V=5), row(8, K="a", V=1)]},
    )
    names = ("K", "C", "S", "L", "E", "LIST", "TOP", "N", "A", "ROWTIME", "__DELETED")
    assert values(first, *names) == [
        ("a", 2, 1, 1, 1, [1, None], [1], 1, 1.0, 5, False),
        ("b", 1, 2, 2, 2, [2], [2], 1, 2.0, 7, False),
    ]
    assert values(second, *names) == [("a", 4, 7, 5, 1, [1, None, 1, 5], [5, 1], 2, 7 / 3, 9, False)]


def test_a_row_with_a_null_in_any_part_of_the_key_belongs_to_no_group(bench: Bench, values: Values) -> None:
    [rows] = bench.run(
        "CREATE TABLE o AS SELECT k, v, COUNT(*) AS c FROM s GROUP BY k, v",
        {"S": [row(1, K="a", V=1), row(2, K="a", V=None), row(3, K=None, V=1), row(4, K="a", V=1)]},
    )
    assert values(rows, "K", "V", "C") == [("a", 1, 2)]


def test_having_deletes_from_a_table_and_drops_from_a_stream(bench: Bench, values: Values) -> None:
    batches = [{"S": [row(1, K="a"), row(2, K="b"), row(3, K="b")]}, {"S": [row(4, K="a"), row(5, K="b")]}]
    [first, second] = bench.run(
        "CREATE TABLE o AS SELECT k, COUNT(*) AS c FROM s GROUP BY k HAVING COUNT(*) = 2", *batches
    )
    assert values(first, "K", "C", "__DELETED") == [("a", 1, True), ("b", 2, False)]
    assert values(second, "K", "C", "__DELETED") == [("a", 2, False), ("b", 3, True)]
    [first, second] = bench.run(
        "CREATE STREAM o AS SELECT k, COUNT(*) AS c FROM s GROUP BY k HAVING COUNT(*) = 2", *batches
    )
    assert values(first, "K", "C") == [("b", 2)]
    assert values(second, "K", "C") == [("a", 2)]
    assert set(first[0]) == {"K", "C", "ROWTIME"}


def test_tumbling_windows_end_exclusive_and_close_after_their_grace(bench: Bench, values: Values) -> None:
    results = bench.run(
        "CREATE TABLE o AS SELECT k, COUNT(*) AS c FROM s WINDOW TUMBLING (SIZE 5 SECONDS, GRACE PERIOD 1 SECOND)"
        " GROUP BY k",
        {"S": [row(0, K="a"), row(4999, K="a"), row(5000, K="a")]},
        {"S": [row(5999, K="z")]},
        {"S": [row(4000, K="a"), row(6000, K="z")]},
        {"S": [row(4000, K="z")]},
        {"S": [row(4000, K="a")]},
    )
    names = ("K", "WINDOWSTART", "WINDOWEND", "C", "ROWTIME")
    assert values(results[0], *names) == [("a", 0, 5000, 2, 4999), ("a", 5000, 10000, 1, 5000)]
    assert values(results[1], *names) == [("z", 5000, 10000, 1, 5999)]
    assert values(results[2], *names) == [("a", 0, 5000, 3, 4999), ("z", 5000, 10000, 2, 6000)]
    assert results[4] == [], "the watermark reached 5000: the window is closed"


def test_final_results_come_once_when_the_window_has_closed(bench: Bench, values: Values) -> None:
    results = bench.run_all(
        "CREATE TABLE o AS SELECT k, COUNT(*) AS c FROM s WINDOW TUMBLING (SIZE 5 SECONDS, GRACE PERIOD 1 SECOND)"
        " GROUP BY k HAVING COUNT(*) > 1 EMIT FINAL",
        {"S": [row(1, K="a"), row(2, K="a"), row(3, K="b")]},
        {"S": [row(5999, K="c")]},
        {"S": [row(6000, K="c")]},
    )
    names = ("K", "WINDOWSTART", "WINDOWEND", "C", "ROWTIME", "__DELETED")
    assert [values(each, *names) for each in results if each] == [[("a", 0, 5000, 2, 2, False)]]
    assert not results[0]
    assert not results[1]


def test_hopping_windows_overlap_and_begin_at_the_epoch(bench: Bench, values: Values) -> None:
    [rows] = bench.run(
        "CREATE TABLE o AS SELECT k, COUNT(*) AS c FROM s WINDOW HOPPING (SIZE 10 SECONDS, ADVANCE BY 5 SECONDS)"
        " GROUP BY k",
        {"S": [row(1, K="a"), row(6000, K="a")]},
    )
    assert values(rows, "K", "WINDOWSTART", "WINDOWEND", "C") == [("a", 0, 10000, 2), ("a", 5000, 15000, 1)]


def test_final_sessions_end_with_their_last_row(bench: Bench, values: Values) -> None:
    results = bench.run_all(
        "CREATE TABLE o AS SELECT k, COUNT(*) AS c FROM s WINDOW SESSION (5 SECONDS, GRACE PERIOD 0 SECONDS)"
        " GROUP BY k EMIT FINAL",
        {"S": [row(1, K="a"), row(5001, K="a"), row(10002, K="a")]},
        {"S": [row(60000, K="b")]},
        {"S": [row(60001, K="b")]},
    )
    rows = [each for batch in results for each in batch]
    assert values(rows, "K", "WINDOWSTART", "WINDOWEND", "C", "ROWTIME") == [
        ("a", 1, 5001, 2, 5001),
        ("a", 10002, 10002, 1, 10002),
    ]


def test_changing_sessions_merge_and_delete_what_they_were(bench: Bench, values: Values) -> None:
    results = bench.run(
        "CREATE TABLE o AS SELECT k, COUNT(*) AS c, SUM(v) AS s, COLLECT_LIST(v) AS list, LATEST_BY_OFFSET(v) AS l,"
        " HISTOGRAM(k) AS h FROM s WINDOW SESSION (5 SECONDS, GRACE PERIOD 0 SECONDS) GROUP BY k HAVING COUNT(*) < 9",
        {"S": [row(1, K="a", V=1), row(9000, K="a", V=2), row(9000, K=None, V=2)]},
        {"S": [row(5000, K="a", V=3)]},
        {"S": [row(70000, K="a", V=4)]},
        {"S": [row(70001, K="b", V=5)]},
        {"S": [row(9001, K="a", V=6), row(70002, K="a", V=7)]},
    )
    names = ("WINDOWSTART", "WINDOWEND", "C", "S", "L", "H", "ROWTIME", "__DELETED")
    assert values(results[0], *names) == [
        (1, 1, 1, 1, 1, [("a", 1)], 1, False),
        (9000, 9000, 1, 2, 2, [("a", 1)], 9000, False),
    ]
    assert values(results[1], *names) == [
        (1, 1, None, None, None, None, 1, True),
        (1, 9000, 3, 6, 2, [("a", 3)], 9000, False),
        (9000, 9000, None, None, None, None, 9000, True),
    ]
    assert values(results[2], *names) == [(70000, 70000, 1, 4, 4, [("a", 1)], 70000, False)]
    assert values(results[4], *names) == [
        (70000, 70000, None, None, None, None, 70000, True),
        (70000, 70002, 2, 11, 7, [("a", 2)], 70002, False),
    ], "the row of 9001 came after its session had closed"


def test_groups_of_a_table_take_back_what_its_rows_gave(bench: Bench, values: Values) -> None:
    results = bench.run(
        "CREATE TABLE o AS SELECT g, COUNT(*) AS c, SUM(v) AS s, COLLECT_LIST(v) AS list FROM t"
        " WHERE v < 100 GROUP BY g",
        {"T": [row(1, K="a", V=1, G="x"), row(2, K="b", V=2, G="x"), row(3, K="b", V=3, G="x")]},
        {"T": [row(4, K="a", V=7, G="y")]},
        {"T": [row(5, K="b", V=100, G="x"), row(6, K="c", V=1), gone(7, K="d")]},
        {"T": [gone(8, K="a"), row(9, K="a", V=8, G="y")]},
    )
    names = ("G", "C", "S", "LIST", "ROWTIME", "__DELETED")
    assert values(results[0], *names) == [("x", 2, 4, [1, 3], 3, False)]
    assert values(results[1], *names) == [("x", 1, 3, [3], 4, False), ("y", 1, 7, [7], 4, False)]
    assert values(results[2], *names) == [("x", 0, 0, [], 5, False)]
    assert values(results[3], *names) == [("y", 1, 8, [8], 9, False)]


def test_what_spark_cannot_chain_is_refused_with_a_way_out(bench: Bench) -> None:
    with pytest.raises(SqlError, match="CREATE TABLE AS SELECT"):
        bench.build("CREATE TABLE o AS SELECT t.g, COUNT(*) AS c FROM t JOIN u ON t.k = u.k GROUP BY t.g")
    with pytest.raises(SqlError, match="CREATE STREAM AS SELECT"):
        bench.build(
            "CREATE TABLE o AS SELECT l.k, COUNT(*) AS c FROM l LEFT JOIN r WITHIN 1 SECOND GRACE PERIOD 1 SECOND"
            " ON l.k = r.k GROUP BY l.k"
        )
