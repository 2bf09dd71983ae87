"""Expressions over columns: their types, their values, their Spark text."""

from __future__ import annotations

import datetime
import math
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.sql.errors import SemanticError
from penstock.sql.expressions.casting import caster
from penstock.sql.expressions.evaluation import compile_as, compile_expression
from penstock.sql.expressions.spark_sql import python_functions, to_spark_sql
from penstock.sql.expressions.spark_types import literal_value, spark_type, string_literal
from penstock.sql.expressions.text_form import double_text
from penstock.sql.expressions.typing import infer
from penstock.sql.functions.registry import FunctionRegistry
from penstock.sql.parser import parse_expression
from penstock.sql.types import (
    BIGINT,
    BYTES,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
    Array,
    Decimal,
    Field,
    Map,
    SqlType,
    Struct,
)

FUNCTIONS = FunctionRegistry.builtin()
COLUMNS: dict[str, SqlType] = {
    "ID": INTEGER,
    "NAME": STRING,
    "TAGS": Array(STRING),
    "PRICE": Decimal(10, 2),
    "ROWTIME": BIGINT,
    "O_ROWTIME": BIGINT,
    "odd `name`": DOUBLE,
}


def value(text: str, **row: Any) -> Any:
    return compile_expression(parse_expression(text), COLUMNS, FUNCTIONS)(row)


def spark_text(text: str) -> str:
    return to_spark_sql(parse_expression(text), COLUMNS, FUNCTIONS)


def test_columns_come_from_the_row() -> None:
    assert value("ID + 1", ID=2) == 3
    assert value("`odd ``name``` * 2", **{"odd `name`": 1.5}) == 3.0
    assert spark_text("`odd ``name```") == "`odd ``name```"


def test_an_unknown_column_is_told_with_a_near_one() -> None:
    with pytest.raises(SemanticError, match=r"Column 'NAMES' cannot be resolved\. Did you mean NAME\?"):
        infer(parse_expression("NAMES"), COLUMNS, FUNCTIONS)


def test_the_time_of_a_row_compares_with_text() -> None:
    assert value("ROWTIME >= '2020-01-01'", ROWTIME=1577836800000) is True
    assert value("O_ROWTIME < '2020-01-01T00:00:00.001'", O_ROWTIME=1577836800000) is True
    assert value("ROWTIME BETWEEN '2020' AND '2021'", ROWTIME=1577836799999) is False
    assert "timestamp_millis(`ROWTIME`)" in spark_text("ROWTIME >= '2020-01-01'")
    with pytest.raises(SemanticError, match="cannot be used to compare INTEGER and STRING"):
        infer(parse_expression("ID >= '2020-01-01'"), COLUMNS, FUNCTIONS)


def test_only_the_part_that_fails_is_null_and_the_message_goes_out() -> None:
    messages: list[str] = []
    evaluate = compile_expression(
        parse_expression("COALESCE(CAST(NAME AS INT), 1 / ID)"), COLUMNS, FUNCTIONS, messages.append
    )
    assert evaluate({"NAME": "x", "ID": 1}) == 1
    assert evaluate({"NAME": "x", "ID": 0}) is None
    assert messages == ["CAST to INTEGER: 'x' is no INTEGER"] * 2 + ["Operator /: division by zero"]


def test_a_value_can_be_turned_into_another_type() -> None:
    evaluate = compile_as(parse_expression("ID"), STRING, COLUMNS, FUNCTIONS)
    assert evaluate({"ID": 5}) == "5"


def test_a_lambda_sees_the_row_and_its_own_parameters() -> None:
    assert value("TRANSFORM(TAGS, t => CONCAT(NAME, t))", TAGS=["a", "b"], NAME="x") == ["xa", "xb"]
    assert spark_text("TRANSFORM(TAGS, t => CONCAT(NAME, t))") == (
        "transform(`TAGS`, `lambda T` -> concat_ws('', `NAME`, `lambda T`))"
    )


def test_a_lambda_parameter_hides_no_column_of_its_name() -> None:
    assert value("TRANSFORM(TAGS, id => LEN(id) + 1)", TAGS=["abc"], ID=7) == [4]


def test_python_functions_are_named_by_their_types() -> None:
    first = python_functions(parse_expression("TO_JSON_STRING(ID)"), COLUMNS, FUNCTIONS)
    second = python_functions(parse_expression("TO_JSON_STRING(NAME)"), COLUMNS, FUNCTIONS)
    assert first[0].name.startswith("penstock_to_json_string_")
    assert first[0].name != second[0].name
    assert (first[0].argument_types, first[0].return_type) == ((INTEGER,), STRING)


