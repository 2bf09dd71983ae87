"""Expressions: what they become, and that their text gives them again."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.sql.errors import SqlSyntaxError
from penstock.sql.expressions import nodes as n
from penstock.sql.expressions.text import format_expression, format_type
from penstock.sql.parser import parse_expression, parse_type
from penstock.sql.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, STRING, Array, Decimal, Field, Map, SqlType, Struct

A, B, C = n.Column("A"), n.Column("B"), n.Column("C")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a + b * c", n.Arithmetic("+", A, n.Arithmetic("*", B, C))),
        ("a - b - c", n.Arithmetic("-", n.Arithmetic("-", A, B), C)),
        ("(a + b) % c", n.Arithmetic("%", n.Arithmetic("+", A, B), C)),
        ("a OR b AND NOT c", n.Logical("OR", A, n.Logical("AND", B, n.Not(C)))),
        ("NOT a = b AND c", n.Logical("AND", n.Not(n.Comparison("=", A, B)), C)),
        ("a != b", n.Comparison("<>", A, B)),
        ("a BETWEEN 1 AND 2 AND b", n.Logical("AND", n.Between(A, n.IntegerLiteral(1), n.IntegerLiteral(2)), B)),
        ("a NOT IN (b, c)", n.In(A, (B, C), True)),
        ("a LIKE 'x%' ESCAPE '!'", n.Like(A, n.StringLiteral("x%"), "!")),
        ("a IS NOT NULL", n.IsNull(A, True)),
        ("a IS NOT DISTINCT FROM b", n.Comparison("IS NOT DISTINCT FROM", A, B)),
        ("a || b || c", n.Call("CONCAT", (n.Call("CONCAT", (A, B)), C))),
        ("-a * b", n.Arithmetic("*", n.Negate(A), B)),
        ("- 5", n.IntegerLiteral(-5)),
        ("-9223372036854775808", n.IntegerLiteral(-(2**63))),
        ("a - -1", n.Arithmetic("-", A, n.IntegerLiteral(-1))),
        ("1.50", n.DecimalLiteral("1.50")),
        (".5", n.DecimalLiteral("0.5")),
        ("1e3", n.DoubleLiteral(1000.0)),
        ("000009223372036854775807", n.IntegerLiteral(2**63 - 1)),
        ("'it''s; --x'", n.StringLiteral("it's; --x")),
        ("a[-1]['k']", n.Subscript(n.Subscript(A, n.IntegerLiteral(-1)), n.StringLiteral("k"))),
        ("t.a->b->`c`", n.FieldAccess(n.FieldAccess(n.Column("A", "T"), "B"), "c")),
        ("CAST(a AS ARRAY<INT>)", n.Cast(A, Array(INTEGER))),
        ("ARRAY[]", n.ArrayOf(())),
        ("MAP('x' := a)", n.MapOf((n.MapEntry(n.StringLiteral("x"), A),))),
        ("STRUCT(x := a, `y` := b)", n.StructOf((n.NamedExpression("X", A), n.NamedExpression("y", B)))),
        ("count(*)", n.Call("COUNT")),
        ("f(x => x + a)", n.Call("F", (n.Lambda(("X",), n.Arithmetic("+", n.LambdaVariable("X"), A)),))),
        ("f((a), (a, b) => b)", n.Call("F", (A, n.Lambda(("A", "B"), n.LambdaVariable("B"))))),
        ("f(x => x) + x", n.Arithmetic("+", n.Call("F", (n.Lambda(("X",), n.LambdaVariable("X")),)), n.Column("X"))),
        ("DATEADD(days, 1, a)", n.Call("DATEADD", (n.StringLiteral("DAYS"), n.IntegerLiteral(1), A))),
        ("CASE a WHEN 1 THEN b END", n.Case(A, (n.When(n.IntegerLiteral(1), B),))),
        ("`Mixed``case`", n.Column("Mixed`case")),
        ('"Quoted"', n.Column("Quoted")),
        ("date", n.Column("DATE")),
    ],
)
def test_expressions(text: str, expected: n.Expression) -> None:
    assert parse_expression(text) == expected
    assert parse_expression(format_expression(expected)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "a = b = c", "a BETWEEN 1 2", "CASE WHEN a b END", "CASE END", "(a, b)", "()", "a IN ()", "f(a,)", "a b", "1 2",
        "'a' 'b'", "a.b.c", "f(DISTINCT a)", "x => x", "a NOT b", "a LIKE b ESCAPE 'xy'", "12abc", "1.2.3", "1e",
        "1e999", "9223372036854775808", "{d '2020-01-01'}", "a::int", "a ? b", "``", "CAST(a AS nope)", "from", "",
        "CAST(a AS DECIMAL(39, 2))", "ARRAY[1", "STRUCT(1 := 2)", "0x1F", "a ==b", "$x", "${x}", "é$",
    ],
)  # fmt: skip
def test_what_is_no_expression(text: str) -> None:
    with pytest.raises(SqlSyntaxError) as caught:
        parse_expression(text)
    assert caught.value.line == 1
    assert caught.value.column is not None


@pytest.mark.parametrize(
    "text", ["(" * 5000, "a" + "+a" * 5000, "-" * 1 + "(" * 100, "- - " * 5000 + "a", "NOT " * 5000]
)
def test_expressions_too_deep_to_walk_are_refused(text: str) -> None:
    with pytest.raises(SqlSyntaxError):
        parse_expression(text)


def test_long_lists_are_not_deep() -> None:
    found = parse_expression("a IN (" + ", ".join(map(str, range(5000))) + ")")
    assert isinstance(found, n.In)
    assert len(found.options) == 5000


names = st.text("ABZ_az09 `'\"é-", min_size=1, max_size=6).filter(lambda name: name.strip())
plain_names = st.text("ABCXYZ_", min_size=1, max_size=4)
types: st.SearchStrategy[SqlType] = st.recursive(
    st.sampled_from([BOOLEAN, INTEGER, BIGINT, DOUBLE, STRING, Decimal(10, 2)]),
    lambda inner: st.one_of(
        inner.map(Array),
        st.builds(Map, st.just(STRING), inner),
        st.lists(st.builds(Field, names, inner), max_size=3, unique_by=lambda field: field.name).map(
            lambda fields: Struct(tuple(fields))
        ),
    ),
    max_leaves=6,
)
literals: st.SearchStrategy[n.Expression] = st.one_of(
    st.just(n.NullLiteral()),
    st.booleans().map(n.BooleanLiteral),
    st.integers(-(2**63), 2**63 - 1).map(n.IntegerLiteral),
    st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-99999, max_value=99999).map(
        lambda value: n.DecimalLiteral(f"{value:.3f}")
    ),
    st.floats(allow_nan=False, allow_infinity=False).map(n.DoubleLiteral),
    st.text(max_size=8).map(n.StringLiteral),
    st.builds(n.Column, names, st.none() | names),
)


def _compound(inner: st.SearchStrategy[n.Expression]) -> st.SearchStrategy[n.Expression]:
    several = st.lists(inner, min_size=1, max_size=3).map(tuple)
    optional = st.none() | inner
    call_names = plain_names.map(lambda name: f"F_{name}")
    # A parameter's name must not be a column's, or the column would become the parameter.
    parameters = st.lists(plain_names.map(lambda name: f"ΛP_{name}"), min_size=1, max_size=3, unique=True).map(tuple)
    lambdas = st.builds(
        lambda names, body: n.Lambda(names, n.Arithmetic("+", body, n.LambdaVariable(names[0]))), parameters, inner
    )
    return st.one_of(
        st.builds(n.Arithmetic, st.sampled_from("+-*/%"), inner, inner),
        st.builds(n.Logical, st.sampled_from(["AND", "OR"]), inner, inner),
        st.builds(
            n.Comparison,
            st.sampled_from(["=", "<>", "<", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"]),
            inner,
            inner,
        ),
        st.builds(n.Negate, inner),
        st.builds(n.Not, inner),
        st.builds(n.IsNull, inner, st.booleans()),
        st.builds(n.Between, inner, inner, inner, st.booleans()),
        st.builds(n.In, inner, several, st.booleans()),
        st.builds(n.Like, inner, inner, st.none() | st.characters(codec="utf-8"), st.booleans()),
        st.builds(
            n.Case, optional, st.lists(st.builds(n.When, inner, inner), min_size=1, max_size=2).map(tuple), optional
        ),
        st.builds(n.Cast, inner, types),
        st.builds(n.FieldAccess, inner, names),
        st.builds(n.Subscript, inner, inner),
        several.map(n.ArrayOf),
        st.lists(st.builds(n.MapEntry, inner, inner), max_size=2).map(lambda entries: n.MapOf(tuple(entries))),
        st.lists(st.builds(n.NamedExpression, names, inner), max_size=2).map(lambda fields: n.StructOf(tuple(fields))),
        st.builds(n.Call, call_names, several),
        st.builds(lambda name, body: n.Call(name, (body,)), call_names, lambdas),
    )


@settings(max_examples=400, deadline=None)
@given(st.recursive(literals, _compound, max_leaves=12))
def test_the_text_of_an_expression_gives_it_again(expression: n.Expression) -> None:
    assert parse_expression(format_expression(expression)) == expression


@given(types)
def test_the_text_of_a_type_gives_it_again(sql_type: SqlType) -> None:
    assert parse_type(format_type(sql_type)) == sql_type
