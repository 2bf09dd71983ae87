"""Fetched batches to records: order, offsets, filters, damage."""

from __future__ import annotations

from array import array
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.types import TopicPartition
from penstock.client.consumer.fetching.aborted import AbortedFilter
from penstock.client.consumer.fetching.partition_fetch import PartitionFetch, next_offset_behind
from penstock.records.builder import ControlType, build_batch, end_transaction_marker
from penstock.records.compression import Codec
from penstock.records.kernel import ColumnFiller
from penstock.records.record import ConsumerRecord, Record

TP = TopicPartition("t", 3)


def batch(base: int, count: int, *, codec: Codec = Codec.NONE, epoch: int = 1, **rest: int | bool) -> bytes:
    records = [Record(1000 + base + index, b"k", b"%d" % (base + index)) for index in range(count)]
    return build_batch(records, base_offset=base, codec=codec, leader_epoch=epoch, **rest)  # type: ignore[arg-type]


def marker(base: int, producer_id: int, kind: ControlType = ControlType.COMMIT) -> bytes:
    return end_transaction_marker(
        kind, producer_id=producer_id, producer_epoch=0, coordinator_epoch=0, timestamp=0, base_offset=base,
        leader_epoch=1,
    )  # fmt: skip


def fetch(
    data: bytes, *, offset: int = 0, aborted: list[tuple[int, int]] | None = None, check_crcs: bool = True
) -> PartitionFetch:
    # Something before and behind, as in a frame.
    frame = b"\x55" * 7 + data + b"\xaa" * 5
    return PartitionFetch(
        TP,
        frame,
        7,
        7 + len(data),
        offset=offset,
        epoch=-1,
        aborted=None if aborted is None else AbortedFilter(aborted),
        check_crcs=check_crcs,
    )


def drain(one: PartitionFetch, count: int = 1000) -> list[ConsumerRecord]:
    taken: list[ConsumerRecord] = []
    while more := one.take(count):
        assert one.next_offset > more[-1].offset
        taken += more
    return taken


def offsets(records: list[ConsumerRecord]) -> list[int]:
    return [record.offset for record in records]


@pytest.mark.parametrize("codec", list(Codec))
def test_records_come_in_order_with_all_their_fields(codec: Codec) -> None:
    one = fetch(batch(10, 3, codec=codec) + batch(13, 2, codec=codec, epoch=2), offset=10)
    taken = drain(one)
    assert taken[0] == ConsumerRecord("t", 3, 10, 1010, 0, b"k", b"10", (), 1)
    assert offsets(taken) == [10, 11, 12, 13, 14]
    assert (one.next_offset, one.last_epoch) == (15, 2)
    assert one.is_drained


def test_records_before_the_position_are_left_out() -> None:
    assert offsets(drain(fetch(batch(10, 5), offset=12))) == [12, 13, 14]
    assert offsets(drain(fetch(batch(0, 5) + batch(5, 5), offset=7))) == [7, 8, 9]


def test_a_batch_is_given_in_slices() -> None:
    one = fetch(batch(0, 5))
    assert offsets(one.take(2)) == [0, 1]
    assert one.next_offset == 2
    assert offsets(one.take(2)) == [2, 3]
    assert not one.is_drained
    assert offsets(one.take(2)) == [4]
    assert one.is_drained


def test_a_batch_that_is_cut_off_is_for_the_next_fetch() -> None:
    whole, cut = batch(0, 3), batch(3, 3)[:-1]
    one = fetch(whole + cut)
    assert offsets(drain(one)) == [0, 1, 2]
    assert (one.next_offset, one.is_drained) == (3, True)
    data = whole + cut
    assert next_offset_behind(data, 0, len(data)) == 3
    assert next_offset_behind(cut, 0, len(cut)) is None
    assert next_offset_behind(b"", 0, 0) is None


def test_control_batches_are_skipped_and_counted() -> None:
    marker = end_transaction_marker(
        ControlType.COMMIT, producer_id=1, producer_epoch=0, coordinator_epoch=0, timestamp=0, base_offset=2
    )
    one = fetch(batch(0, 2, producer_id=1, producer_epoch=0, base_sequence=0, transactional=True) + marker)
    assert offsets(drain(one)) == [0, 1]
    assert one.next_offset == 3


def test_an_empty_batch_of_compaction_moves_the_position() -> None:
    records: list[Record] = []
    one = fetch(build_batch(records, base_offset=4) + batch(5, 1), offset=4)
    assert offsets(drain(one)) == [5]


def test_damage_is_told_when_it_is_reached() -> None:
    good, bad = batch(0, 2), bytearray(batch(2, 2))
    bad[-1] ^= 1
    one = fetch(good + bytes(bad))
    assert offsets(one.take(10)) == [0, 1]
    for _ in range(2):
        with pytest.raises(KafkaError, match="offset 2 of t-3 is damaged: its checksum") as caught:
            one.take(10)
        assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
    assert one.next_offset == 2


def test_the_checksum_is_looked_at_only_on_request() -> None:
    bad = bytearray(batch(0, 1))
    bad[17] ^= 1
    assert len(drain(fetch(bytes(bad), check_crcs=False))) == 1


@pytest.mark.parametrize("position", [8, 16])
def test_what_is_no_batch_is_damage(position: int) -> None:
    bad = bytearray(batch(0, 1))
    bad[position] = 0xFF
    with pytest.raises(KafkaError, match="no record batch"):
        fetch(bytes(bad)).take(1)


@given(st.binary(min_size=61, max_size=300), st.booleans())
def test_noise_is_refused_or_skipped(noise: bytes, check_crcs: bool) -> None:
    one = fetch(noise, check_crcs=check_crcs)
    with suppress(KafkaError):
        drain(one)