def test_a_lambda_that_needs_python_makes_the_whole_call_run_in_python() -> None:
    text = "TRANSFORM(TAGS, t => INITCAP(CONCAT(NAME, t)))"
    (use,) = python_functions(parse_expression(text), COLUMNS, FUNCTIONS)
    assert spark_text(text) == f"{use.name}(`TAGS`, `NAME`)"
    assert use.function(pytest.fail, [" a", None], "x") == ["X A", "X"]
    assert use.argument_types == (Array(STRING), STRING)


def test_two_calls_that_differ_only_inside_their_lambdas_have_different_names() -> None:
    one, other = (
        python_functions(parse_expression(f"TRANSFORM(TAGS, t => INITCAP(CONCAT(t, '{end}')))"), COLUMNS, FUNCTIONS)
        for end in "ab"
    )
    assert one[0].name != other[0].name


def test_rule_books_of_spark_python_functions_can_be_sent_to_executors() -> None:
    cloudpickle = pytest.importorskip("pyspark.cloudpickle")
    for text in ("INITCAP(NAME)", "TRANSFORM(TAGS, t => INITCAP(t))"):
        (use,) = python_functions(parse_expression(text), COLUMNS, FUNCTIONS)
        sent = pickle.loads(cloudpickle.dumps(use.function))
        assert sent(pytest.fail, ["a"] if "TAGS" in text else "a") in (["A"], "A")


def test_an_aggregate_has_no_text_of_its_own() -> None:
    with pytest.raises(SemanticError, match="Aggregate function COUNT cannot be used here"):
        spark_text("COUNT(ID)")


def test_the_shapes_of_types_in_spark() -> None:
    struct = Struct((Field("a`b", Map(STRING, Array(BYTES))), Field("T", TIME)))
    assert spark_type(struct) == "struct<`a``b`:map<string,array<binary>>,`T`:time(6)>"


@given(st.text())
def test_literals_can_be_read_back(text: str) -> None:
    assert literal_value(string_literal(text)) == text


@pytest.mark.parametrize("text", ["`NAME`", "concat('a', 'b')", "'a' || 'b'", "'a", "5"])
def test_other_texts_are_no_literals(text: str) -> None:
    assert literal_value(text) is None


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_doubles_written_as_java_does_are_read_again(number: float) -> None:
    parse = caster(STRING, DOUBLE)
    assert parse is not None
    assert parse(double_text(number)) == number


@given(st.integers(), st.sampled_from([INTEGER, BIGINT]))
def test_integers_wrap_into_their_type(number: int, kind: SqlType) -> None:
    bits = 32 if kind == INTEGER else 64
    narrow = caster(Decimal(38, 0), kind)
    assert narrow is not None
    assert (narrow(number) - number) % 2**bits == 0
    assert -(2 ** (bits - 1)) <= narrow(number) < 2 ** (bits - 1)


def test_nan_is_equal_to_itself_and_above_all() -> None:
    assert value("`odd ``name``` = `odd ``name```", **{"odd `name`": math.nan}) is True
    assert value("`odd ``name``` > 1E308", **{"odd `name`": math.nan}) is True


def test_a_pattern_with_an_escape_must_be_known_before() -> None:
    assert spark_text("NAME LIKE 'a!_%' ESCAPE '!'") == "(`NAME` like 'a\\\\_%')"
    assert value("NAME LIKE 'a!_%' ESCAPE '!'", NAME="a_b") is True


def test_decimals_keep_their_scale() -> None:
    assert str(infer(parse_expression("PRICE * 2"), COLUMNS, FUNCTIONS)) == "DECIMAL(21, 2)"
    assert str(infer(parse_expression("PRICE + 1"), COLUMNS, FUNCTIONS)) == "DECIMAL(13, 2)"
    assert str(infer(parse_expression("PRICE / 3"), COLUMNS, FUNCTIONS)) == "DECIMAL(21, 13)"


def test_a_timestamp_of_another_zone_is_written_in_utc() -> None:
    zone = datetime.timezone(datetime.timedelta(hours=2))
    moment = datetime.datetime(2020, 1, 1, 2, tzinfo=zone)
    text = compile_expression(parse_expression("CAST(T AS STRING)"), {"T": TIMESTAMP}, FUNCTIONS)
    assert text({"T": moment}) == "2020-01-01T00:00:00.000"
