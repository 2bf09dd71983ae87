"""The caller's side of a producer without a network: a topic `t` of three partitions, and steps that need not wait."""

from __future__ import annotations

import random
from collections.abc import Generator
from typing import Any

from penstock.client.core.types import ClusterSnapshot
from penstock.client.producer.accumulator import Accumulator
from penstock.client.producer.delivery import Delivery
from penstock.client.producer.interceptors import Interceptors
from penstock.client.producer.memory import MemoryPool
from penstock.client.producer.partitioner import Sticky
from penstock.client.producer.preparing import Preparing
from penstock.client.producer.record import ProducerRecord
from penstock.client.producer.settings import ProducerSettings
from penstock.serde.resolving import default_serialize


class FakeClock:
    def monotonic(self) -> float:
        return 1.0

    def time_ms(self) -> int:
        return 1_000


def make(memory: int = 100_000, batch_size: int = 500, known: bool = True, **options: Any) -> Preparing:
    pool = MemoryPool(memory)
    accumulator = Accumulator(
        clock=FakeClock(),
        memory=pool,
        delivery_timeout_ms=1_000,
        wake=lambda: None,
        make_keyless=lambda: Sticky(random.Random(1), switch_bytes=batch_size, adaptive=False),
    )
    if known:
        accumulator.topic("t").update(3, [0, 1, 2])
    arguments: dict[str, Any] = {
        "interceptors": Interceptors((), {}),
        "key_serializer": default_serialize,
        "value_serializer": default_serialize,
        "partitioner": None,
    } | options
    return Preparing(
        accumulator=accumulator,
        settings=ProducerSettings(
            batch_size=batch_size, bulk_batch_size=2 * batch_size, buffer_memory=memory, max_request_size=5_000
        ),
        clock=FakeClock(),
        snapshot=ClusterSnapshot,
        **arguments,
    )


def end(steps: Generator[Any, Any, Any]) -> Any:
    """The result of steps that need not wait."""
    try:
        wait = next(steps)
    except StopIteration as stop:
        return stop.value
    raise AssertionError(f"it waits for {wait}")


def send(preparing: Preparing, value: Any = b"v", **fields: Any) -> Delivery:
    delivery: Delivery = end(preparing.sending(ProducerRecord(topic="t", value=value, **fields)))
    return delivery
