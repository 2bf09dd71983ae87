"""Child processes whose output goes to a file, so that a failing test can show it and a full pipe cannot stop them."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

STOP_TIMEOUT_S = 30.0


class LoggedProcess:
    """One child. ``wait_until`` gives up at once when the child ends."""

    def __init__(
        self,
        command: Sequence[str | Path],
        log: Path,
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.log = log
        self.command = [str(part) for part in command]
        self._start_of_output = log.stat().st_size if log.exists() else 0
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                self.command,
                cwd=cwd,
                env={**os.environ, **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def output(self) -> str:
        """What this child (not an earlier one with the same log) has printed so far."""
        with self.log.open("rb") as printed:
            printed.seek(self._start_of_output)
            return printed.read().decode(errors="replace")

    def wait_until(self, ready: Callable[[], bool], timeout_s: float, what: str) -> None:
        deadline = time.monotonic() + timeout_s
        while not ready():
            if self.process.poll() is not None:
                raise RuntimeError(f"{what}: ended with {self.process.returncode}\n{self.output()[-4000:]}")
            if time.monotonic() > deadline:
                raise TimeoutError(f"{what}: not ready after {timeout_s:.0f} s\n{self.output()[-4000:]}")
            time.sleep(0.02)

    def stop(self) -> int:
        """SIGTERM and wait; a child that does not end is killed and that is an error."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise TimeoutError(f"{self.command[0]} ignored SIGTERM\n{self.output()[-4000:]}") from None

    def kill(self) -> None:
        """SIGKILL to this child alone."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(STOP_TIMEOUT_S)
