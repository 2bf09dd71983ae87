"""Functions that Spark does not have run as Python, wherever an expression may stand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.sql.functions.model import ScalarFunction
from penstock.sql.functions.signatures import signatures
from tests.sql.operators.bench import Bench, row

Values = Callable[..., list[tuple[Any, ...]]]


def _initial(text: str) -> str:
    return text[0]


FUNCTIONS = (
    ScalarFunction(name="INITIAL", description="", signatures=signatures("t STRING -> STRING"), python=_initial),
    ScalarFunction(
        name="COUNTED",
        description="",
        signatures=signatures("a ARRAY<INTEGER> -> MAP<STRING, INTEGER>"),
        python=lambda items: {str(each): items.count(each) for each in items},
    ),
    ScalarFunction(
        name="LYING",
        description="",
        signatures=signatures("t STRING -> INTEGER"),
        python=lambda text: len(text) if text == "ab" else text,
    ),
    ScalarFunction(name="SEVEN", description="", signatures=signatures("-> INTEGER"), python=lambda: 7),
)


def test_python_functions_in_select_where_and_group_by(bench: Bench, values: Values) -> None:
    bench.functions = bench.functions.with_functions(FUNCTIONS)
    batch = {"S": [row(1, K="ab", A=[1, 1, 2]), row(2, K="", A=None), row(3, K="ac", A=[]), row(4, K=None)]}
    [rows] = bench.run(
        "CREATE STREAM o AS SELECT k, INITIAL(k) AS i, COUNTED(a) AS c, SEVEN() AS s, LYING(k) AS l FROM s", batch
    )
    assert [(each["K"], each["I"], each["C"], each["S"]) for each in rows] == [
        ("ab", "a", [("1", 2), ("2", 1)], 7),
        ("", None, None, 7),
        ("ac", "a", [], 7),
        (None, None, None, 7),
    ]
    assert [each["L"] for each in rows] == [2, None, None, None], "what is no INTEGER is null"
    [rows] = bench.run(
        "CREATE TABLE o AS SELECT INITIAL(k) AS i, COUNT(*) AS c, MAX(INITIAL(k)) AS m FROM s"
        " WHERE INITIAL(k) = 'a' GROUP BY INITIAL(k)",
        batch,
    )
    assert values(rows, "I", "C", "M") == [("a", 2, "a")]


def test_a_windowed_source_passes_its_window_on(bench: Bench) -> None:
    bench.declare(
        "CREATE STREAM w (k STRING KEY, n BIGINT) WITH (KAFKA_TOPIC='w', FORMAT='JSON', WINDOW_TYPE='TUMBLING',"
        " WINDOW_SIZE='10 SECONDS')"
    )
    [rows] = bench.run(
        "CREATE STREAM o AS SELECT k, n, WINDOWSTART AS s FROM w WHERE WINDOWEND > 10000",
        {
            "W": [
                row(1, K="a", N=1, WINDOWSTART=0, WINDOWEND=10_000),
                row(2, K="a", N=2, WINDOWSTART=10_000, WINDOWEND=20_000),
            ]
        },
    )
    assert rows == [
        {"K": "a", "N": 2, "S": 10_000, "ROWTIME": 2, "WINDOWSTART": 10_000, "WINDOWEND": 20_000},
    ]
