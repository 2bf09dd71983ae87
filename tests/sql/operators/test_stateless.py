"""Filters, projections and table functions."""

from __future__ import annotations

import datetime
from decimal import Decimal

from tests.sql.operators.bench import Bench, gone, row


def test_a_stream_keeps_matching_rows_in_their_order(bench: Bench) -> None:
    [first, second] = bench.run(
        "CREATE STREAM o AS SELECT k, v * 2 AS d, CASE WHEN v > 2 THEN 'big' ELSE 'small' END AS size FROM s"
        " WHERE v > 1",
        {"S": [row(5, K="a", V=3), row(4, K="a", V=1), row(3, K="a", V=2), row(2, K="a", V=None)]},
        {"S": [row(1, K=None, V=9)]},
    )
    assert first == [
        {"K": "a", "D": 6, "SIZE": "big", "ROWTIME": 5},
        {"K": "a", "D": 4, "SIZE": "small", "ROWTIME": 3},
    ]
    assert second == [{"K": None, "D": 18, "SIZE": "big", "ROWTIME": 1}]


def test_every_row_of_a_table_that_does_not_match_is_a_deletion(bench: Bench) -> None:
    [first, second] = bench.run(
        "CREATE TABLE o AS SELECT k, v + 1 AS v FROM t WHERE v > 1",
        {"T": [row(1, K="a", V=1), row(2, K="b", V=2)]},
        {"T": [gone(3, K="b"), row(4, K="a", V=None), row(5, K="a", V=5)]},
    )
    assert [(each["K"], each["V"] if not each["__DELETED"] else None) for each in first] == [("a", None), ("b", 3)]
    assert [(each["K"], each["__DELETED"]) for each in second] == [("b", True), ("a", True), ("a", False)]
    assert second[-1] == {"K": "a", "V": 6, "ROWTIME": 5, "__DELETED": False}


def test_table_functions_are_zipped_to_the_longest(bench: Bench) -> None:
    [rows] = bench.run(
        "CREATE STREAM o AS SELECT k, EXPLODE(a) AS e, EXPLODE(ARRAY[10, 20]) AS f FROM s",
        {"S": [row(1, K="a", A=[1, 2, 3]), row(2, K="b", A=[]), row(3, K="c", A=None)]},
    )
    assert [(each["K"], each["E"], each["F"]) for each in rows] == [
        ("a", 1, 10),
        ("a", 2, 20),
        ("a", 3, None),
        ("b", None, 10),
        ("b", None, 20),
        ("c", None, 10),
        ("c", None, 20),
    ]


def test_one_table_function_gives_no_row_for_an_empty_list(bench: Bench) -> None:
    [rows] = bench.run(
        "CREATE STREAM o AS SELECT k, EXPLODE(a) + 1 AS e FROM s",
        {"S": [row(1, K="a", A=[1, None]), row(2, K="b", A=[]), row(3, K="c", A=None)]},
    )
    assert [(each["K"], each["E"]) for each in rows] == [("a", 2), ("a", None)]


def test_partition_by_makes_a_new_key_and_values_keep_their_types(bench: Bench) -> None:
    at = datetime.datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=datetime.UTC)
    [rows] = bench.run(
        "CREATE STREAM o AS SELECT v, AS_VALUE(v) AS copy, k, m, a[1] AS first, d, at FROM s PARTITION BY v",
        {"S": [row(1, K="a", V=7, A=[5], M={"x": 1}, D=Decimal("1.50"), AT=at)]},
    )
    assert rows == [
        {
            "V": 7,
            "COPY": 7,
            "K": "a",
            "M": [("x", 1)],
            "FIRST": 5,
            "D": Decimal("1.50"),
            "AT": at,
            "ROWTIME": 1,
            "__DELETED": False,
        }
    ]


def test_a_record_without_a_value_goes_through_a_projection_and_nothing_else(bench: Bench) -> None:
    given = {"S": [row(1, K="a", V=1), gone(2, K="b"), row(3, K="c", V=None)]}
    [copied] = bench.run("CREATE STREAM o AS SELECT k, v FROM s", given)
    assert [(each["K"], each["V"], each["__DELETED"]) for each in copied] == [
        ("a", 1, False),
        ("b", None, True),
        ("c", None, False),
    ]
    assert "__DELETED" not in bench.build("CREATE STREAM o AS SELECT k, v FROM s WHERE v = 1").frame.columns


def test_pseudo_columns_can_be_selected_and_compared(bench: Bench) -> None:
    [rows] = bench.run(
        "CREATE STREAM o AS SELECT k, ROWTIME AS t, ROWPARTITION AS p, ROWOFFSET AS o FROM s WHERE ROWOFFSET > 0",
        {"S": [row(8, K="a"), row(9, K="b")]},
    )
    assert rows == [{"K": "b", "T": 9, "P": 0, "O": 1, "ROWTIME": 9}]
