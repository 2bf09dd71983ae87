"""What a function is, as values.

A **pattern** is the type of a parameter before a call is known: a plain type, a generic (`T`), any decimal, an array or
map of patterns, a lambda. A **signature** is its parameters and what it returns; the return is a pattern too, or a rule
that computes the type from those of the arguments.

A scalar function is defined twice: `python` on Python values is the rule book; `spark` is the text of a Spark
expression that gives the same, or None where Spark has nothing exact: then the rule book runs inside Spark. A function
is `strict` when any null argument makes the result null, without a call. A rule book refuses by raising, and the result
is null.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from penstock.sql.types import SqlType


@dataclass(frozen=True, slots=True)
class Generic:
    """Any type, the same wherever the name stands in one signature."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class AnyType:
    """Any type, each time another."""

    def __str__(self) -> str:
        return "ANY"


@dataclass(frozen=True, slots=True)
class AnyDecimal:
    """A decimal of any precision and scale."""

    def __str__(self) -> str:
        return "DECIMAL"


@dataclass(frozen=True, slots=True)
class ArrayOf:
    element: Pattern

    def __str__(self) -> str:
        return f"ARRAY<{self.element}>"


@dataclass(frozen=True, slots=True)
class MapOf:
    key: Pattern
    value: Pattern

    def __str__(self) -> str:
        return f"MAP<{self.key}, {self.value}>"


@dataclass(frozen=True, slots=True)
class LambdaOf:
    parameters: tuple[Pattern, ...]
    result: Pattern

    def __str__(self) -> str:
        parameters = ", ".join(map(str, self.parameters))
        return f"LAMBDA ({parameters}) => {self.result}"


Pattern = SqlType | Generic | AnyType | AnyDecimal | ArrayOf | MapOf | LambdaOf


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    pattern: Pattern


ReturnRule = Callable[[Sequence[SqlType]], SqlType]


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """A variadic signature takes its last parameter any number of times."""

    parameters: tuple[Parameter, ...]
    returns: Pattern | ReturnRule
    variadic: bool = False

    def describe(self, function: str) -> str:
        texts = [f"{parameter.pattern} {parameter.name}" for parameter in self.parameters]
        if self.variadic:
            texts[-1] = f"{self.parameters[-1].pattern}... {self.parameters[-1].name}"
        return f"{function}({', '.join(texts)})"


@dataclass(frozen=True, slots=True)
class LambdaArgument:
    """A lambda in a call: how many parameters it has, and the type of its body once theirs are known."""

    parameter_count: int
    infer: Callable[[Sequence[SqlType]], SqlType]


Argument = SqlType | LambdaArgument

SparkForm = str | Callable[[Sequence[str], Sequence[SqlType]], "str | None"]
"""A template (`abs({0})`), or a function of the arguments' texts and types; None from it means: run the rule book."""


class LambdaText(str):
    """The text of a lambda in Spark SQL, with its parts for forms that must take it to pieces."""

    parameters: tuple[str, ...]
    body: str

    def __new__(cls, parameters: tuple[str, ...], body: str) -> LambdaText:
        names = parameters[0] if len(parameters) == 1 else f"({', '.join(parameters)})"
        text = super().__new__(cls, f"{names} -> {body}")
        text.parameters = parameters
        text.body = body
        return text


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """What all kinds share."""

    name: str
    description: str
    signatures: tuple[Signature, ...]
    category: str = "OTHER"
    aliases: tuple[str, ...] = ()
    author: str = "Penstock"

    @property
    def kind(self) -> str:
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarFunction(Function):
    """A function of the values of one row."""

    python: Callable[..., Any]
    spark: SparkForm | None = None
    strict: bool = True

    @property
    def kind(self) -> str:
        return "SCALAR"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFunction(Function):
    """One row in, one row per element of the array out; `spark` is the text of that array."""

    python: Callable[..., list[Any] | None]
    spark: SparkForm

    @property
    def kind(self) -> str:
        return "TABLE"


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateFunction(Function):
    """A function of many rows.

    `spark(arguments, types, order)` is the text of a native Spark aggregate; `order` is the text of a struct of columns
    by which rows are ordered (time, partition, offset). Those with `undo_spark` may run over a table: its changes are
    rows with a sign column of +1 or -1.
    For session windows the same in Python: `initial()`, then `add(state, arguments, order)` per row, `merge(older,
    newer)` when sessions meet, `result(state)`. A state is lists, dicts, numbers and the values that were aggregated;
    `add` and `merge` may change the states they are given, and a result is never part of a state.
    """

    initial: Callable[[], Any]
    add: Callable[[Any, Sequence[Any], Any], Any]
    merge: Callable[[Any, Any], Any]
    result: Callable[[Any], Any]
    spark: Callable[[Sequence[str], Sequence[SqlType], str], str]
    undo_spark: Callable[[Sequence[str], Sequence[SqlType], str], str] | None = None
    constants: Literal["none", "last", "rest"] = "none"
    """Which arguments must be the same for all rows: none, the last one, all but the first."""

    @property
    def kind(self) -> str:
        return "AGGREGATE"

    @property
    def undo(self) -> bool:
        return self.undo_spark is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """A call with its signature chosen.

    `argument_types` are what the arguments must be turned into; for a lambda the type its body gives.
    `lambda_types` are the types of the parameters of the lambda at that position.
    """

    function: Function
    signature: Signature
    return_type: SqlType
    argument_types: tuple[SqlType, ...]
    lambda_types: dict[int, tuple[SqlType, ...]] = field(default_factory=dict)
