"""What `repr` shows of a client, and the names of its metrics."""

from __future__ import annotations

from typing import Any

import pytest

import penstock
from penstock import aio


@pytest.mark.parametrize("kind", ["Producer", "Consumer", "Admin"])
def test_repr_names_client_servers_and_state(kind: str) -> None:
    client: Any = getattr(penstock, kind)(bootstrap_servers="localhost:1", client_id="me")
    with client:
        assert repr(client) == f"<{kind} me of localhost:1, open>"
    assert repr(client) == f"<{kind} me of localhost:1, closed>"
    other = getattr(aio, kind)(bootstrap_servers="localhost:1", client_id="me")
    assert repr(other) == f"<Async{kind} me of localhost:1, open>"


def test_no_metric_has_two_names() -> None:
    with penstock.Producer(bootstrap_servers="localhost:1") as producer:
        names = producer.metrics().keys()
    assert "request-latency-avg" in names
    assert "record-queue-time-avg" in names
    assert not [name for name in names if "-ms-" in name and name.replace("-ms-", "-") in names]
