"""Expressions as data: frozen structs that compare, hash and turn into JSON by themselves.

A parsed expression names columns as they were written (`Column(name="ID", source="O")`); in a plan every column is
resolved (`source` is None, `name` is a column of the node below).
"""

from __future__ import annotations

from typing import Literal

import msgspec

from penstock.sql.types import SqlType


class Node(msgspec.Struct, frozen=True, tag_field="node", tag=True):
    """What all expressions share: the tag that names them in JSON."""


class NullLiteral(Node, frozen=True):
    pass


class BooleanLiteral(Node, frozen=True):
    value: bool


class IntegerLiteral(Node, frozen=True):
    """INTEGER when it fits into 32 bits, else BIGINT."""

    value: int


class DecimalLiteral(Node, frozen=True):
    """A number with a point and no exponent; its text decides precision and scale."""

    text: str


class DoubleLiteral(Node, frozen=True):
    """A number with an exponent."""

    value: float


class StringLiteral(Node, frozen=True):
    value: str


class Column(Node, frozen=True):
    name: str
    source: str | None = None


class Call(Node, frozen=True):
    """A function, scalar, aggregate or table; `name` is upper case. COUNT(*) has no arguments."""

    name: str
    arguments: tuple[Expression, ...] = ()


class Arithmetic(Node, frozen=True):
    """`+` also joins strings, as in ksqlDB."""

    operator: Literal["+", "-", "*", "/", "%"]
    left: Expression
    right: Expression


class Negate(Node, frozen=True):
    operand: Expression


class Comparison(Node, frozen=True):
    operator: Literal["=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"]
    left: Expression
    right: Expression


class Logical(Node, frozen=True):
    operator: Literal["AND", "OR"]
    left: Expression
    right: Expression


class Not(Node, frozen=True):
    operand: Expression


class IsNull(Node, frozen=True):
    operand: Expression
    negated: bool = False


class Between(Node, frozen=True):
    operand: Expression
    low: Expression
    high: Expression
    negated: bool = False


class In(Node, frozen=True):
    operand: Expression
    options: tuple[Expression, ...]
    negated: bool = False


class Like(Node, frozen=True):
    operand: Expression
    pattern: Expression
    escape: str | None = None
    negated: bool = False


class When(msgspec.Struct, frozen=True):
    condition: Expression
    result: Expression


class Case(Node, frozen=True):
    """With `operand`: CASE x WHEN 1 THEN ...; without: CASE WHEN x = 1 THEN ..."""

    operand: Expression | None
    whens: tuple[When, ...]
    default: Expression | None = None


class Cast(Node, frozen=True):
    operand: Expression
    type: SqlType


class FieldAccess(Node, frozen=True):
    """`struct->field`"""

    operand: Expression
    name: str


class Subscript(Node, frozen=True):
    """`array[1]`, `map['key']`"""

    operand: Expression
    index: Expression


class ArrayOf(Node, frozen=True):
    items: tuple[Expression, ...]


class MapEntry(msgspec.Struct, frozen=True):
    key: Expression
    value: Expression


class MapOf(Node, frozen=True):
    entries: tuple[MapEntry, ...]


class NamedExpression(msgspec.Struct, frozen=True):
    name: str
    expression: Expression


class StructOf(Node, frozen=True):
    fields: tuple[NamedExpression, ...]


class Lambda(Node, frozen=True):
    """`(x, y) => x + y`; parameters appear in the body as `LambdaVariable`."""

    parameters: tuple[str, ...]
    body: Expression


class LambdaVariable(Node, frozen=True):
    name: str


Expression = (
    NullLiteral
    | BooleanLiteral
    | IntegerLiteral
    | DecimalLiteral
    | DoubleLiteral
    | StringLiteral
    | Column
    | Call
    | Arithmetic
    | Negate
    | Comparison
    | Logical
    | Not
    | IsNull
    | Between
    | In
    | Like
    | Case
    | Cast
    | FieldAccess
    | Subscript
    | ArrayOf
    | MapOf
    | StructOf
    | Lambda
    | LambdaVariable
)
