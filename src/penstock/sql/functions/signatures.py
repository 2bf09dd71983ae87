"""Signatures as text: `"text STRING, position INTEGER -> STRING"`.

Types are written as in statements. A single capital letter is a generic, `ANY` any type, `DECIMAL` a decimal of any
size, `LAMBDA<T, U>` a lambda from T to U (the last is its result). `STRING...` makes the last parameter variadic.
"""

from __future__ import annotations

import re

from penstock.sql.functions.model import (
    AnyDecimal,
    AnyType,
    ArrayOf,
    Generic,
    LambdaOf,
    MapOf,
    Parameter,
    Pattern,
    ReturnRule,
    Signature,
)
from penstock.sql.types import BIGINT, BOOLEAN, BYTES, DATE, DOUBLE, INTEGER, STRING, TIME, TIMESTAMP

_SCALARS = (BOOLEAN, INTEGER, BIGINT, DOUBLE, STRING, BYTES, TIME, DATE, TIMESTAMP)
_PLAIN: dict[str, Pattern] = {"DECIMAL": AnyDecimal(), "ANY": AnyType(), **{str(each): each for each in _SCALARS}}

_TOKEN = re.compile(r"\s*(\w+|[<>,])")


def signature(text: str, returns: ReturnRule | None = None) -> Signature:
    """`returns` computes the type where a pattern cannot say it; the text then ends before the arrow."""
    parameters_text, _, returns_text = text.partition("->")
    variadic = "..." in parameters_text
    tokens = _TOKEN.findall(parameters_text.replace("...", ""))
    parameters = []
    while tokens:
        name = tokens.pop(0)
        parameters.append(Parameter(name, _pattern(tokens)))
        if tokens and tokens.pop(0) != ",":
            raise ValueError(f"no comma in {text!r}")
    result = returns if returns is not None else _pattern(_TOKEN.findall(returns_text))
    return Signature(parameters=tuple(parameters), returns=result, variadic=variadic)


def signatures(*texts: str) -> tuple[Signature, ...]:
    return tuple(signature(text) for text in texts)


def _pattern(tokens: list[str]) -> Pattern:
    name = tokens.pop(0)
    if tokens and tokens[0] == "<":
        return _compound(name, _inner(tokens))
    return _PLAIN[name] if name in _PLAIN else _generic(name)


def _generic(name: str) -> Generic:
    if len(name) != 1 or not name.isupper():
        raise ValueError(f"{name!r} is no type")
    return Generic(name)


def _inner(tokens: list[str]) -> list[Pattern]:
    """What stands between `<` and `>`."""
    inner = []
    while tokens.pop(0) in ("<", ","):
        inner.append(_pattern(tokens))
        if tokens[0] == ">":
            tokens.pop(0)
            break
    return inner


def _compound(name: str, inner: list[Pattern]) -> Pattern:
    if name == "ARRAY":
        return ArrayOf(*inner)
    if name == "MAP":
        return MapOf(*inner)
    if name == "LAMBDA":
        return LambdaOf(tuple(inner[:-1]), inner[-1])
    raise ValueError(f"{name!r} takes no inner types")
