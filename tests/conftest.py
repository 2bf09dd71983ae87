"""Fixtures that several kinds of test share."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from hypothesis import settings

# Test helpers are imported as ``tests.support...`` whatever directory pytest was started in.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

# A busy machine is no failure. Hypothesis says the same by itself in CI, where its choices also repeat.
if "CI" not in os.environ:
    settings.register_profile("local", deadline=None)
    settings.load_profile("local")
