"""Joins of streams within a time, native and eager, and what stands on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.sql.operators.bench import Bench, row

Values = Callable[..., list[tuple[Any, ...]]]

LEFT_AND_RIGHT = (
    {"L": [row(1000, K="a", V=1), row(1000, K="n", V=2)], "R": [row(2000, K="a", W=1), row(2001, K="a", W=2)]},
    {"L": [row(2000, K="b", V=3)], "R": [row(1700, K="x", W=3), row(0, K="n", W=4)]},
    {"L": [row(100_000, K="z", V=4), row(100_000, K=None, V=5)], "R": [row(100_000, K="y", W=5), row(100_000, W=6)]},
    {"L": [row(100_001, K="z", V=6)], "R": [row(100_001, K="y", W=7)]},
)


def test_inner_pairs_lie_within_the_bounds(bench: Bench, values: Values) -> None:
    results = bench.run(
        "CREATE STREAM o AS SELECT l.k, v, w FROM l JOIN r WITHIN 1 SECOND ON l.k = r.k", *LEFT_AND_RIGHT
    )
    assert values(results[0], "L_K", "V", "W", "ROWTIME") == [("a", 1, 1, 2000)]
    assert values(results[1], "L_K", "V", "W", "ROWTIME") == [("n", 2, 4, 1000)]
    assert not results[2]
    assert not results[3]


def test_bounds_before_and_after_differ(bench: Bench, values: Values) -> None:
    [rows] = bench.run(
        "CREATE STREAM o AS SELECT l.k, v, w FROM l JOIN r WITHIN (1 SECOND, 2 SECONDS) ON l.k = r.k",
        {
            "L": [row(5000, K="a", V=1)],
            "R": [row(3999, K="a", W=1), row(4000, K="a", W=2), row(7000, K="a", W=3), row(7001, K="a", W=4)],
        },
    )
    assert values(rows, "V", "W") == [(1, 2), (1, 3)]


def test_outer_rows_with_grace_wait_until_their_window_has_closed(bench: Bench, values: Values) -> None:
    results = bench.run_all(
        "CREATE STREAM o AS SELECT ROWKEY, v, w FROM l FULL JOIN r WITHIN 1 SECOND GRACE PERIOD 5 SECONDS ON l.k = r.k",
        *LEFT_AND_RIGHT,
    )
    early = [each for batch in results[:2] for each in batch]
    assert values(early, "ROWKEY", "V", "W") == [("a", 1, 1), ("n", 2, 4)]
    late = [each for batch in results[2:] for each in batch]
    assert values(late, "ROWKEY", "V", "W", "ROWTIME") == [
        ("a", None, 2, 2001),
        ("b", 3, None, 2000),
        ("x", None, 3, 1700),
        (None, 5, None, 100_000),
        (None, None, 6, 100_000),
    ]


def test_outer_rows_without_grace_go_out_at_once(bench: Bench, values: Values) -> None:
    results = bench.run(
        "CREATE STREAM o AS SELECT ROWKEY, v, w FROM l FULL JOIN r WITHIN 1 SECOND ON l.k = r.k", *LEFT_AND_RIGHT
    )
    names = ("ROWKEY", "V", "W", "ROWTIME")
    assert values(results[0], *names) == [
        ("a", 1, 1, 2000),
        ("a", 1, None, 1000),
        ("a", None, 2, 2001),
        ("n", 2, None, 1000),
    ]
    assert values(results[1], *names) == [("b", 3, None, 2000), ("n", 2, 4, 1000), ("x", None, 3, 1700)]
    assert (None, 5, None, 100_000) in values(results[2], *names), "a null key finds nobody"
    assert (None, None, 6, 100_000) in values(results[2], *names)
    assert values(results[3], *names) == [("y", None, 7, 100_001), ("z", 6, None, 100_001)]


def test_left_and_right_joins_keep_one_side(bench: Bench, values: Values) -> None:
    results = bench.run(
        "CREATE STREAM o AS SELECT l.k, v, w FROM l LEFT JOIN r WITHIN 1 SECOND ON l.k = r.k", *LEFT_AND_RIGHT
    )
    assert values(results[0], "L_K", "V", "W") == [("a", 1, 1), ("a", 1, None), ("n", 2, None)]
    assert values(results[1], "L_K", "V", "W") == [("b", 3, None), ("n", 2, 4)]
    results = bench.run(
        "CREATE STREAM o AS SELECT r.k, v, w FROM l RIGHT JOIN r WITHIN 1 SECOND ON l.k = r.k", *LEFT_AND_RIGHT
    )
    assert values(results[0], "R_K", "V", "W") == [("a", 1, 1), ("a", None, 2)]
    assert values(results[1], "R_K", "V", "W") == [("n", 2, 4), ("x", None, 3)]


def test_three_streams_and_a_window_on_top(bench: Bench, values: Values) -> None:
    batches = (
        {"L": [row(1000, K="a", V=1)], "R": [row(1500, K="a", W=10)]},
        {"S": [row(1700, K="a", V=100), row(9000, K="a", V=200)]},
    )
    joined = "FROM l LEFT JOIN r WITHIN 1 SECOND ON l.k = r.k JOIN s WITHIN 2 SECONDS ON l.k = s.k"
    results = bench.run(f"CREATE STREAM o AS SELECT l.k, l.v, w, s.v AS sv {joined}", *batches)
    assert not results[0]
    assert values(results[1], "L_K", "L_V", "W", "SV", "ROWTIME") == [
        ("a", 1, 10, 100, 1700),
        ("a", 1, None, 100, 1700),
    ]
    results = bench.run(
        f"CREATE TABLE o AS SELECT l.k, COUNT(*) AS c, SUM(w) AS s, LATEST_BY_OFFSET(s.v) AS latest {joined}"
        " WINDOW TUMBLING (SIZE 1 SECOND) GROUP BY l.k",
        *batches,
    )
    assert values(results[1], "L_K", "WINDOWSTART", "C", "S", "LATEST") == [("a", 1000, 2, 10, 100)]


def test_a_final_window_over_a_join_closes_by_its_own_grace(bench: Bench, values: Values) -> None:
    results = bench.run_all(
        "CREATE TABLE o AS SELECT l.k, COUNT(*) AS c FROM l JOIN r WITHIN 1 SECOND ON l.k = r.k"
        " WINDOW TUMBLING (SIZE 1 SECOND) GROUP BY l.k EMIT FINAL",
        {"L": [row(1000, K="a", V=1)], "R": [row(1500, K="a", W=10), row(1600, K="a", W=10)]},
        {"L": [row(10_000, K="z", V=1)], "R": [row(10_000, K="y", W=10)]},
        {"L": [row(10_001, K="z", V=1)], "R": [row(10_001, K="y", W=10)]},
    )
    rows = [each for batch in results for each in batch]
    assert values(rows, "L_K", "WINDOWSTART", "C") == [("a", 1000, 2)]
