"""A second server of the same service takes running queries over: the first one's later writes change nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sql.faults.expectations import EVENTS, STATEMENTS, last_totals
from tests.sql.faults.load import Load, prepare, read_topics, wait_for, wait_until_right
from tests.support.brokers import PenstockBroker
from tests.support.sql_servers import SqlServerProcess

LEFT = "Another server runs the query"


@pytest.mark.timeout(900)
def test_the_second_server_goes_on_where_the_first_one_is_fenced(tmp_path: Path) -> None:
    checkpoints = tmp_path / "checkpoints"
    settings = {"ksql.service.id": "pair_", "penstock.sql.checkpoint.uri": checkpoints.as_uri()}
    broker = PenstockBroker(tmp_path / "broker")
    broker.start()
    first = SqlServerProcess(tmp_path / "first", broker.bootstrap, settings)
    second = SqlServerProcess(tmp_path / "second", broker.bootstrap, settings)
    load = Load(broker.bootstrap)
    try:
        prepare(broker.bootstrap)
        first.start()
        first.execute(STATEMENTS, auto_offset_reset="earliest")
        load.start()
        wait_for(
            "the first server has written to every topic",
            lambda: all(read_topics(broker.bootstrap)[each] for each in ("CHOSEN", "TOTALS", "LEVELS")),
            120,
        )
        second.start()
        wait_for("the first server has left its queries", lambda: first.log.read_text().count(LEFT) >= 5, 120)
        load.end()
        topics, wrong = wait_until_right(broker.bootstrap)
        logs = f"{first.log.read_text()[-3000:]}\n{second.log.read_text()[-3000:]}"
        assert not wrong, "\n".join(wrong[:30]) + f"\n{logs}"
        assert LEFT in first.log.read_text(), logs
        assert LEFT not in second.log.read_text(), logs
        assert sorted(second.rows("SELECT user, c, total FROM totals;")) == last_totals(topics[EVENTS])
        assert sorted(first.rows("SELECT user, c, total FROM totals;")) == last_totals(topics[EVENTS])
    finally:
        first.kill()
        second.kill()
        broker.kill()
