"""The table of functions, and the choice of a signature for a call."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Self

from penstock.sql.errors import SemanticError
from penstock.sql.functions.matching import match
from penstock.sql.functions.model import (
    AggregateFunction,
    Argument,
    Function,
    LambdaArgument,
    Resolution,
    ScalarFunction,
    TableFunction,
)


@dataclass(frozen=True, slots=True)
class FunctionRegistry:
    """Functions by upper-case name and alias. Immutable: user functions give a new registry."""

    functions: Mapping[str, Function] = field(default_factory=dict)

    @classmethod
    def of(cls, functions: Iterable[Function]) -> Self:
        return cls({name: function for function in functions for name in (function.name, *function.aliases)})

    @classmethod
    def builtin(cls) -> FunctionRegistry:
        return _builtin()

    def with_functions(self, functions: Iterable[Function]) -> FunctionRegistry:
        """User functions may not take the name of a built-in one."""
        added = FunctionRegistry.of(functions).functions
        for name in added:
            if name in self.functions:
                raise SemanticError(f"Function '{name}' exists already.", hint="Give the user function another name.")
        return FunctionRegistry({**self.functions, **added})

    def with_user_functions(self, folder: Path) -> FunctionRegistry:
        from penstock.sql.functions.user import load_folder

        return self.with_functions(load_folder(folder))

    def get(self, name: str) -> Function | None:
        return self.functions.get(name.upper())

    def scalar(self, name: str) -> ScalarFunction | None:
        function = self.get(name)
        return function if isinstance(function, ScalarFunction) else None

    def aggregate(self, name: str) -> AggregateFunction | None:
        function = self.get(name)
        return function if isinstance(function, AggregateFunction) else None

    def table(self, name: str) -> TableFunction | None:
        function = self.get(name)
        return function if isinstance(function, TableFunction) else None

    def is_aggregate(self, name: str) -> bool:
        return self.aggregate(name) is not None

    def is_table(self, name: str) -> bool:
        return self.table(name) is not None

    def names(self) -> list[str]:
        """Every name, aliases too, sorted."""
        return sorted(self.functions)

    def all(self) -> list[Function]:
        """Every function once, by name."""
        return sorted({function.name: function for function in self.functions.values()}.values(), key=lambda f: f.name)

    def resolve(self, name: str, arguments: Sequence[Argument]) -> Resolution:
        function = self.get(name)
        if function is None:
            raise SemanticError(
                f"Can't find any functions with the name '{name}'.", hint=self._hint(name), about=name.upper()
            )
        matches = [found for signature in function.signatures if (found := match(signature, arguments))]
        if not matches:
            raise SemanticError(_not_accepted(function, arguments))
        best = min(matches, key=lambda found: found.cost)
        return Resolution(
            function=function,
            signature=best.signature,
            return_type=best.return_type,
            argument_types=best.argument_types,
            lambda_types=best.lambda_types,
        )

    def _hint(self, name: str) -> str:
        near = difflib.get_close_matches(name.upper(), self.names(), n=1)
        return f"Did you mean {near[0]}?" if near else "SHOW FUNCTIONS lists those there are."


def _not_accepted(function: Function, arguments: Sequence[Argument]) -> str:
    given = ", ".join("LAMBDA" if isinstance(each, LambdaArgument) else str(each) for each in arguments)
    alternatives = "\n".join(signature.describe(function.name) for signature in function.signatures)
    return (
        f"Function '{function.name}' does not accept parameters ({given}).\n"
        f"Valid alternatives are:\n{alternatives}\n"
        f"For detailed information on a function run: DESCRIBE FUNCTION {function.name};"
    )


@cache
def _builtin() -> FunctionRegistry:
    from penstock.sql.functions.builtin import FUNCTIONS

    return FunctionRegistry.of(FUNCTIONS)
