"""Cases that are put to Apache Kafka and to Penstock, and whose answers must say the same in every served version.

A case is a function of a peer and a version that gives an answer or a list of answers. A case that `deviates` is a
known difference: it must differ, and its text says why that is so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from penstock.protocol.apis import ApiKey
from tests.integration.sample_requests import SERVED
from tests.integration.side_by_side import Peer, differences
from tests.support.brokers import KafkaBroker, PenstockBroker

CaseFunction = Callable[[Peer, int], Any]
Peers = tuple[Peer, Peer]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    name: str
    ask: CaseFunction
    versions: range
    deviates: str | None

    def check(self, peers: Peers) -> None:
        found = []
        for version in self.versions:
            kafka, ours = (peer.comparable(self.ask(peer, version)) for peer in peers)
            found += [f"version {version}{line}" for line in differences(kafka, ours)]
        if self.deviates is None:
            assert not found, "\n".join(found)
        else:
            assert found, f"no longer a deviation: {self.deviates}"


class Cases:
    def __init__(self) -> None:
        self._cases: list[Case] = []

    def add(
        self,
        name: str,
        api: ApiKey,
        ask: CaseFunction,
        *,
        since: int = 0,
        until: int = 99,
        deviates: str | None = None,
    ) -> None:
        served = SERVED[api]
        versions = range(max(since, served.start), min(until + 1, served.stop))
        self._cases.append(Case(name=f"{api.name.lower()}: {name}", ask=ask, versions=versions, deviates=deviates))

    def parameters(self) -> list[Any]:
        return [pytest.param(each, id=each.name) for each in self._cases]


@contextmanager
def both_brokers(
    tmp_path_factory: pytest.TempPathFactory, prepare: Callable[[Peer], None], **settings: str
) -> Iterator[Peers]:
    overrides = {name.replace("_", "."): value for name, value in settings.items()}
    kafka = KafkaBroker(tmp_path_factory.mktemp("kafka"), overrides)
    ours = PenstockBroker(tmp_path_factory.mktemp("penstock"), {"node.id": "1", **overrides})
    try:
        with ThreadPoolExecutor() as pool:
            for starting in [pool.submit(kafka.start), pool.submit(ours.start)]:
                starting.result()
        both = Peer(kafka), Peer(ours)
        for peer in both:
            prepare(peer)
        yield both
        for peer in both:
            peer.close()
    finally:
        kafka.kill()
        ours.kill()
