"""A directory outside the checkout where fetched peers are kept, safe for parallel test workers.

Every entry is made once: under a file lock, in a directory that counts only when its marker file is there. A process
killed in the middle leaves no marker, so the next one starts that entry anew.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

MARKER = ".complete"
ATTEMPTS = 3


class PeerMissingError(Exception):
    """A foreign tool cannot be had here; says why, and what would help."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(f"{reason}; {remedy}")
        self.reason = reason
        self.remedy = remedy


def cache_root() -> Path:
    """``$PENSTOCK_CACHE``, or the user's cache directory."""
    chosen = os.environ.get("PENSTOCK_CACHE")
    return Path(chosen) if chosen else Path.home() / ".cache" / "penstock" / "peers"


def say(text: str) -> None:
    """Progress of a long step."""
    print(f"peers: {text}", file=sys.stderr, flush=True)


def digest(paths: Sequence[Path], *more: str) -> str:
    """A short name for the content of some files."""
    hasher = hashlib.sha256("\0".join(more).encode())
    for path in sorted(paths):
        hasher.update(path.name.encode())
        hasher.update(path.read_bytes())
    return hasher.hexdigest()[:12]


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds an exclusive lock on a file among processes; the kernel drops it when the holder dies."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def entry(name: str, what: str, make: Callable[[Path], None]) -> Path:
    """The directory of a cache entry, made by ``make(directory)`` when it is not complete yet."""
    directory = cache_root() / name
    if (directory / MARKER).exists():
        return directory
    with locked(cache_root() / f"{name}.lock"):
        if (directory / MARKER).exists():
            return directory
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        started = time.monotonic()
        say(f"{what}: fetching into {directory}")
        make(directory)
        (directory / MARKER).touch()
        say(f"{what}: done in {time.monotonic() - started:.1f} s")
    return directory


def fetch(
    command: Sequence[str | Path],
    *,
    what: str,
    remedy: str,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout_s: float = 600,
) -> None:
    """Runs a command which talks to a registry, again when it fails: networks do."""
    output = ""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            run = subprocess.run(
                [str(part) for part in command],
                cwd=cwd,
                env={**os.environ, **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            output = f"no end after {timeout_s:.0f} s"
        else:
            if run.returncode == 0:
                return
            output = run.stdout.strip()
        say(f"{what}: attempt {attempt} of {ATTEMPTS} failed: {output[-500:]}")
        time.sleep(2 * attempt)
    raise PeerMissingError(f"{what} could not be fetched: {output[-300:]}", remedy)
