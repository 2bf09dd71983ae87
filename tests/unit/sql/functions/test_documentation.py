"""The page of functions is printed from the table."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from penstock.sql.functions.registry import FunctionRegistry

ROOT = Path(__file__).resolve().parents[4]


def test_the_page_is_up_to_date() -> None:
    printed = subprocess.run(
        [sys.executable, str(ROOT / "tools/generate_function_docs.py")], capture_output=True, text=True, check=True
    )
    assert (ROOT / "docs/sql-functions.md").read_text() == printed.stdout, (
        "run: python tools/generate_function_docs.py > docs/sql-functions.md"
    )


def test_every_function_is_described() -> None:
    undescribed = [function.name for function in FunctionRegistry.builtin().all() if not function.description]
    assert undescribed == []
