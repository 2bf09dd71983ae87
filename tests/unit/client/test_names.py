"""What `penstock` and `penstock.aio` offer: every name is found, type checkers see the same, and importing is cheap."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import penstock
import penstock.aio

CLIENTS = {"Admin", "Consumer", "MessageStream", "MessageStreams", "ParallelConsumer", "Producer"}


@pytest.mark.parametrize("name", penstock.__all__)
def test_every_name_is_found(name: str) -> None:
    assert getattr(penstock, name) is not None


@pytest.mark.parametrize("name", penstock.aio.__all__)
def test_asyncio_has_the_same_names(name: str) -> None:
    value = getattr(penstock.aio, name)
    if name in CLIENTS:
        assert value.__name__ == f"Async{name}"
    else:
        assert value is getattr(penstock, name)


@pytest.mark.parametrize("module", [penstock, penstock.aio], ids=["penstock", "penstock.aio"])
def test_type_checkers_see_the_same_names(module: ModuleType) -> None:
    assert module.__file__ is not None
    stub = Path(module.__file__).with_suffix(".pyi").read_text()
    told = {name for node in ast.parse(stub).body for name in _offered(node)}
    assert told == set(module.__all__) - {"__version__"}


def _offered(node: ast.stmt) -> list[str]:
    """Names that a stub offers: `import x as x`, and assignments."""
    if isinstance(node, ast.ImportFrom):
        return [alias.asname for alias in node.names if alias.asname is not None]
    return [target.id for target in getattr(node, "targets", ()) if isinstance(target, ast.Name)]


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        _ = penstock.Nonsense  # type: ignore[attr-defined,unused-ignore]
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        _ = penstock.aio.Nonsense  # type: ignore[attr-defined,unused-ignore]


def test_importing_brings_nothing_else_along() -> None:
    code = "import sys; old = set(sys.modules); import penstock, penstock.aio; print(sorted(set(sys.modules) - old))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout.strip() in ("['__future__', 'penstock', 'penstock.aio']", "['penstock', 'penstock.aio']")


NOT_FOR_USERS = {"Submit", "Key", "NetworkError", "Order", "StreamBuffer"}
"""Nobody makes one or asks for one: they are the inside of `admin.submit`, of a configuration, of network errors, of
parallel consumption (where the order is a word) and of message streams."""


def test_every_type_of_a_public_signature_is_offered() -> None:
    """Results and arguments of `Admin` were only in `penstock.client.admin`."""
    missing = {
        f"{each.__name__} ({where})"
        for module in (penstock, penstock.aio)
        for name in module.__all__
        for where, each in _types_told_by(name, getattr(module, name))
        if getattr(module, each.__name__, None) is not each
        and getattr(penstock.aio, each.__name__.removeprefix("Async"), None) is not each
    }
    assert {each for each in missing if each.partition(" ")[0] not in NOT_FOR_USERS} == set()


def _types_told_by(name: str, owner: object) -> Iterator[tuple[str, type]]:
    """Our classes in the annotations of a public function, or of a class's public members."""
    if not isinstance(owner, type):
        yield from ((name, each) for each in _told(owner)) if inspect.isfunction(owner) else ()
        return
    for base in owner.__mro__:
        fields = vars(base).get("__annotations__", {})
        shown = {key: text for key, text in fields.items() if not key.startswith("_")}
        if "penstock" in base.__module__:
            yield from ((f"{name}: {key}", each) for key, text in shown.items() for each in _found(str(text), base))
    for key in dir(owner):
        member = getattr(owner, key)
        function = member.fget if isinstance(member, property) else member
        is_public = not key.startswith("_") or (key == "__init__" and name in CLIENTS)
        if is_public and callable(function) and hasattr(function, "__module__"):
            yield from ((f"{name}.{key}", each) for each in _told(function))


def _told(function: Any) -> Iterator[type]:
    try:
        signature = str(inspect.signature(function))
    except ValueError:
        return
    yield from _found(signature, inspect.unwrap(function))


def _found(text: str, owner: Any) -> Iterator[type]:
    names = getattr(sys.modules.get(owner.__module__), "__dict__", {})
    for word in set(re.findall(r"\b[A-Z]\w+", text)):
        value = names.get(word)
        if isinstance(value, type) and value.__module__.startswith("penstock."):
            yield value