def test_a_batch_begun_by_records_can_be_ended_as_columns() -> None:
    one = fetch(batch(0, 5) + batch(5, 1))
    assert offsets(one.take(2)) == [0, 1]
    filler = ColumnFiller(2)
    one.fill(filler, 0)
    assert array("q", bytes(filler.take().offsets)).tolist() == [2, 3]
    assert one.next_offset == 4
    filler = ColumnFiller(1)
    one.fill(filler, 0)
    assert array("q", bytes(filler.take().offsets)).tolist() == [4]
    assert offsets(drain(one)) == [5]


def columns(one: PartitionFetch, rows_max: int) -> list[int]:
    """The offsets of everything, through fillers of so many rows."""
    taken: list[int] = []
    while True:
        filler = ColumnFiller(rows_max)
        one.fill(filler, 0)
        if not filler.rows:
            return taken
        taken += array("q", bytes(filler.take().offsets))
        assert one.next_offset > taken[-1]


@pytest.mark.parametrize("rows_max", [1, 2, 3, 1000])
@pytest.mark.parametrize("offset", [0, 2, 4])
def test_columns_hold_what_records_do(rows_max: int, offset: int) -> None:
    data = (
        batch(0, 3)
        + batch(3, 2, codec=Codec.LZ4, epoch=2)
        + marker(5, 7)
        + batch(6, 2, transactional=True, producer_id=7, producer_epoch=0, base_sequence=0)
        + marker(8, 7, ControlType.ABORT)
        + batch(9, 3, epoch=4)
        + batch(12, 5)[:-1]
    )
    for aborted in (None, [(7, 6)]):
        expected = fetch(data, offset=offset, aborted=aborted)
        one = fetch(data, offset=offset, aborted=aborted)
        assert columns(one, rows_max) == offsets(drain(expected))
        assert (one.next_offset, one.last_epoch, one.is_drained) == (12, 4, expected.is_drained)


def test_columns_stop_before_damage() -> None:
    bad = bytearray(batch(2, 1))
    bad[-1] ^= 1
    one = fetch(batch(0, 2) + bytes(bad))
    filler = ColumnFiller(10)
    with pytest.raises(KafkaError, match="checksum"):
        one.fill(filler, 0)
    assert (filler.rows, one.next_offset) == (2, 2)


def test_a_record_that_cannot_be_converted_stops_before_itself() -> None:
    def convert(records: list[ConsumerRecord]) -> tuple[list[ConsumerRecord], Exception | None]:
        done = [record for record in records if record.offset < 2]
        return done, (KafkaError(ErrorCode.INVALID_RECORD) if len(done) < len(records) else None)

    one = fetch(batch(0, 5))
    assert offsets(one.take(10, convert)) == [0, 1]
    for _ in range(2):
        with pytest.raises(KafkaError):
            one.take(10, convert)
    assert one.next_offset == 2


# Transactions, held against a model that decides by the whole log.

_EVENTS = st.lists(
    st.tuples(st.integers(1, 3), st.sampled_from(["write", "write", "commit", "abort", "plain"])), max_size=30
)


class ModelLog:
    """A log of several producers; knows of every record how its transaction ended."""

    def __init__(self, events: list[tuple[int, str]]) -> None:
        self.data: list[tuple[int, bytes]] = []
        self.aborted: list[tuple[int, int, int]] = []
        self.visible: list[int] = []
        self.stable = 0
        open_: dict[int, list[int]] = {}
        offset = 0
        for producer, event in events:
            if event == "write":
                open_.setdefault(producer, []).append(offset)
                self._add(offset, producer, transactional=True)
            elif event == "plain":
                self.visible.append(offset)
                self._add(offset, -1, transactional=False)
            elif producer in open_:
                written = open_.pop(producer)
                if event == "commit":
                    self.visible += written
                else:
                    self.aborted.append((producer, written[0], offset))
                kind = ControlType.COMMIT if event == "commit" else ControlType.ABORT
                self.data.append((offset, _marker(kind, producer, offset)))
            else:
                continue
            offset += 1
        self.stable = min((written[0] for written in open_.values()), default=offset)

    def _add(self, offset: int, producer: int, *, transactional: bool) -> None:
        epoch = 0 if producer >= 0 else -1
        data = batch(
            offset, 1, producer_id=producer, producer_epoch=epoch, base_sequence=epoch, transactional=transactional
        )
        self.data.append((offset, data))

    def read(self, start: int) -> tuple[bytes, list[tuple[int, int]]]:
        """What a broker answers a reader of committed records."""
        data = b"".join(data for offset, data in self.data if start <= offset < self.stable)
        overlapping = [(producer, first) for producer, first, last in self.aborted if last >= start]
        return data, [each for each in overlapping if each[1] < self.stable]


def _marker(kind: ControlType, producer: int, offset: int) -> bytes:
    return end_transaction_marker(
        kind, producer_id=producer, producer_epoch=0, coordinator_epoch=0, timestamp=0, base_offset=offset
    )


@given(_EVENTS, st.integers(0, 30), st.integers(1, 3))
def test_read_committed_gives_what_was_committed_and_nothing_else(
    events: list[tuple[int, str]], start: int, count: int
) -> None:
    log = ModelLog(events)
    data, aborted = log.read(start)
    one = fetch(data, offset=start, aborted=aborted)
    assert offsets(drain(one, count)) == [each for each in sorted(log.visible) if start <= each < log.stable]
    assert one.next_offset == max(log.stable, start)
