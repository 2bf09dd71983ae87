"""Memory for large answers: used again, but never while somebody looks at it."""

from __future__ import annotations

import random

import pytest

from penstock.network import receive_memory
from penstock.network.receive_memory import (
    HEAP_BYTES_MAX,
    KEPT_BYTES_MAX,
    KEPT_COUNT_MAX,
    KEPT_TOTAL_MAX,
    ReceiveMemory,
)

SIZE = 100_000


def test_memory_that_nobody_looks_at_is_used_again() -> None:
    memory = ReceiveMemory()
    first = memory.take(SIZE)
    first[:3] = b"old"
    del first
    assert bytes(memory.take(SIZE - 10)[:3]) == b"old"


@pytest.mark.parametrize("looks", [lambda view: view, lambda view: view[5:9], lambda view: view[1:][1:].toreadonly()])
def test_memory_that_somebody_looks_at_is_not(looks: object) -> None:
    memory = ReceiveMemory()
    kept = looks(memory.take(SIZE))  # type: ignore[operator]
    before = bytes(kept)
    for _ in range(3 * KEPT_COUNT_MAX):
        other = memory.take(SIZE)
        other[:] = b"x" * SIZE
        del other
    assert bytes(kept) == before


def test_a_much_smaller_answer_does_not_take_it() -> None:
    memory = ReceiveMemory()
    memory.take(SIZE)[:3] = b"old"
    assert bytes(memory.take(SIZE // 8)[:3]) != b"old"


def test_an_answer_of_several_partitions_uses_memory_again() -> None:
    """Four partitions at `max.partition.fetch.bytes`, and what is around them."""
    memory = ReceiveMemory()
    memory.take((4 << 20) + 300)[:3] = b"old"
    assert bytes(memory.take((4 << 20) + 500)[:3]) == b"old"


def test_what_is_kept_is_bounded() -> None:
    memory = ReceiveMemory()
    held = [memory.take(KEPT_BYTES_MAX - 1) for _ in range(2 * KEPT_COUNT_MAX)]
    assert len(held) == 2 * KEPT_COUNT_MAX
    assert KEPT_BYTES_MAX <= sum(map(len, memory._kept)) <= KEPT_TOTAL_MAX


@pytest.mark.parametrize("size", [KEPT_BYTES_MAX + 1, HEAP_BYTES_MAX + 1])
def test_very_large_memory_is_not_kept(size: int) -> None:
    memory = ReceiveMemory()
    view = memory.take(size)
    assert len(view) == size
    view[-1] = 7
    assert not memory._kept


def test_without_a_count_of_references_nothing_is_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receive_memory, "_count_references", None)
    memory = ReceiveMemory()
    memory.take(SIZE)[:3] = b"old"
    assert bytes(memory.take(SIZE)[:3]) == bytes(3)


def test_any_order_of_taking_and_letting_go() -> None:
    """Every view keeps what was written into it until it is let go."""
    rng = random.Random(5)
    memory = ReceiveMemory()
    held: list[tuple[memoryview, int]] = []
    for _ in range(500):
        if held and rng.random() < 0.5:
            view, mark = held.pop(rng.randrange(len(held)))
            assert view[0] == view[-1] == mark
            del view
        else:
            view = memory.take(rng.randrange(70_000, 300_000))
            mark = rng.randrange(256)
            view[0] = view[-1] = mark
            held.append((view, mark))
    assert len(memory._kept) <= KEPT_COUNT_MAX
