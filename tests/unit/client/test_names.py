"""What `penstock` and `penstock.aio` offer: every name is found, type checkers see the same, and importing is cheap."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from types import ModuleType

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
