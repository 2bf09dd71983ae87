"""pytest imports the plugin in every project; it must bring nothing with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from tests.support.brokers import ROOT


def test_the_plugin_loads_no_broker_and_no_protocol() -> None:
    program = (
        "import sys, json, pytest; before = set(sys.modules); import penstock.testing.plugin; "
        "print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    loaded = json.loads(done.stdout)
    assert [name for name in loaded if name.startswith("penstock")] == [
        "penstock",
        "penstock.testing",
        "penstock.testing.plugin",
    ]
    assert "asyncio" not in loaded
