"""Admission, tasks and the clients' cache: the parts of the source that talk to nobody."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.base.types import TopicPartition
from penstock.sql.spark.source.admission import cut_by_time, proportional, rows_between
from penstock.sql.spark.source.clients import IDLE_S_MAX, KEPT_MAX, ClientCache
from penstock.sql.spark.source.offsets import Offsets, from_json, to_json
from penstock.sql.spark.source.ranges import JOINED_ROWS_MAX, OffsetRange, split, tasks_for

A, B = TopicPartition("a", 0), TopicPartition("a", 1)


def test_offsets_have_the_connectors_shape() -> None:
    offsets = {B: 7, A: 3, TopicPartition("z", 10): 1}
    assert to_json(offsets) == {"a": {"0": 3, "1": 7}, "z": {"10": 1}}
    assert from_json(to_json(offsets)) == offsets


# Admission.


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=5), st.integers(1, 60))
def test_shares_move_every_partition_that_has_records_and_none_behind_its_end(
    spans: list[tuple[int, int]], rows_max: int
) -> None:
    start = {TopicPartition("t", index): begin for index, (begin, _) in enumerate(spans)}
    end = {TopicPartition("t", index): begin + more for index, (begin, more) in enumerate(spans)}
    found = proportional(start, end, rows_max)
    for partition in end:
        assert start[partition] <= found[partition] <= end[partition]
        assert (found[partition] > start[partition]) == (end[partition] > start[partition])
    assert rows_between(start, found) <= rows_max + len(spans)


def log_of(times: dict[TopicPartition, list[int]]) -> tuple[Offsets, object]:
    """Ends, and what a broker would say about times."""

    def offsets_at(time_ms: int) -> Offsets:
        found = {}
        for partition, stamps in times.items():
            found[partition] = next((index for index, each in enumerate(stamps) if each >= time_ms), len(stamps))
        return found

    return {partition: len(stamps) for partition, stamps in times.items()}, offsets_at


def test_partitions_of_a_backlog_advance_together_by_time() -> None:
    """One has a record per second, the other a hundred: by shares, the first would run ahead for hours."""
    times = {A: [second * 1000 for second in range(1000)], B: [tick * 10 for tick in range(100_000)]}
    end, offsets_at = log_of(times)
    found = cut_by_time({A: 0, B: 0}, end, 5_000, 0, 1_000_000, offsets_at)
    assert found is not None
    offsets, reached_ms = found
    assert 2_500 <= rows_between({A: 0, B: 0}, offsets) <= 5_000
    assert all(times[tp][offset - 1] < reached_ms <= times[tp][offset] for tp, offset in offsets.items())


def test_records_of_one_time_cannot_be_cut_by_time() -> None:
    end, offsets_at = log_of({A: [5] * 100, B: [5] * 100})
    assert cut_by_time({A: 0, B: 0}, end, 10, 0, 1_000, offsets_at) is None


@given(st.lists(st.integers(0, 300), min_size=2, max_size=60), st.integers(1, 40))
def test_a_cut_never_takes_more_than_allowed(stamps: list[int], rows_max: int) -> None:
    end, offsets_at = log_of({A: sorted(stamps)})
    found = cut_by_time({A: 0}, end, rows_max, -1, 1_000, offsets_at)
    assert found is None or 0 < found[0][A] <= rows_max


# Tasks.


def ranged(partition: TopicPartition, start: int, end: int) -> OffsetRange:
    return OffsetRange(partition=partition, start=start, end=end)


def test_small_ranges_are_one_task_and_empty_ones_none() -> None:
    tasks = tasks_for([ranged(A, 0, 5), ranged(B, 3, 3), ranged(B, 3, 4)])
    assert [task.ranges for task in tasks] == [(ranged(A, 0, 5), ranged(B, 3, 4))]
    assert tasks_for([ranged(A, 5, 5)]) == []


def test_large_ranges_are_a_task_each() -> None:
    tasks = tasks_for([ranged(A, 0, JOINED_ROWS_MAX), ranged(B, 0, 1)])
    assert [task.ranges for task in tasks] == [(ranged(A, 0, JOINED_ROWS_MAX),), (ranged(B, 0, 1),)]


def test_ranges_are_split_where_more_tasks_are_asked_for() -> None:
    tasks = tasks_for([ranged(A, 0, 300), ranged(B, 0, 100)], min_partitions=4)
    assert [task.ranges[0] for task in tasks] == [
        ranged(A, 0, 100), ranged(A, 100, 200), ranged(A, 200, 300), ranged(B, 0, 100),
    ]  # fmt: skip
    assert max(task.ranges[0].rows for task in tasks_for([ranged(A, 0, 10)], max_records=3)) == 3


@given(st.integers(0, 100), st.integers(1, 100), st.integers(-1, 120))
def test_a_split_range_is_the_same_range(start: int, rows: int, count: int) -> None:
    parts = split(ranged(A, start, start + rows), count)
    assert [each.start for each in parts[1:]] == [each.end for each in parts[:-1]]
    assert (parts[0].start, parts[-1].end) == (start, start + rows)
    assert all(each.rows > 0 for each in parts)


# Clients.


class Client:
    def __init__(self, config: dict[str, object]) -> None:
        self.config = config
        self.is_closed = False

    def close(self) -> None:
        self.is_closed = True


def test_a_client_is_used_again_for_the_same_settings() -> None:
    cache = ClientCache(Client)
    with cache.lent({"a": 1}) as first:
        pass
    with cache.lent({"a": 1}) as second, cache.lent({"a": 1}) as third:
        assert second is first
        assert third is not first


def test_a_client_that_failed_is_closed() -> None:
    cache = ClientCache(Client)
    try:
        with cache.lent({}) as client:
            raise RuntimeError
    except RuntimeError:
        pass
    assert client.is_closed
    with cache.lent({}) as other:
        assert other is not client


def test_idle_and_surplus_clients_are_closed() -> None:
    now = [0.0]
    cache = ClientCache(Client, lambda: now[0])
    made = []
    for number in range(KEPT_MAX + 1):
        with cache.lent({"a": number}) as client:
            made.append(client)
    assert [each.is_closed for each in made] == [True] + [False] * KEPT_MAX
    now[0] = IDLE_S_MAX + 1
    with cache.lent({"a": "new"}) as last:
        pass
    assert [each for each in (*made, last) if not each.is_closed] == [last]
