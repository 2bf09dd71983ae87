"""The short way of a record into an open batch: in, or not at all."""

from __future__ import annotations

import sys
import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.records.strategies import per_kernel


class World:
    """A topic of two partitions, the second without an open batch."""

    def __init__(self, kernel: SimpleNamespace, size_max: int = 1 << 20, **options: Any) -> None:
        self.writer = kernel.BatchWriter(size_max)
        self.callbacks: list[tuple[Any, Any]] = []
        self.batch = SimpleNamespace(
            writer=self.writer, add_callback=lambda receipt, callback: self.callbacks.append((receipt, callback))
        )
        first = SimpleNamespace(lock=threading.Lock(), open=self.batch)
        second = SimpleNamespace(lock=threading.Lock(), open=None)
        self.topic = SimpleNamespace(count=2, keyless=SimpleNamespace(current=0), queues=(first, second))
        self.way = kernel.ShortWay(
            {"t": self.topic}, kernel.Receipt, time_ns=lambda: 1_234_999_999, read_headers=tuple, **options
        )

    def send(
        self,
        topic: Any = "t",
        value: Any = b"v",
        key: Any = None,
        partition: Any = None,
        timestamp_ms: Any = None,
        headers: Any = None,
        on_delivery: Any = None,
    ) -> Any:
        return self.way.send(topic, value, key, partition, timestamp_ms, headers, on_delivery)


@per_kernel
@given(
    value=st.none() | st.binary(max_size=50),
    key=st.none() | st.binary(max_size=50),
    timestamp=st.none() | st.integers(0, 2**40),
    headers=st.none() | st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=2),
)
def test_a_record_gets_the_place_it_is_told(
    client_kernel: SimpleNamespace, value: Any, key: Any, timestamp: Any, headers: Any
) -> None:
    world, plain = World(client_kernel), client_kernel.BatchWriter(1 << 20)
    for index in range(3):
        receipt = world.send(value=value, key=key, partition=0, timestamp_ms=timestamp, headers=headers)
        stamp = 1234 if timestamp is None else timestamp
        sizes = tuple(-1 if part is None else len(part) for part in (key, value))
        assert type(receipt) is client_kernel.Receipt
        assert receipt._batch is world.batch
        assert (receipt._index, receipt._timestamp, receipt._key_size, receipt._value_size) == (index, stamp, *sizes)
        plain.append(stamp, key, value, headers or ())
    assert world.writer.take() == plain.take()


@pytest.mark.parametrize(
    "record",
    [
        {"topic": "unknown"},
        {"topic": b"t"},
        {"value": "text"},
        {"value": bytearray(b"v")},
        {"key": "text"},
        {"partition": 1},
        {"partition": 2},
        {"partition": -1},
        {"partition": True},
        {"partition": "0"},
    ],
)
def test_what_needs_more_is_left_alone(client_kernel: SimpleNamespace, record: dict[str, Any]) -> None:
    world = World(client_kernel)
    assert world.send(**record, on_delivery=print) is None
    assert (world.writer.count, world.callbacks) == (0, [])


def test_a_way_that_is_closed_and_batches_that_are_gone_take_nothing(client_kernel: SimpleNamespace) -> None:
    world = World(client_kernel)
    world.topic.keyless.current = -1
    assert world.send() is None
    world.topic.keyless.current = 0
    world.topic.count = 0
    assert world.send() is None
    assert world.send(key=b"k") is None
    world.topic.count = 2
    world.way.is_open = False
    assert world.send() is None
    world.way.is_open = True
    assert world.send() is not None
    world.writer.take()
    assert world.send() is None
    world.batch.writer = None
    assert world.send() is None
    assert world.writer.count == 1


def test_a_full_batch_takes_no_more(client_kernel: SimpleNamespace) -> None:
    world = World(client_kernel, size_max=100)
    sent = [world.send(value=bytes(10)) for _ in range(5)]
    assert [receipt._index for receipt in sent if receipt is not None] == [0, 1]


def test_keys_choose_the_partition_unless_they_are_ignored(client_kernel: SimpleNamespace) -> None:
    keys = [b"%d" % number for number in range(20)]
    world = World(client_kernel)
    for key in keys:
        taken = world.send(key=key) is not None
        assert taken == (client_kernel.partition_for_key(key, 2) == 0)
    ignoring = World(client_kernel, ignore_keys=True)
    assert all(ignoring.send(key=key) is not None for key in keys)


def test_callbacks_are_kept_with_their_receipts(client_kernel: SimpleNamespace) -> None:
    world = World(client_kernel)
    receipt = world.send(on_delivery=print)
    assert world.callbacks == [(receipt, print)]
    assert not world.topic.queues[0].lock.locked()


def test_errors_of_headers_and_times_change_nothing(client_kernel: SimpleNamespace) -> None:
    world = World(client_kernel)
    for wrong in ({"headers": 5}, {"timestamp_ms": 2**70}, {"timestamp_ms": "now"}):
        with pytest.raises((TypeError, OverflowError, ValueError)):
            world.send(**wrong)
    assert world.writer.count == 0


def test_a_record_that_raced_with_the_end_of_its_batch_is_in_or_refused(client_kernel: SimpleNamespace) -> None:
    """As `ProducerBatch.close` does: under the lock, bytes first, then the count."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(30):
            world, accepted = World(client_kernel), []

            def work(world: World = world, accepted: list[int] = accepted) -> None:
                while (receipt := world.send()) is not None:
                    accepted.append(receipt._index)

            threads = [threading.Thread(target=work) for _ in range(2)]
            for thread in threads:
                thread.start()
            while not world.writer.count:
                time.sleep(0)
            with world.topic.queues[0].lock:
                data = world.writer.take()
                count = world.writer.count
            for thread in threads:
                thread.join()
            assert sorted(accepted) == list(range(count))
            assert len(data) == world.writer.size
    finally:
        sys.setswitchinterval(before)
