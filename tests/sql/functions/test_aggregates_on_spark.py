"""Aggregate functions as native Spark aggregates, over rows and over changes of a table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as sf

from penstock.sql.expressions.nodes import Call
from penstock.sql.expressions.spark_sql import to_spark_sql, to_spark_sql_as
from penstock.sql.expressions.spark_types import spark_type
from penstock.sql.expressions.typing import Types
from penstock.sql.formats.arrow_types import arrow_type
from penstock.sql.formats.python_values import to_python
from penstock.sql.functions.model import AggregateFunction
from penstock.sql.parser import parse_expression
from penstock.sql.types import INTEGER, STRING, SqlType
from tests.sql.functions.aggregate_cases import CASES, OVER_TABLE, AggregateCase
from tests.sql.functions.case_files import FUNCTIONS, same

NAMES = ("X", "Y")


def frame_of(spark: Any, case: AggregateCase) -> Any:
    """The rows in a wrong order, with their right one beside them."""
    rows = [*((row, 1, place) for place, row in enumerate(case.rows)), *((row, -1, -1) for row in case.taken_back)][
        ::-1
    ]
    columns = {
        name: pa.array([row[index] for row, _sign, _place in rows], arrow_type(kind))
        for index, (name, kind) in enumerate(zip(NAMES, case.columns, strict=False))
    }
    columns |= {
        "SIGN": pa.array([sign for _row, sign, _place in rows]),
        "PLACE": pa.array([place for *_, place in rows]),
    }
    return spark.createDataFrame(pa.table(columns)).repartition(2)


def check(spark: Any, case: AggregateCase) -> None:
    columns = dict(zip(NAMES, case.columns, strict=False))
    call = parse_expression(case.call)
    assert isinstance(call, Call)
    resolution = Types(columns, FUNCTIONS).resolution(call)
    function = resolution.function
    assert isinstance(function, AggregateFunction)
    pairs = zip(call.arguments, resolution.argument_types, strict=True)
    texts = [to_spark_sql_as(argument, wanted, columns, FUNCTIONS) for argument, wanted in pairs]
    if case.taken_back:
        assert function.undo_spark is not None
        text = function.undo_spark(texts, resolution.argument_types, "`SIGN`")
    else:
        text = function.spark(texts, resolution.argument_types, "struct(`PLACE`, `SIGN`)")
    result = frame_of(spark, case).selectExpr(f"{text} as RESULT")
    assert result.schema["RESULT"].dataType.simpleString() == spark_type(resolution.return_type).replace("`", "")
    (actual,) = to_python(result.toArrow().column(0).combine_chunks(), resolution.return_type)
    assert same(actual, case.expected, 1e-9), f"{case} gives {actual!r} by {text}"


@pytest.mark.parametrize("case", CASES, ids=str)
def test_over_rows(spark: Any, case: AggregateCase) -> None:
    check(spark, case)


@pytest.mark.parametrize("case", OVER_TABLE, ids=str)
def test_over_changes_of_a_table(spark: Any, case: AggregateCase) -> None:
    check(spark, case)


@pytest.mark.parametrize(
    ("call", "rows"),
    [
        ("EXPLODE(ARRAY[1, NULL])", [1, None]),
        ("CUBE_EXPLODE(ARRAY[1, 2])", [[None, None], [None, 2], [1, None], [1, 2]]),
        ("CUBE_EXPLODE(ARRAY[1, NULL])", [[None, None], [1, None]]),
        ("CUBE_EXPLODE(CAST(NULL AS ARRAY<INT>))", None),
    ],
)
def test_the_text_of_a_table_function_is_the_array_of_its_rows(spark: Any, call: str, rows: Any) -> None:
    text = to_spark_sql(parse_expression(call), {}, FUNCTIONS)
    assert spark.sql(f"select {text}").toArrow().column(0).to_pylist() == [rows]


STREAMED = [
    ("COUNT(*)", 4),
    ("COUNT_DISTINCT(X)", 2),
    ("SUM(X)", 7),
    ("AVG(X)", 7 / 3),
    ("MIN(X)", 1),
    ("MAX(X)", 3),
    ("TOPK(X, 2)", [3, 3]),
    ("TOPK(X, Y, 1)", [{"sort_col": 3, "col0": "a"}]),
    ("TOPKDISTINCT(X, 2)", [3, 1]),
    ("COLLECT_LIST(X)", [3, None, 3, 1]),
    ("COLLECT_SET(X)", [1, 3, None]),
    ("HISTOGRAM(Y)", {"a": 2, "b": 1, "c": 1}),
    ("EARLIEST_BY_OFFSET(Y)", "a"),
    ("LATEST_BY_OFFSET(Y, 2)", ["c", "a"]),
    ("STDDEV_SAMP(X)", 4 / 3),
]


@pytest.fixture
def one_state_partition(spark: Any) -> Iterator[None]:
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    yield
    spark.conf.set("spark.sql.shuffle.partitions", before)


@pytest.mark.usefixtures("one_state_partition")
def test_all_run_in_a_stream_on_the_state_of_earlier_batches(spark: Any, tmp_path: Path) -> None:
    rows = [(3, "a", 0), (None, "b", 1), (3, "c", 2), (1, "a", 3)]
    columns = {"X": INTEGER, "Y": STRING}
    for number, part in enumerate((rows[:2], rows[2:])):
        table = pa.table({name: [row[index] for row in part] for index, name in enumerate(("X", "Y", "PLACE"))})
        source = spark.createDataFrame(table).selectExpr("cast(X as int) as X", "Y", "PLACE")
        source.coalesce(1).write.mode("append").parquet(str(tmp_path / "input"))
        (tmp_path / "input" / "_SUCCESS").unlink(missing_ok=True)
        assert len(list((tmp_path / "input").glob("*.parquet"))) == number + 1
    stream = spark.readStream.schema("X int, Y string, PLACE bigint").option("maxFilesPerTrigger", 1)
    texts, types = zip(*(_native(call, columns) for call, _expected in STREAMED), strict=True)
    aggregates = [sf.expr(text).alias(f"R{index}") for index, text in enumerate(texts)]
    results: list[Any] = []
    query = (
        stream.parquet(str(tmp_path / "input"))
        .groupBy(sf.lit(1).alias("G"))
        .agg(*aggregates)
        .writeStream.outputMode("update")
        .foreachBatch(lambda batch, _number: results.append(batch.toArrow()))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    assert len(results) == 2
    for index, (call, expected) in enumerate(STREAMED):
        (actual,) = to_python(results[-1].column(f"R{index}").combine_chunks(), types[index])
        assert same(actual, expected, 1e-9), f"{call} gives {actual!r}"


def _native(call_text: str, columns: dict[str, SqlType]) -> tuple[str, SqlType]:
    call = parse_expression(call_text)
    assert isinstance(call, Call)
    resolution = Types(columns, FUNCTIONS).resolution(call)
    assert isinstance(resolution.function, AggregateFunction)
    pairs = zip(call.arguments, resolution.argument_types, strict=True)
    texts = [to_spark_sql_as(argument, wanted, columns, FUNCTIONS) for argument, wanted in pairs]
    text = resolution.function.spark(texts, resolution.argument_types, "struct(`PLACE`)")
    return text, resolution.return_type
