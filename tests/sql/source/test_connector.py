"""Spark's own Kafka connector, the second implementation of the source, gives the same rows."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock import Consumer, Producer
from penstock.testing import EphemeralBroker
from tests.sql.source.connector_jars import connector_jars
from tests.support.cache import PeerMissingError

DRIVER = Path(__file__).parent / "connector_driver.py"


@pytest.mark.timeout(280)
def test_both_implementations_give_the_same_rows(
    kafka: EphemeralBroker, new_topic: Callable[..., str], tmp_path: Path
) -> None:
    try:
        jars = ",".join(map(str, connector_jars()))
    except PeerMissingError as missing:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(missing))
    topic, log = new_topic(2), new_topic()
    with Producer(bootstrap_servers=kafka.bootstrap_servers, transactional_id=topic) as producer:
        producer.init_transactions()
        for commits in (True, False, True):
            producer.begin_transaction()
            for number in range(40):
                producer.send(topic, b'{"id":%d,"Name":"n"}' % number, key=b"k%d" % number, headers=[("h", b"1")])
            producer.send(topic, None, key=b"gone")
            producer.send(topic, b"{bad", key=b"bad")
            if commits:
                producer.commit_transaction()
            else:
                producer.abort_transaction()
    run = subprocess.run(
        [sys.executable, DRIVER, kafka.bootstrap_servers, topic, log, tmp_path, jars],
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-4000:]
    assert run.stdout.split() == ["records", "84", "rows", "82"]
    with Consumer(bootstrap_servers=kafka.bootstrap_servers, auto_offset_reset="earliest") as consumer:
        consumer.assign([(log, 0)])
        assert len(consumer.poll(10_000)) == 4
