"""Functions of the user's: plain Python files in a folder, loaded when the server starts.

    from penstock.sql.functions.user import scalar

    @scalar
    def shout(text: str) -> str:
        "The text in capital letters with an exclamation mark."
        return text.upper() + "!"

is SHOUT(STRING) in statements. Types come from the annotations: bool, int (BIGINT), float, str, bytes, the classes of
`datetime`, list[...] and dict[..., ...]; or they are given as text, `Annotated[Decimal, "DECIMAL(10, 2)"]` or
`@scalar(parameters=["DECIMAL(10, 2)"], returns="DECIMAL(10, 2)")`. A null argument gives null without a call, unless
`nulls=True`. A call that raises gives null.

The modules are not put among Python's imported ones, so that Spark sends the functions to its executors by value: they
need not be installed there. What they import must be.
"""

from __future__ import annotations

import datetime
import inspect
import traceback
import types
import typing
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.sql.errors import SemanticError, SqlError
from penstock.sql.functions.model import Parameter, ScalarFunction, Signature
from penstock.sql.parser import parse_type
from penstock.sql.types import BIGINT, BOOLEAN, BYTES, DATE, DOUBLE, STRING, TIME, TIMESTAMP, Array, Map, SqlType

_MARK = "__penstock_function__"

_PLAIN: dict[Any, SqlType] = {
    bool: BOOLEAN,
    int: BIGINT,
    float: DOUBLE,
    str: STRING,
    bytes: BYTES,
    datetime.time: TIME,
    datetime.date: DATE,
    datetime.datetime: TIMESTAMP,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Marked:
    name: str
    description: str
    parameters: tuple[str, ...] | None
    returns: str | None
    nulls: bool


def scalar(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    parameters: Sequence[str] | None = None,
    returns: str | None = None,
    nulls: bool = False,
) -> Any:
    """Marks a function of values; the name in statements is the function's unless another is given."""

    def mark(python: Callable[..., Any]) -> Callable[..., Any]:
        marked = _Marked(
            name=(name or python.__name__).upper(),
            description=description or inspect.getdoc(python) or "",
            parameters=None if parameters is None else tuple(parameters),
            returns=returns,
            nulls=nulls,
        )
        setattr(python, _MARK, marked)
        return python

    return mark if function is None else mark(function)


def load_folder(folder: Path) -> list[ScalarFunction]:
    """Every marked function of every `*.py` in the folder, in the order of the files."""
    if not folder.is_dir():
        raise SemanticError(f"The folder of user functions {folder} does not exist.", hint="Create it or unset it.")
    loaded: dict[str, Path] = {}
    functions = []
    for path in sorted(folder.glob("*.py")):
        for function in _load_file(path):
            if function.name in loaded:
                raise SemanticError(f"Function '{function.name}' is in {loaded[function.name]} and in {path}.")
            loaded[function.name] = path
            functions.append(function)
    return functions


def _load_file(path: Path) -> Iterator[ScalarFunction]:
    module = types.ModuleType(f"penstock_user_functions_{path.stem}")
    module.__file__ = str(path)
    try:
        exec(compile(path.read_bytes(), str(path), "exec"), module.__dict__)
    except Exception as error:
        raise SemanticError(f"The file of user functions {path} cannot be loaded: {_told(error, path)}") from error
    for python in list(vars(module).values()):
        marked = getattr(python, _MARK, None)
        if isinstance(marked, _Marked):
            yield _function(marked, python, path)


def _told(error: Exception, path: Path) -> str:
    """The error with the line of the file it comes from."""
    if isinstance(error, SyntaxError):
        return f"line {error.lineno}: {error.msg}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    place = f"line {lines[-1]}: " if lines else ""
    return f"{place}{type(error).__name__}: {error}"


def _function(marked: _Marked, python: Callable[..., Any], path: Path) -> ScalarFunction:
    try:
        signature = _signature(marked, python)
    except (TypeError, NameError, ValueError, SqlError) as error:
        raise SemanticError(f"Function '{marked.name}' in {path}: {error}") from error
    return ScalarFunction(
        name=marked.name,
        category="USER",
        description=marked.description,
        author=path.name,
        signatures=(signature,),
        python=python,
        strict=not marked.nulls,
    )


def _signature(marked: _Marked, python: Callable[..., Any]) -> Signature:
    declared = list(inspect.signature(python).parameters.values())
    hints = typing.get_type_hints(python, include_extras=True)
    variadic = bool(declared) and declared[-1].kind is inspect.Parameter.VAR_POSITIONAL
    if marked.parameters is not None and len(marked.parameters) != len(declared):
        raise ValueError(f"it has {len(declared)} parameters, but {len(marked.parameters)} types are given")
    parameters = []
    for index, parameter in enumerate(declared):
        given = marked.parameters[index] if marked.parameters is not None else None
        parameters.append(Parameter(parameter.name, _type(given, hints, parameter.name)))
    returns = _type(marked.returns, hints, "return")
    return Signature(parameters=tuple(parameters), returns=returns, variadic=variadic)


def _type(given: str | None, hints: dict[str, Any], name: str) -> SqlType:
    if given is not None:
        return parse_type(given)
    if name not in hints:
        raise TypeError(f"'{name}' has no type: annotate it, or give its type as text")
    return sql_type(hints[name])


def sql_type(annotation: Any) -> SqlType:
    """The type of the language that an annotation stands for."""
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _annotated(arguments)
    if origin is list and arguments:
        return Array(sql_type(arguments[0]))
    if origin is dict and arguments:
        return Map(sql_type(arguments[0]), sql_type(arguments[1]))
    if origin in (typing.Union, types.UnionType):
        return _optional(arguments)
    raise TypeError(f"{annotation} stands for no type; write Annotated[..., 'TYPE']")


def _annotated(arguments: tuple[Any, ...]) -> SqlType:
    text = next((each for each in arguments[1:] if isinstance(each, str)), None)
    return sql_type(arguments[0]) if text is None else parse_type(text)


def _optional(arguments: tuple[Any, ...]) -> SqlType:
    """`str | None` is a STRING: every type has null."""
    kinds = [each for each in arguments if each is not type(None)]
    if len(kinds) != 1:
        raise TypeError("a union of several types stands for no type")
    return sql_type(kinds[0])
