"""Cases of expressions as data files, run through the interpreter and through Spark.

A line is `expression => value`, with `:: TYPE` when the type matters and `~ 0.01` when digits do not; or
`expression !! part of the message` for one that is refused. `#` begins a comment. Values are expressions too, of
literals and the simplest functions; NaN and Infinity are written as words.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.sql.expressions.evaluation import compile_expression
from penstock.sql.expressions.nodes import Call, Expression
from penstock.sql.expressions.typing import infer
from penstock.sql.functions.registry import FunctionRegistry
from penstock.sql.parser import parse_expression, parse_type
from penstock.sql.types import SqlType

FOLDER = Path(__file__).parent
FUNCTIONS = FunctionRegistry.builtin()
_WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_TOLERANCE = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    place: str
    text: str
    expected: str = ""
    refused: str | None = None
    type: SqlType | None = None
    tolerance: float = _TOLERANCE

    @property
    def expression(self) -> Expression:
        return parse_expression(self.text)

    @property
    def value(self) -> Any:
        if self.expected in _WORDS:
            return _WORDS[self.expected]
        return compile_expression(parse_expression(self.expected), {}, FUNCTIONS)({})

    @property
    def function(self) -> str | None:
        """The function that the case calls first of all."""
        expression = self.expression
        return expression.name if isinstance(expression, Call) else None


def read_cases(path: Path) -> list[Case]:
    lines = path.read_text().splitlines()
    return [_case(f"{path.name}:{number}", line) for number, line in enumerate(lines, 1) if _is_case(line)]


def _is_case(line: str) -> bool:
    return bool(line.strip()) and not line.startswith("#")


def _case(place: str, line: str) -> Case:
    if " !! " in line:
        text, _, message = line.partition(" !! ")
        return Case(place=place, text=text, refused=message)
    text, _, rest = line.rpartition(" => ") if "=>" in line else (line, "", "")
    rest, _, type_text = rest.partition(" :: ")
    expected, _, tolerance = rest.partition(" ~ ")
    return Case(
        place=place,
        text=text,
        expected=expected.strip(),
        type=parse_type(type_text) if type_text else None,
        tolerance=float(tolerance) if tolerance else _TOLERANCE,
    )


def all_cases() -> list[Case]:
    return [case for path in sorted(FOLDER.glob("*.test")) for case in read_cases(path)]


def type_of(expression: Expression) -> SqlType:
    return infer(expression, {}, FUNCTIONS)


def same(actual: Any, expected: Any, tolerance: float) -> bool:
    """Equal in every part. Doubles may differ in their last digits, and a whole number may stand for a double."""
    if isinstance(expected, list | tuple) and isinstance(actual, list):
        pairs = zip(actual, expected, strict=False)
        return len(actual) == len(expected) and all(same(one, other, tolerance) for one, other in pairs)
    if isinstance(expected, dict) and isinstance(actual, dict):
        return actual.keys() == expected.keys() and all(same(actual[key], expected[key], tolerance) for key in expected)
    if isinstance(actual, float) and isinstance(expected, float):
        return _same_double(actual, expected, tolerance)
    return (type(actual) is type(expected) and bool(actual == expected)) or _same_number(actual, expected)


def _same_double(actual: float, expected: float, tolerance: float) -> bool:
    if math.isnan(expected) or math.isinf(expected):
        return math.isnan(actual) if math.isnan(expected) else actual == expected
    return math.isclose(actual, expected, rel_tol=tolerance, abs_tol=tolerance)


def _same_number(actual: Any, expected: Any) -> bool:
    """A decimal without places may be written as a whole number."""
    numbers = all(not isinstance(each, bool | float | str | type(None)) for each in (actual, expected))
    return numbers and bool(actual == expected)
