"""Idempotence and transactions of one partition: each of Kafka's rules by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.system import SystemClock, SystemFiles
from penstock.base.types import TopicPartition
from penstock.records.batch import CONTROL_MASK, TRANSACTIONAL_MASK, BatchHeader
from penstock.storage.producers.snapshot import SEQUENCE_MODULUS
from penstock.storage.producers.state import CompletedTransaction, ProducerStateManager, snapshot_offset

TP = TopicPartition("orders", 0)
DAY_MS = 86_400_000
NOW_MS = 1_700_000_000_000
SEQUENCE_MAX = SEQUENCE_MODULUS - 1


def make_header(
    sequence: int, *, count: int = 1, producer_id: int = 1, epoch: int = 0, transactional: bool = False
) -> BatchHeader:
    attributes = TRANSACTIONAL_MASK if transactional else 0
    return BatchHeader(0, 49, 0, 2, 0, attributes, count - 1, NOW_MS, NOW_MS, producer_id, epoch, sequence, count)


def make_marker(*, producer_id: int = 1, epoch: int = 0) -> BatchHeader:
    attributes = TRANSACTIONAL_MASK | CONTROL_MASK
    return BatchHeader(0, 49, 0, 2, 0, attributes, 0, NOW_MS, NOW_MS, producer_id, epoch, -1, 1)


@pytest.fixture
def state(tmp_path: Path) -> ProducerStateManager:
    return reopen(tmp_path)


def reopen(directory: Path) -> ProducerStateManager:
    return ProducerStateManager(TP, str(directory), SystemFiles(), SystemClock(), expiration_ms=DAY_MS)


def append(state: ProducerStateManager, header: BatchHeader, *, timestamp: int = NOW_MS) -> int:
    """As a leader does: check, then follow. Returns the first offset."""
    assert state.check(header) is None
    first_offset = state.map_end_offset
    state.update(header, first_offset, first_offset + header.last_offset_delta, timestamp)
    return first_offset


def mark(
    state: ProducerStateManager, header: BatchHeader, *, coordinator_epoch: int = 0, aborted: bool = False
) -> CompletedTransaction | None:
    state.check_control(header, coordinator_epoch)
    return state.update_control(
        header, state.map_end_offset, NOW_MS, coordinator_epoch=coordinator_epoch, is_aborted=aborted
    )


def assert_refused(state: ProducerStateManager, header: BatchHeader, code: ErrorCode) -> None:
    with pytest.raises(KafkaError) as refused:
        state.check(header)
    assert refused.value.code is code
    assert "orders-0" in refused.value.message


@pytest.mark.parametrize("sequence", [0, 17, SEQUENCE_MAX])
def test_the_first_batch_of_an_unknown_producer_may_start_anywhere(state: ProducerStateManager, sequence: int) -> None:
    append(state, make_header(sequence))
    append(state, make_header((sequence + 1) % SEQUENCE_MODULUS))


def test_five_batches_are_remembered_and_their_repeats_get_their_first_offset(state: ProducerStateManager) -> None:
    headers = [make_header(sequence * 3, count=3) for sequence in range(7)]
    offsets = [append(state, header, timestamp=NOW_MS + index) for index, header in enumerate(headers)]
    for index in range(2, 7):
        duplicate = state.check(headers[index])
        assert duplicate is not None
        assert (duplicate.first_offset, duplicate.last_offset) == (offsets[index], offsets[index] + 2)
        assert duplicate.timestamp == NOW_MS + index
    for index in range(2):
        assert_refused(state, headers[index], ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)


def test_a_repeat_must_have_the_same_range(state: ProducerStateManager) -> None:
    append(state, make_header(0, count=3))
    assert_refused(state, make_header(0, count=2), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    assert_refused(state, make_header(1, count=2), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)


def test_a_gap_is_refused_and_changes_nothing(state: ProducerStateManager) -> None:
    append(state, make_header(0))
    assert_refused(state, make_header(2), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    append(state, make_header(1))


def test_sequences_wrap_around_inside_a_batch(state: ProducerStateManager) -> None:
    header = make_header(SEQUENCE_MAX - 1, count=4)
    append(state, header)
    duplicate = state.check(header)
    assert duplicate is not None
    assert (duplicate.first_sequence, duplicate.last_sequence) == (SEQUENCE_MAX - 1, 1)
    append(state, make_header(2))


def test_a_new_epoch_starts_at_sequence_zero(state: ProducerStateManager) -> None:
    append(state, make_header(0))
    assert_refused(state, make_header(1, epoch=1), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    append(state, make_header(0, epoch=1))
    assert_refused(state, make_header(1, epoch=0), ErrorCode.INVALID_PRODUCER_EPOCH)
    append(state, make_header(1, epoch=1))


def test_a_repeat_from_an_older_epoch_is_fenced(state: ProducerStateManager) -> None:
    append(state, make_header(0))
    append(state, make_header(0, epoch=1))
    assert_refused(state, make_header(0, epoch=0), ErrorCode.INVALID_PRODUCER_EPOCH)


def test_producers_do_not_know_each_other(state: ProducerStateManager) -> None:
    append(state, make_header(0, producer_id=1))
    append(state, make_header(9, producer_id=2))
    append(state, make_header(1, producer_id=1))


def test_only_the_epoch_of_a_coordinators_batch_is_checked(state: ProducerStateManager) -> None:
    state.check_coordinator(make_header(-1, transactional=True))
    state.update(make_header(-1, transactional=True, epoch=2), 0, 0, NOW_MS)
    state.check_coordinator(make_header(-1, transactional=True, epoch=2))
    with pytest.raises(KafkaError) as refused:
        state.check_coordinator(make_header(-1, transactional=True, epoch=1))
    assert refused.value.code is ErrorCode.INVALID_PRODUCER_EPOCH


def test_replay_takes_what_the_log_has(state: ProducerStateManager, caplog: pytest.LogCaptureFixture) -> None:
    state.update(make_header(5, epoch=3), 0, 0, NOW_MS, replay=True)
    state.update(make_header(9, epoch=2), 1, 1, NOW_MS, replay=True)
    assert state.producers[1].producer_epoch == 2
    assert "smaller than the last seen epoch 3" in caplog.text


# -- Transactions ------------------------------------------------------------------------------------------------------


def test_a_transaction_is_unstable_until_its_marker_is_replicated(state: ProducerStateManager) -> None:
    append(state, make_header(0, producer_id=9))
    first_offset = append(state, make_header(0, transactional=True))
    append(state, make_header(1, transactional=True))
    assert state.first_unstable_offset == first_offset == 1
    assert state.first_undecided_offset == 1
    completed = mark(state, make_marker())
    assert completed == CompletedTransaction(1, 1, 3, False)
    assert state.last_stable_offset(completed) == 4
    state.complete(completed)
    assert state.first_undecided_offset is None
    assert state.first_unstable_offset == 1
    state.on_high_watermark_updated(3)
    assert state.first_unstable_offset == 1
    state.on_high_watermark_updated(4)
    assert state.first_unstable_offset is None


def test_the_last_stable_offset_stops_at_the_next_open_transaction(state: ProducerStateManager) -> None:
    append(state, make_header(0, producer_id=1, transactional=True))
    append(state, make_header(0, producer_id=2, transactional=True))
    completed = mark(state, make_marker(producer_id=1), aborted=True)
    assert completed == CompletedTransaction(1, 0, 2, True)
    assert state.last_stable_offset(completed) == 1
    state.complete(completed)
    state.on_high_watermark_updated(3)
    assert state.first_unstable_offset == state.first_undecided_offset == 1


def test_a_marker_without_data_completes_nothing(state: ProducerStateManager) -> None:
    assert mark(state, make_marker()) is None
    assert state.first_unstable_offset is None
    assert_refused(state, make_header(3), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    append(state, make_header(0))


def test_sequences_go_on_after_a_marker(state: ProducerStateManager) -> None:
    append(state, make_header(0, transactional=True))
    completed = mark(state, make_marker())
    assert completed is not None
    state.complete(completed)
    append(state, make_header(1, transactional=True))


def test_completing_what_was_never_started_is_a_bug(state: ProducerStateManager) -> None:
    with pytest.raises(ValueError, match="never started"):
        state.complete(CompletedTransaction(1, 0, 1, False))


def test_a_plain_batch_inside_a_transaction_is_refused(state: ProducerStateManager) -> None:
    append(state, make_header(0, transactional=True))
    assert_refused(state, make_header(1), ErrorCode.INVALID_TXN_STATE)
    assert_refused(state, make_header(0, epoch=1), ErrorCode.INVALID_TXN_STATE)


def test_an_older_coordinator_is_fenced(state: ProducerStateManager) -> None:
    mark(state, make_marker(), coordinator_epoch=4)
    with pytest.raises(KafkaError) as refused:
        state.check_control(make_marker(), 3)
    assert refused.value.code is ErrorCode.TRANSACTION_COORDINATOR_FENCED
    state.check_control(make_marker(), 4)


def test_a_marker_of_an_older_epoch_is_fenced(state: ProducerStateManager) -> None:
    mark(state, make_marker(epoch=4))
    with pytest.raises(KafkaError) as refused:
        state.check_control(make_marker(epoch=3), 9)
    assert refused.value.code is ErrorCode.INVALID_PRODUCER_EPOCH


def test_markers_of_transaction_version_2_raise_the_epoch(state: ProducerStateManager) -> None:
    append(state, make_header(0, transactional=True))
    with pytest.raises(KafkaError) as refused:
        state.check_control(make_marker(), 0, transaction_version=2)
    assert refused.value.code is ErrorCode.INVALID_PRODUCER_EPOCH
    state.check_control(make_marker(epoch=1), 0, transaction_version=2)
    completed = mark(state, make_marker(epoch=1))
    assert completed is not None
    state.complete(completed)
    state.check_control(make_marker(epoch=1), 0, transaction_version=2)


# -- Expiry and snapshots ----------------------------------------------------------------------------------------------


def test_idle_producers_expire_but_never_inside_a_transaction(state: ProducerStateManager) -> None:
    append(state, make_header(0, producer_id=1))
    append(state, make_header(0, producer_id=2, transactional=True))
    append(state, make_header(0, producer_id=3), timestamp=NOW_MS + 1)
    assert state.remove_expired(NOW_MS + DAY_MS - 1) == 0
    assert state.remove_expired(NOW_MS + DAY_MS) == 1
    assert set(state.producers) == {2, 3}
    append(state, make_header(77, producer_id=1))


def test_a_snapshot_brings_producers_and_open_transactions_back(state: ProducerStateManager, tmp_path: Path) -> None:
    append(state, make_header(0, producer_id=5, count=3))
    append(state, make_header(0, producer_id=7, transactional=True))
    append(state, make_header(0, producer_id=6, transactional=True))
    path = state.take_snapshot()
    assert path == str(tmp_path / "00000000000000000005.snapshot")
    assert state.take_snapshot() is None

    loaded = reopen(tmp_path)
    loaded.truncate_and_reload(0, 5, NOW_MS)
    assert loaded.map_end_offset == 5
    assert loaded.first_unstable_offset == 3
    duplicate = loaded.check(make_header(0, producer_id=5, count=3))
    assert duplicate is not None
    assert duplicate.first_offset == 0
    assert set(loaded.producers) == {5, 6, 7}


def test_open_transactions_are_loaded_in_the_order_of_their_offsets(
    state: ProducerStateManager, tmp_path: Path
) -> None:
    append(state, make_header(0, producer_id=6))
    append(state, make_header(0, producer_id=7, transactional=True))
    append(state, make_header(1, producer_id=6, transactional=True))
    state.take_snapshot()
    loaded = reopen(tmp_path)
    loaded.truncate_and_reload(0, 3, NOW_MS)
    assert loaded.first_undecided_offset == 1


def test_expired_producers_are_not_loaded(state: ProducerStateManager, tmp_path: Path) -> None:
    append(state, make_header(0, producer_id=1))
    append(state, make_header(0, producer_id=2, transactional=True))
    state.take_snapshot()
    loaded = reopen(tmp_path)
    loaded.truncate_and_reload(0, 2, NOW_MS + DAY_MS)
    assert set(loaded.producers) == {2}


@pytest.mark.parametrize("damage", [b"", b"\0", b"garbage" * 20])
def test_a_corrupt_snapshot_is_removed_for_the_one_before_it(
    state: ProducerStateManager, tmp_path: Path, damage: bytes
) -> None:
    append(state, make_header(0))
    state.take_snapshot()
    append(state, make_header(1))
    newest = Path(state.take_snapshot(sync=False) or "")
    newest.write_bytes(damage)
    loaded = reopen(tmp_path)
    loaded.truncate_and_reload(0, 2, NOW_MS)
    assert not newest.exists()
    assert loaded.map_end_offset == 1
    assert loaded.snapshot_offsets == [1]
    assert loaded.producers[1].last_sequence == 0


def test_without_a_usable_snapshot_the_replay_starts_at_the_log_start(tmp_path: Path) -> None:
    (tmp_path / "00000000000000000009.snapshot").write_bytes(b"x")
    state = reopen(tmp_path)
    state.truncate_and_reload(4, 12, NOW_MS)
    assert state.map_end_offset == 4
    assert state.snapshot_offsets == []


def test_truncation_forgets_what_came_after(state: ProducerStateManager) -> None:
    append(state, make_header(0))
    state.take_snapshot()
    append(state, make_header(1))
    state.take_snapshot()
    append(state, make_header(2, transactional=True))
    state.truncate_and_reload(0, 1, NOW_MS)
    assert state.snapshot_offsets == [1]
    assert state.first_unstable_offset is None
    append(state, make_header(1))


def test_a_new_log_start_drops_its_snapshots_but_not_the_producers(state: ProducerStateManager) -> None:
    append(state, make_header(0))
    state.take_snapshot()
    append(state, make_header(1))
    state.truncate_and_reload(1, 2, NOW_MS)
    assert state.snapshot_offsets == []
    append(state, make_header(2))


def test_a_full_truncation_leaves_nothing(state: ProducerStateManager, tmp_path: Path) -> None:
    append(state, make_header(0, transactional=True))
    state.take_snapshot()
    state.truncate_fully_and_start_at(40)
    assert (state.map_end_offset, state.is_empty, list(tmp_path.iterdir())) == (40, True, [])


def test_stray_snapshots_go_except_one_above_all_segments(tmp_path: Path) -> None:
    state = reopen(tmp_path)
    for offset in (1, 2, 4, 7, 9):
        state.take_snapshot(offset)
    state.remove_stray_snapshots([0, 2, 5])
    assert state.snapshot_offsets == [2, 9]
    state.remove_stray_snapshots([0, 2, 12])
    assert state.snapshot_offsets == [2]


def test_snapshots_go_with_their_segments(tmp_path: Path) -> None:
    state = reopen(tmp_path)
    for offset in (2, 4, 7):
        state.take_snapshot(offset)
    assert state.rename_snapshot_for_deletion(2) == str(tmp_path / "00000000000000000002.snapshot.deleted")
    assert state.rename_snapshot_for_deletion(3) is None
    assert [path.name for path in sorted(tmp_path.iterdir())] == [
        "00000000000000000002.snapshot.deleted",
        "00000000000000000004.snapshot",
        "00000000000000000007.snapshot",
    ]
    assert (state.snapshot_offsets, state.latest_snapshot_offset) == ([4, 7], 7)


@pytest.mark.parametrize(
    ("name", "offset"),
    [
        ("00000000000000000042.snapshot", 42),
        ("42.snapshot", None),
        ("00000000000000000042.snapshot.deleted", None),
        ("0000000000000000004x.snapshot", None),
        ("00000000000000000042.log", None),
    ],
)
def test_names_of_snapshots(name: str, offset: int | None) -> None:
    assert snapshot_offset(name) == offset
