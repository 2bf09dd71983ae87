"""Fixtures that several kinds of test share."""

from __future__ import annotations

import sys
from pathlib import Path

# Test helpers are imported as ``tests.support...`` whatever directory pytest was started in.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
