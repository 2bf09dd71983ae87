"""Classes and functions as a reference page tells them: signatures, first paragraphs, texts of fields, short names.

Annotations are taken as they are written. A short name in them (`Offsets`) is looked up in the source of the module
that uses it, because an alias does not know its own name.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import itertools
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any


def summary(thing: Any) -> str:
    """The first paragraph of its text, in one line; an example that would follow is left to `help()`."""
    first = (inspect.getdoc(thing) or "").partition("\n\n")[0]
    text = " ".join(first.split())
    return f"{text.removesuffix('::')}." if text.endswith("::") else text


def example(thing: Any) -> str:
    """The first example in its text: what is indented behind two colons."""
    _, found, rest = (inspect.getdoc(thing) or "").partition("::\n\n")
    lines = itertools.takewhile(lambda line: not line or line.startswith("    "), rest.splitlines() if found else ())
    return textwrap.dedent("\n".join(lines)).strip()


# Signatures.


def signature(name: str, function: Any) -> str:
    """`name(parameters) -> result`, without `self`."""
    told = inspect.signature(function)
    parameters = [each for each in told.parameters.values() if each.name not in ("self", "cls")]
    plain = told.replace(
        parameters=[each.replace(annotation=each.empty, default=each.empty) for each in parameters],
        return_annotation=told.empty,
    )
    text = re.sub(r"\b([a-z]\w*)\b", lambda word: _parameter(told.parameters[word[0]]), str(plain))
    result = _written(told.return_annotation)
    return f"{name}{text.replace('(/, ', '(')}" + (f" -> {result}" if result not in ("", "None") else "")


def _parameter(parameter: inspect.Parameter) -> str:
    annotation = _written(parameter.annotation)
    text = f"{parameter.name}: {annotation}" if annotation else parameter.name
    return text if parameter.default is parameter.empty else f"{text} = {literal(parameter.default)}"


def _written(annotation: Any) -> str:
    if annotation in (inspect.Parameter.empty, None):
        return ""
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation).rpartition(".")[2]


def literal(value: object) -> str:
    """A default as one would write it."""
    return f"{type(value).__name__}.{value.name}" if isinstance(value, Enum) else repr(value)


# Members.


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    name: str
    function: Any
    is_property: bool

    @property
    def annotation(self) -> str:
        return _written(inspect.signature(self.function).return_annotation)


def members(owner: type) -> Iterator[Member]:
    """Public methods and properties of the class and of bases that are ours, as they are declared."""
    seen: set[str] = set()
    for base in owner.__mro__:
        if not base.__module__.startswith("penstock"):
            continue
        for name, value in vars(base).items():
            is_property = isinstance(value, property)
            function = value.fget if is_property else getattr(value, "__func__", value)
            if name.startswith("_") or name in seen or not (is_property or inspect.isroutine(function)):
                continue
            seen.add(name)
            yield Member(name=name, function=function, is_property=is_property)


# Fields.


def fields(owner: type) -> Mapping[str, tuple[str, str]]:
    """Annotation with default, and text, of each public field of the class and of bases that are ours."""
    found: dict[str, tuple[str, str]] = {}
    for base in reversed(owner.__mro__):
        if base.__module__.startswith("penstock"):
            body = _class_body(base)
            for node, text in zip(body, [*map(_text, body[1:]), ""], strict=True):
                if isinstance(node, ast.AnnAssign) and not (name := ast.unparse(node.target)).startswith("_"):
                    default = "" if node.value is None else f" = {ast.unparse(node.value)}"
                    found[name] = (f"{ast.unparse(node.annotation)}{_plain_default(default)}", text)
    return found


def _plain_default(default: str) -> str:
    """A factory of defaults as what it makes, or three dots."""
    made = re.fullmatch(r" = field\(default_factory=(\w+)\)", default)
    if made is not None:
        return f" = {made[1]}()"
    return " = ..." if default.startswith(" = field(") else default


def texts_of_members(owner: type) -> Mapping[str, str]:
    """The text below each member of an enumeration, where there is one."""
    body = _class_body(owner)
    return {
        ast.unparse(node.targets[0]): text
        for node, text in zip(body, [*map(_text, body[1:]), ""], strict=True)
        if isinstance(node, ast.Assign)
    }


def _class_body(owner: type) -> list[ast.stmt]:
    for node in ast.walk(_tree(owner.__module__)):
        if isinstance(node, ast.ClassDef) and node.name == owner.__name__:
            return node.body
    raise LookupError(f"{owner.__qualname__} is not in the source of {owner.__module__}")


def _text(node: ast.stmt) -> str:
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    return " ".join(node.value.value.split()) if is_text else ""  # type: ignore[attr-defined]


# Short names.


def short_names(text: str, module: str) -> dict[str, str]:
    """What the aliases in annotations of a module stand for, those within them included."""
    found: dict[str, str] = {}
    for word in re.findall(r"\b[A-Z]\w+", text):
        meant, home = _alias(word, module)
        if meant:
            found |= {word: meant, **short_names(meant, home)}
    return found


def _alias(name: str, module: str) -> tuple[str, str]:
    """The expression behind a name, and the module where it stands; nothing if the name is no alias of ours."""
    if not module.startswith("penstock"):
        return "", module
    for node in ast.walk(_tree(module)):
        if isinstance(node, ast.Assign) and [ast.unparse(each) for each in node.targets] == [name]:
            return _type_expression(node.value), module
        if isinstance(node, ast.AnnAssign) and node.value is not None and ast.unparse(node.target) == name:
            return _type_expression(node.value), module
        if isinstance(node, ast.ImportFrom) and name in [each.name for each in node.names]:
            return _alias(name, node.module or "")
    return "", module


def _type_expression(node: ast.expr) -> str:
    is_type = isinstance(node, ast.Subscript | ast.BinOp)
    return ast.unparse(node).replace("'", '"') if is_type else ""


@functools.cache
def _tree(module: str) -> ast.Module:
    if module not in sys.modules:
        importlib.import_module(module)
    return ast.parse(inspect.getsource(sys.modules[module]))
