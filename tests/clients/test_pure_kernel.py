"""The clients where the compiled kernel was not built: the pure one does the same work, in every codec."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TIMEOUT_S = 120


def test_round_trips_without_the_compiled_kernel() -> None:
    """In a process of its own: this one has chosen its kernel already."""
    script = Path(__file__).with_name("without_kernel.py")
    run = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout == "all came back\n"
