"""Does a signature fit the types of a call, at what cost, and what does it return then.

Costs order the signatures that fit: exact types are free, a generic costs a little, every step of numeric widening
(INTEGER, BIGINT, DECIMAL, DOUBLE) a lot, in arrays too; a variadic signature is the last resort. NULL fits everything.
Lambdas are looked at last, when the other arguments have said what the generics are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock.sql.expressions.coercion import common_type, widening_steps
from penstock.sql.functions.model import (
    AnyDecimal,
    AnyType,
    Argument,
    ArrayOf,
    Generic,
    LambdaArgument,
    LambdaOf,
    MapOf,
    Pattern,
    Signature,
)
from penstock.sql.types import INTEGER, NULL, Array, Decimal, Map, SqlType

_GENERIC_COST = 1
_VARIADIC_COST = 3
_WIDENING_COST = 10

_DECIMAL_FOR = {"INTEGER": Decimal(10, 0), "BIGINT": Decimal(19, 0)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    signature: Signature
    cost: int
    return_type: SqlType
    argument_types: tuple[SqlType, ...]
    lambda_types: dict[int, tuple[SqlType, ...]]


def match(signature: Signature, arguments: Sequence[Argument]) -> Match | None:
    patterns = _patterns(signature, len(arguments))
    if patterns is None:
        return None
    unifier = _Unifier(cost=_VARIADIC_COST if signature.variadic else 0)
    pairs = list(zip(patterns, arguments, strict=True))
    lambdas = {index for index, argument in enumerate(arguments) if isinstance(argument, LambdaArgument)}
    if not all(unifier.unify(pattern, each) for index, (pattern, each) in enumerate(pairs) if index not in lambdas):
        return None
    results: dict[int, SqlType] = {}
    for index in sorted(lambdas):
        result = unifier.unify_lambda(index, *pairs[index])
        if result is None:
            return None
        results[index] = result
    types = tuple(
        results[index] if index in results else unifier.concrete(pattern, argument)
        for index, (pattern, argument) in enumerate(pairs)
    )
    returns = signature.returns
    return_type = returns(types) if callable(returns) else unifier.concrete(returns, NULL)
    return Match(
        signature=signature,
        cost=unifier.cost,
        return_type=return_type,
        argument_types=types,
        lambda_types=unifier.lambda_types,
    )


def _patterns(signature: Signature, count: int) -> list[Pattern] | None:
    """One pattern per argument, or None when the number does not fit."""
    patterns = [parameter.pattern for parameter in signature.parameters]
    if signature.variadic:
        *fixed, last = patterns
        return fixed + [last] * (count - len(fixed)) if count >= len(fixed) else None
    return patterns if len(patterns) == count else None


@dataclass(slots=True)
class _Unifier:
    """What the generics are so far, and what it has cost."""

    cost: int = 0
    bindings: dict[str, SqlType] = field(default_factory=dict)
    lambda_types: dict[int, tuple[SqlType, ...]] = field(default_factory=dict)

    def unify(self, pattern: Pattern, actual: Argument) -> bool:
        if isinstance(actual, LambdaArgument) or isinstance(pattern, LambdaOf):
            return False
        if actual == NULL:
            return True
        match pattern:
            case Generic(name):
                return self._bind(name, actual)
            case AnyType():
                self.cost += _GENERIC_COST
                return True
            case AnyDecimal():
                return isinstance(actual, Decimal) or self._widen(actual, Decimal(1, 0))
            case ArrayOf(element):
                return isinstance(actual, Array) and self.unify(element, actual.element)
            case MapOf(key, value):
                return isinstance(actual, Map) and self.unify(key, actual.key) and self.unify(value, actual.value)
            case _:
                return pattern == actual or self._widen(actual, pattern)

    def unify_lambda(self, index: int, pattern: Pattern, argument: Argument) -> SqlType | None:
        """The type the lambda's body gives, if it fits."""
        if not isinstance(pattern, LambdaOf) or not isinstance(argument, LambdaArgument):
            return None
        if argument.parameter_count != len(pattern.parameters):
            return None
        parameters = tuple(self.concrete(each, NULL) for each in pattern.parameters)
        self.lambda_types[index] = parameters
        body = argument.infer(parameters)
        if not self.unify(pattern.result, body):
            return None
        return self.concrete(pattern.result, body)

    def _bind(self, name: str, actual: SqlType) -> bool:
        bound = self.bindings.get(name, NULL)
        joined = common_type(bound, actual)
        if joined is None:
            return False
        self.cost += _GENERIC_COST if bound in (NULL, joined) and joined == actual else _WIDENING_COST
        self.bindings[name] = joined
        return True

    def _widen(self, actual: SqlType, wanted: SqlType) -> bool:
        steps = widening_steps(actual, wanted)
        if steps is None and common_type(actual, wanted) == wanted:
            steps = 1
        if steps is None:
            return False
        self.cost += steps * _WIDENING_COST
        return True

    def concrete(self, pattern: Pattern, argument: Argument) -> SqlType:
        """The type that stands for the pattern now; a generic nobody bound is that of the argument."""
        actual = NULL if isinstance(argument, LambdaArgument) else argument
        match pattern:
            case Generic(name):
                return self.bindings.get(name, actual)
            case AnyType():
                return actual
            case AnyDecimal():
                return actual if isinstance(actual, Decimal) else _DECIMAL_FOR.get(str(actual), Decimal(10, 0))
            case ArrayOf(element):
                inner = actual.element if isinstance(actual, Array) else NULL
                return Array(self.concrete(element, inner))
            case MapOf(key, value):
                if isinstance(actual, Map):
                    return Map(self.concrete(key, actual.key), self.concrete(value, actual.value))
                return Map(self.concrete(key, NULL), self.concrete(value, NULL))
            case LambdaOf():
                return INTEGER
            case _:
                return pattern
