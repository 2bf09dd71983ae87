"""What the guide says of metrics is so: every name in its table is there, and rates and averages move."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path

from penstock import Consumer, Producer
from tests.clients.consuming import read
from tests.clients.support import TopicMaker

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "clients.md"


def documented(kind: str) -> Iterator[str]:
    """The names in one line of the table, written out."""
    (line,) = re.findall(rf"^\| {kind} \| (.*) \|$", GUIDE.read_text(), re.MULTILINE)
    for name in re.findall("`([^`]+)`", line):
        if name.endswith("-*"):
            yield from (name.replace("-*", "-rate"), name.replace("-*", "-total"))
        elif name.endswith("-avg/-max"):
            yield from (name.removesuffix("/-max"), name.replace("-avg/-max", "-max"))
        elif not name.startswith("-"):
            yield name


def missing(kind: str, found: dict[str, float], topic: str) -> set[str]:
    return {name.replace("orders", topic) for name in documented(kind)} - found.keys()


def test_every_metric_of_the_guide_is_there(bootstrap: str, topic: TopicMaker) -> None:
    name = topic()
    with Producer(bootstrap_servers=bootstrap) as producer:
        for number in range(50):
            producer.send(name, str(number))
        producer.flush(30)
        sent = producer.metrics()
    with Consumer(bootstrap_servers=bootstrap, group_id=name, auto_offset_reset="earliest") as consumer:
        consumer.subscribe([name])
        read(consumer, 50)
        consumer.commit()
        got = consumer.metrics()
    for kinds, found in ((("connections", "producer"), sent), (("connections", "consumer", "group"), got)):
        for kind in kinds:
            assert not missing(kind, found, name), kind
    assert (sent["record-send-total"], got["records-consumed-total"]) == (50, 50)
    for found, busy in ((sent, "record-send-rate"), (got, "bytes-consumed-rate"), (got, "commit-latency-max")):
        assert found[busy] > 0
    assert math.isnan(sent["produce-throttle-time-avg"])
