from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import penstock

ROOT = Path(__file__).resolve().parents[3]


PAGES = [
    ([], "configuration.md"),
    (["metrics"], "metrics.md"),
    (["clients"], "client-configuration.md"),
    (["sql"], "sql-configuration.md"),
]


@pytest.mark.parametrize(("arguments", "page"), PAGES)
def test_the_page_is_what_the_declarations_say(arguments: list[str], page: str) -> None:
    command = [sys.executable, str(ROOT / "tools" / "generate_config_docs.py"), *arguments]
    printed = subprocess.run(command, capture_output=True, check=True, encoding="utf-8").stdout
    remedy = f"python tools/generate_config_docs.py {' '.join(arguments)} > docs/{page}"
    assert (ROOT / "docs" / page).read_text(encoding="utf-8") == printed, f"out of date; run: {remedy}"


REFERENCE = ROOT / "docs" / "client-reference.md"


def test_the_clients_reference_is_what_signatures_and_docstrings_say() -> None:
    command = [sys.executable, str(ROOT / "tools" / "generate_client_reference.py")]
    printed = subprocess.run(command, capture_output=True, check=True, encoding="utf-8").stdout
    assert REFERENCE.read_text(encoding="utf-8") == printed, "out of date; run: make docs"


def test_the_clients_reference_has_every_public_name() -> None:
    page = REFERENCE.read_text(encoding="utf-8")
    names: list[str] = vars(penstock)["__all__"]
    missing = [name for name in names if f"### {name}\n" not in page and f"| `{name}` |" not in page]
    assert missing == ["__version__"]
    methods = [name for name in vars(penstock.Admin) if not name.startswith("_")]
    assert [name for name in methods if f"- `{name}(" not in page and f"- `{name}:" not in page] == []


def test_make_docs_prints_every_page() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    pages = [page for page in (ROOT / "docs").glob("*.md") if "rinted " in page.read_text(encoding="utf-8")[:300]]
    assert len(pages) >= 5
    assert [page.name for page in pages if f"> docs/{page.name}" not in makefile] == []
