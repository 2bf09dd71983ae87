from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


PAGES = [([], "configuration.md"), (["metrics"], "metrics.md"), (["clients"], "client-configuration.md")]


@pytest.mark.parametrize(("arguments", "page"), PAGES)
def test_the_page_is_what_the_declarations_say(arguments: list[str], page: str) -> None:
    command = [sys.executable, str(ROOT / "tools" / "generate_config_docs.py"), *arguments]
    printed = subprocess.run(command, capture_output=True, check=True, encoding="utf-8").stdout
    remedy = f"python tools/generate_config_docs.py {' '.join(arguments)} > docs/{page}"
    assert (ROOT / "docs" / page).read_text(encoding="utf-8") == printed, f"out of date; run: {remedy}"
