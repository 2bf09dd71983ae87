"""The message modules are what the tool writes, and what the rest of the code may rely on in them."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from penstock.protocol.apis import APIS
from penstock.protocol.schema import VersionRange, element_class, wire_fields

ROOT = Path(__file__).resolve().parents[3]
PROTOCOL = ROOT / "src" / "penstock" / "protocol"


def generator() -> Any:
    path = ROOT / "tools" / "generate_messages.py"
    spec = importlib.util.spec_from_file_location("generate_messages", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["generate_messages"] = module
    spec.loader.exec_module(module)
    return module


def test_the_modules_are_up_to_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = generator()
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    monkeypatch.setattr(tool, "MESSAGES", tmp_path / "messages")
    tool.main()
    ruff = Path(sys.executable).with_name("ruff")
    subprocess.run([ruff, "format", "--quiet", "--config", ROOT / "pyproject.toml", tmp_path], check=True)
    written = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*.py"))
    here = sorted(
        path.relative_to(PROTOCOL) for path in (PROTOCOL / "messages").glob("*.py") if path.name != "__init__.py"
    )
    assert written == sorted([Path("api_table.py"), *here])
    for path in written:
        assert (tmp_path / path).read_text() == (PROTOCOL / path).read_text(), f"run tools/generate_messages.py: {path}"


def test_structures_do_not_contain_themselves() -> None:
    """So that no input, however nested, can recurse: the depth of every message is fixed."""

    def visit(cls: type, above: tuple[type, ...]) -> None:
        assert cls not in above
        for _, wire in wire_fields(cls):
            nested = element_class(cls, wire)
            if nested is not None:
                visit(nested, (*above, cls))

    for api in APIS.values():
        visit(api.request_class(), ())
        visit(api.response_class(), ())


def test_importing_the_protocol_imports_no_message() -> None:
    code = (
        "import sys, penstock.protocol.requests;"
        "print([name for name in sys.modules if name.startswith('penstock.protocol.messages.')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONPATH": str(ROOT / "src")}
    )
    assert done.stdout.strip() == "[]"


def test_version_ranges() -> None:
    assert 3 in VersionRange.parse("3-")
    assert 2 not in VersionRange.parse("3-")
    assert 4 in VersionRange.parse("0-4")
    assert 5 not in VersionRange.parse("0-4")
    assert 7 in VersionRange.parse("7")
    assert 8 not in VersionRange.parse("7")
    assert 0 not in VersionRange.parse("")
