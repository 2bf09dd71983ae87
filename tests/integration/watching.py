"""Looking at a broker from outside: its log lines, its memory, its files; and waiting for a condition."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from tests.support.brokers import PenstockBroker
from tests.support.raw_client import RawClient

T = TypeVar("T")


def wait_for(condition: Callable[[], T], what: str, timeout_s: float = 60.0) -> T:
    """What `condition` gives once that is true."""
    deadline = time.monotonic() + timeout_s
    while not (found := condition()):
        assert time.monotonic() < deadline, f"in vain waited for: {what}"
        time.sleep(0.01)
    return found


def client_lines(broker: PenstockBroker, client: RawClient, since: int = 0) -> list[str]:
    """The lines in the broker's log (from a position on) that are about this connection, once there is at least one."""
    mark = f"client=127.0.0.1:{client.socket.getsockname()[1]}"
    return wait_for(
        lambda: [line for line in broker.output()[since:].splitlines() if line.endswith(mark)],
        f"a log line with {mark}",
    )


def process_id(broker: PenstockBroker) -> int:
    assert broker.process is not None
    return broker.process.process.pid


def resident_bytes(broker: PenstockBroker) -> int:
    """Memory the process holds now."""
    pages = int(Path(f"/proc/{process_id(broker)}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def peak_bytes(broker: PenstockBroker) -> int:
    """The most memory the process has held."""
    for line in Path(f"/proc/{process_id(broker)}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmHWM")


def reset_peak(broker: PenstockBroker) -> None:
    Path(f"/proc/{process_id(broker)}/clear_refs").write_text("5")


def open_files(broker: PenstockBroker) -> int:
    return len(os.listdir(f"/proc/{process_id(broker)}/fd"))
