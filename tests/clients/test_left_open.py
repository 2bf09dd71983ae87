"""Clients that nobody closed: a producer's records are still written, and a consumer that was dropped is noticed."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import penstock


def test_a_producer_left_open_at_exit_writes_what_waits(bootstrap: str, topic: Callable[..., str]) -> None:
    name = topic()
    code = (
        "import penstock\n"
        f"producer = penstock.Producer(bootstrap_servers={bootstrap!r}, linger_ms=60_000)\n"
        f"for i in range(3): producer.send({name!r}, str(i))\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert "was not closed when Python ended, and sends its last 3 records now" in run.stderr
    with penstock.Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([penstock.TopicPartition(name, 0)])
        values = [record.value for _, record in zip(range(3), consumer, strict=False)]
    assert values == [b"0", b"1", b"2"]


def test_a_producer_dropped_with_records_says_so(
    bootstrap: str, topic: Callable[..., str], caplog: pytest.LogCaptureFixture
) -> None:
    producers = [penstock.Producer(bootstrap_servers=bootstrap, linger_ms=60_000)]
    producers[0].send(topic(), b"1")
    with pytest.warns(ResourceWarning, match="was not closed"):
        _drop(producers)
    assert "dropped without close(), and 1 records with it" in caplog.text


def test_a_consumer_dropped_after_a_poll_warns(bootstrap: str, topic: Callable[..., str]) -> None:
    name = topic()
    consumers = [penstock.Consumer(bootstrap_servers=bootstrap, group_id=f"{name}-left")]
    told: list[bool] = []
    consumers[0].subscribe([name], on_assign=lambda consumer, _: told.append(isinstance(consumer, penstock.Consumer)))
    while not told:
        consumers[0].poll(300)
    assert told == [True]
    with pytest.warns(ResourceWarning, match="was not closed"):
        _drop(consumers)


def _drop(clients: list[Any]) -> None:
    clients.clear()
    gc.collect()
