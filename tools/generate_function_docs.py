"""Print docs/sql-functions.md from the table of functions.

python tools/generate_function_docs.py > docs/sql-functions.md
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from markdown import cell

from penstock.sql.functions.model import AggregateFunction, Function, ScalarFunction, Signature
from penstock.sql.functions.registry import FunctionRegistry

INTRODUCTION = """\
# Functions of streaming SQL

Printed from the table of functions by `python tools/generate_function_docs.py`; change the table, not this page.

Names, signatures and results are those of ksqlDB. `T`, `K`, `V` ... stand for any type, the same wherever the letter
stands in one signature; `STRING...` for any number of arguments. INTEGER widens to BIGINT, that to DECIMAL, that to
DOUBLE where a function asks for it.

A null argument gives null, unless the text says otherwise. An argument that a function refuses (a bad pattern, an
unknown unit, a number that is too large) gives null too; only the part of an expression that failed is null, so that
`COALESCE(CAST(x AS INT), 0)` is 0 for text that is no number. Integers wrap around when they overflow, division by zero
is null.

Most functions run inside Spark; those marked *Python* run in its Python workers, which costs a few microseconds per
row. User functions are Python files in a folder: see `penstock.sql.functions.user`.
"""

KINDS = {
    "SCALAR": "Scalar functions",
    "AGGREGATE": "Aggregate functions",
    "TABLE": "Table functions",
}


def page() -> Iterator[str]:
    functions = FunctionRegistry.builtin().all()
    yield INTRODUCTION
    for kind, title in KINDS.items():
        members = [function for function in functions if function.kind == kind]
        yield f"## {title}\n"
        for category in sorted({function.category for function in members}):
            if kind == "SCALAR":
                yield f"### {category.capitalize()}\n"
            yield from table(function for function in members if function.category == category)
            yield ""


def table(functions: Iterator[Function]) -> Iterator[str]:
    yield "| function | returns | what it does |\n|---|---|---|"
    for function in functions:
        calls = "<br>".join(f"`{each.describe(function.name)}`" for each in function.signatures)
        returns = "<br>".join(f"`{returned(each)}`" for each in function.signatures)
        yield f"| {calls} | {returns} | {cell(function.description)}{remark(function)} |"


def returned(signature: Signature) -> str:
    """What a rule computes is described in words only."""
    return "by its arguments" if callable(signature.returns) else str(signature.returns)


def remark(function: Function) -> str:
    if isinstance(function, ScalarFunction) and function.spark is None:
        return " *Python*"
    return " Streams and tables." if isinstance(function, AggregateFunction) and function.undo else ""


def main() -> None:
    print("\n".join(page()).rstrip())


if __name__ == "__main__":
    main()
