"""Parts of expressions, and expressions with parts replaced."""

from __future__ import annotations

from penstock.sql.expressions.nodes import Column, Expression, IntegerLiteral
from penstock.sql.expressions.walk import calls_of, children, columns_of, transform
from penstock.sql.parser import parse_expression

EVERYTHING = parse_expression(
    "CASE WHEN A BETWEEN 1 AND B THEN MAP('k' := F(C)) ELSE MAP('k' := STRUCT(X := D)->X) END['k'] IN (ARRAY[E][1], 5)"
)


def test_children_are_those_directly_inside() -> None:
    assert list(children(parse_expression("A + F(B)"))) == [Column("A"), parse_expression("F(B)")]


def test_columns_are_found_everywhere_and_once() -> None:
    assert [column.name for column in columns_of(EVERYTHING)] == ["A", "B", "C", "D", "E"]
    assert columns_of(parse_expression("A + A")) == [Column("A")]


def test_calls_come_from_outside_to_inside() -> None:
    assert [call.name for call in calls_of(parse_expression("F(G(H(1)), I(2))"))] == ["F", "G", "H", "I"]


def test_a_transformation_reaches_every_part() -> None:
    def rename(node: Expression) -> Expression:
        return Column(f"T_{node.name}") if isinstance(node, Column) else node

    renamed = transform(EVERYTHING, rename)
    assert [column.name for column in columns_of(renamed)] == ["T_A", "T_B", "T_C", "T_D", "T_E"]


def test_a_transformation_works_from_below() -> None:
    def double(node: Expression) -> Expression:
        return IntegerLiteral(node.value * 2) if isinstance(node, IntegerLiteral) else node

    assert transform(parse_expression("F(1, 2)"), double) == parse_expression("F(2, 4)")


def test_what_is_not_changed_stays_the_same_object() -> None:
    assert transform(EVERYTHING, lambda node: node) is EVERYTHING
