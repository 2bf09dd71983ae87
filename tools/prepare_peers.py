"""Fetches the foreign clients and tools that the tests talk to. Quick when all of them are cached.

What cannot be had on this machine is named with its remedy and is no failure here: the tests which need it skip, or
fail when ``CI=true``.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.support import peers
from tests.support.cache import cache_root, say


def main() -> int:
    started = time.monotonic()
    missing = peers.prepare_all()
    for text in dict.fromkeys(f"{problem.reason}. Remedy: {problem.remedy}" for problem in missing):
        say(f"skipped: {text}")
    ready = len(peers.ALL) - len(missing)
    say(f"{ready} of {len(peers.ALL)} ready in {cache_root()} after {time.monotonic() - started:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
