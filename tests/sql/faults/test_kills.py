"""Exactly once under kill -9: of the SQL server, of its Java, of the broker, at random moments under load.

`PENSTOCK_SEED` and `PENSTOCK_KILLS` choose another run.
"""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest

from tests.sql.faults.expectations import EVENTS, STATEMENTS, last_totals, last_windows
from tests.sql.faults.load import Load, prepare, wait_until_right
from tests.support.brokers import PenstockBroker
from tests.support.sql_servers import SqlServerProcess


def disturb(seed: int, kills: int, broker: PenstockBroker, server: SqlServerProcess) -> list[str]:
    """Kill one after the other at random moments; what was killed is started again at once. What was done."""
    chance = random.Random(seed)
    story = []
    victims = (["server", "java", "broker"] * (kills // 3 + 1))[:kills]
    chance.shuffle(victims)
    for victim in victims:
        pause_s = chance.uniform(1.0, 7.0)
        time.sleep(pause_s)
        story.append(f"{victim} after {pause_s:.1f} s")
        if victim == "broker":
            broker.kill()
            broker.start()
        elif victim == "java":
            server.kill_java()
        else:
            server.kill()
            server.start()
    return story


@pytest.mark.timeout(900)
def test_output_is_that_of_an_undisturbed_run(tmp_path: Path) -> None:
    seed, kills = int(os.environ.get("PENSTOCK_SEED", "1")), int(os.environ.get("PENSTOCK_KILLS", "6"))
    broker = PenstockBroker(tmp_path / "broker")
    broker.start()
    server = SqlServerProcess(tmp_path / "server", broker.bootstrap)
    load = Load(broker.bootstrap)
    try:
        prepare(broker.bootstrap)
        server.start()
        server.execute(STATEMENTS, auto_offset_reset="earliest")
        load.start()
        story = disturb(seed, kills, broker, server)
        load.end()
        topics, wrong = wait_until_right(broker.bootstrap)
        assert not wrong, f"seed {seed}, {story}:\n" + "\n".join(wrong[:30]) + f"\n{server.log.read_text()[-6000:]}"
        assert sorted(server.rows("SELECT user, c, total FROM totals;")) == last_totals(topics[EVENTS])
        assert sorted(server.rows("SELECT user, WINDOWSTART, c, total FROM per_window;")) == last_windows(
            topics[EVENTS]
        )
        assert "Traceback" not in server.log.read_text()
    finally:
        server.kill()
        broker.kill()
