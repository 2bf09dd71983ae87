"""Opening a log after a clean stop, after a crash, and with damaged files."""

from __future__ import annotations

import random
import shutil
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.system import SystemFiles
from penstock.records.batch import iter_batches
from penstock.records.builder import ControlType
from penstock.records.compression import Codec
from penstock.storage.leader_epochs import LeaderEpochCache
from penstock.storage.log import Log
from penstock.storage.producers.state import ProducerStateManager
from penstock.storage.recovery import loader as recovery
from penstock.storage.segments.segment import Segment
from tests.unit.storage.core.building import (
    START_MS,
    TP,
    append,
    append_marker,
    offsets,
    open_log,
    read_all,
    reopen,
    small_segments,
)

CONFIG = small_segments()


def fill(directory: Path, batches: int = 60) -> Log:
    """Batches of one to three records with every codec and timestamps out of order, from two producers."""
    log = open_log(directory, config=CONFIG)
    rng = random.Random(7)
    sequences = {1: 0, 2: 0}
    for number in range(batches):
        count = rng.randint(1, 3)
        producer = rng.choice([1, 2])
        append(
            log,
            *[b"%d" % number * 9] * count,
            timestamps=START_MS + rng.randint(-50, 50),
            codec=Codec(number % 5),
            leader_epoch=number // 20,
            producer_id=producer,
            producer_epoch=0,
            base_sequence=sequences[producer],
        )
        sequences[producer] += count
    return log


def log_files(directory: Path) -> list[Path]:
    return sorted((directory / str(TP)).glob("*.log"))


def file_of(log: Log, segment: int, suffix: str) -> Path:
    return Path(log.segments[segment].path).with_suffix(suffix)


@pytest.fixture
def no_recovery(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise AssertionError("a clean open must not scan")

    monkeypatch.setattr(recovery, "recover_segment", refuse)
    monkeypatch.setattr(recovery, "rebuild_indexes", refuse)


@pytest.mark.usefixtures("no_recovery")
def test_a_clean_open_scans_nothing(tmp_path: Path) -> None:
    log = fill(tmp_path)
    records = read_all(log)
    log.close()
    again = open_log(tmp_path, config=CONFIG, clean=True)
    assert again.log_end_offset == again.recovery_point == log.log_end_offset
    assert read_all(again) == records
    assert again.epochs.entries == log.epochs.entries
    assert again.producers.producers.keys() == {1, 2}
    again.check_invariants()


def test_close_trims_the_indexes(tmp_path: Path) -> None:
    log = fill(tmp_path)
    log.close()
    for segment in log.segments:
        assert SystemFiles().size(segment.offset_index.path) == segment.offset_index.entries * 8
        assert SystemFiles().size(segment.time_index.path) == segment.time_index.entries * 12


def test_an_untouched_log_closes_without_changes(tmp_path: Path) -> None:
    fill(tmp_path).close()
    before = {path.name: path.read_bytes() for path in (tmp_path / str(TP)).iterdir()}
    open_log(tmp_path, config=CONFIG, clean=True).close()
    assert {path.name: path.read_bytes() for path in (tmp_path / str(TP)).iterdir()} == before


def test_recovery_starts_at_the_recovery_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = fill(tmp_path)
    plan = log.flush_plan(log.segments[3].base_offset)
    assert plan is not None
    log.flushed(plan())
    expected = [segment.base_offset for segment in log.segments[3:]]
    recovered: list[int] = []
    real = recovery.recover_segment

    def noting(segment: Segment, producers: ProducerStateManager, epochs: LeaderEpochCache) -> int:
        recovered.append(segment.base_offset)
        return real(segment, producers, epochs)

    monkeypatch.setattr(recovery, "recover_segment", noting)
    again = reopen(log, tmp_path, clean=False)
    assert recovered == expected
    assert again.recovery_point == log.recovery_point
    again.check_invariants()


def test_recovery_makes_the_same_indexes_and_state(tmp_path: Path) -> None:
    log = fill(tmp_path)
    records = read_all(log)
    again = reopen(log, tmp_path, clean=False, recovery_point=0)
    assert read_all(again) == records
    assert again.epochs.entries == log.epochs.entries
    assert again.producers.producers.keys() == log.producers.producers.keys()
    for old, new in zip(log.segments[:-1], again.segments, strict=False):
        assert Path(old.offset_index.path).read_bytes() == Path(new.offset_index.path).read_bytes()
        assert (old.max_timestamp, old.offset_of_max_timestamp) == (new.max_timestamp, new.offset_of_max_timestamp)
    again.check_invariants()


def cut_everywhere(directory: Path, cuts: int, damage: Callable[[bytes, int], bytes]) -> None:
    """Damage the last segment at random bytes; each time the log must end at the last whole batch before it."""
    origin = directory / "origin"
    log = fill(origin, batches=36)
    log.fail("crashed")
    last = log_files(origin)[-1]
    content = last.read_bytes()
    ends = [(position + header.size_in_bytes, header.next_offset) for position, header in iter_batches(content)]
    base = int(last.stem)
    rng = random.Random(11)
    for number in range(cuts):
        cut = rng.randrange(len(content) + 1)
        copy = directory / "copy"
        shutil.copytree(origin, copy)
        damaged = damage(content, cut)
        log_files(copy)[-1].write_bytes(damaged)
        again = open_log(copy, config=CONFIG, recovery_point=base)
        whole = [next_offset for end, next_offset in ends if damaged[:end] == content[:end]]
        assert again.log_end_offset == max(whole, default=base)
        if number % 50 == 0:
            again.check_invariants()
            assert offsets(read_all(again)) == list(range(again.log_end_offset))
            assert append(again, b"on").first_offset == again.log_end_offset - 1
        again.fail("done")
        shutil.rmtree(copy)


def test_cut_at_a_thousand_bytes(tmp_path: Path) -> None:
    cut_everywhere(tmp_path, 1000, lambda content, cut: content[:cut])


def test_zeros_after_a_hundred_cuts(tmp_path: Path) -> None:
    """Delayed allocation: after a power loss the file has its length, but zeros where nothing was written yet."""
    cut_everywhere(tmp_path, 100, lambda content, cut: content[:cut].ljust(len(content), b"\0"))


def test_garbage_after_a_hundred_cuts(tmp_path: Path) -> None:
    garbage = random.Random(3).randbytes(2000)
    cut_everywhere(tmp_path, 100, lambda content, cut: content[:cut] + garbage)


def test_a_cut_in_the_middle_drops_the_later_segments(tmp_path: Path) -> None:
    log = fill(tmp_path)
    victim, later = log.segments[2], log.segments[3]
    with open(victim.path, "r+b") as file:
        file.truncate(victim.size - 1)
    again = reopen(log, tmp_path, clean=False, recovery_point=0)
    assert len(again.segments) == 3
    assert victim.base_offset < again.log_end_offset < later.base_offset
    assert not Path(later.path).exists()
    again.check_invariants()


def test_a_segment_that_a_later_one_overlaps_wins(tmp_path: Path) -> None:
    """A deletion that a power loss undid brings a stale segment back."""
    log = fill(tmp_path)
    stale = Path(log.segments[-1].path)
    shutil.copy(stale, tmp_path / "stale.log")
    base = log.segments[-1].base_offset
    log.truncate_to(log.segments[-2].base_offset)
    log.update_config(small_segments(segment_bytes=1 << 20))
    while log.log_end_offset < base + 3:
        append(log, b"again", leader_epoch=9)
    end = log.log_end_offset
    shutil.copy(tmp_path / "stale.log", stale)
    again = reopen(log, tmp_path, clean=False, recovery_point=0)
    assert (again.log_end_offset, again.latest_epoch) == (end, 9)
    again.check_invariants()


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.unlink(),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(path.read_bytes()[:-3]),
        lambda path: path.write_bytes(path.read_bytes() + bytes(2400)),
        lambda path: path.write_bytes(bytes(len(path.read_bytes()))),
        lambda path: path.write_bytes(b"\xff" * len(path.read_bytes())),
    ],
    ids=["missing", "empty", "torn", "untrimmed", "zeros", "garbage"],
)
def test_a_damaged_index_is_rebuilt(tmp_path: Path, clean: bool, suffix: str, damage: Callable[[Path], None]) -> None:
    log = fill(tmp_path)
    records = read_all(log)
    log.close()
    for segment in (1, -1):
        damage(file_of(log, segment, suffix))
    recovery_point = log.segments[-1].base_offset
    again = open_log(tmp_path, config=CONFIG, clean=clean, recovery_point=recovery_point)
    assert read_all(again) == records
    again.check_invariants()
    again.close()


def test_a_damaged_transaction_index_is_rebuilt(tmp_path: Path) -> None:
    log = open_log(tmp_path, config=CONFIG)
    for number in range(10):
        append(log, b"v" * 60, producer_id=5, producer_epoch=0, base_sequence=number, transactional=True)
        append_marker(log, ControlType.ABORT if number % 2 else ControlType.COMMIT, producer_id=5)
    expected = log.aborted_transactions(0, 20)
    assert [transaction.last_offset for transaction in expected] == [3, 7, 11, 15, 19]
    log.close()
    path = next((tmp_path / str(TP)).glob("*.txnindex"))
    path.write_bytes(b"\x00\x09" + path.read_bytes()[2:])
    again = open_log(tmp_path, config=CONFIG, clean=True)
    assert again.aborted_transactions(0, 20) == expected
    again.check_invariants()


def test_a_torn_tail_after_a_clean_stop_is_cut_off_too(tmp_path: Path) -> None:
    log = fill(tmp_path)
    log.close()
    last = log_files(tmp_path)[-1]
    last.write_bytes(last.read_bytes() + b"\0" * 30)
    again = open_log(tmp_path, config=CONFIG, clean=True)
    assert again.log_end_offset == log.log_end_offset
    append(again, b"on")
    again.check_invariants()


@pytest.mark.parametrize("clean", [True, False])
def test_damaged_and_missing_snapshots_are_made_up_for(tmp_path: Path, clean: bool) -> None:
    log = fill(tmp_path)
    expected = {producer: entry.last_sequence for producer, entry in log.producers.producers.items()}
    log.close()
    snapshots = sorted((tmp_path / str(TP)).glob("*.snapshot"))
    snapshots[-1].write_bytes(b"\0" * 20)
    snapshots[-2].unlink()
    again = open_log(tmp_path, config=CONFIG, clean=clean, recovery_point=0)
    assert {producer: entry.last_sequence for producer, entry in again.producers.producers.items()} == expected
    again.close()
    for snapshot in (tmp_path / str(TP)).glob("*.snapshot"):
        snapshot.unlink()
    again = open_log(tmp_path, config=CONFIG, clean=clean, recovery_point=0)
    assert {producer: entry.last_sequence for producer, entry in again.producers.producers.items()} == expected


@pytest.mark.parametrize("clean", [True, False])
def test_lost_leader_epochs_are_read_from_the_batches(tmp_path: Path, clean: bool) -> None:
    log = fill(tmp_path)
    log.close()
    (tmp_path / str(TP) / "leader-epoch-checkpoint").write_bytes(b"garbage")
    again = open_log(tmp_path, config=CONFIG, clean=clean, recovery_point=log.log_end_offset)
    assert again.latest_epoch == 2
    if clean:
        assert again.epochs.entries == log.epochs.entries


def test_a_start_offset_above_the_log_empties_it(tmp_path: Path) -> None:
    fill(tmp_path).close()
    again = open_log(tmp_path, config=CONFIG, clean=True, log_start_offset=5000)
    assert (again.log_start_offset, again.log_end_offset, again.size_bytes) == (5000, 5000, 0)
    assert [path.name for path in log_files(tmp_path)] == [f"{5000:020d}.log"]
    assert append(again, b"on").first_offset == 5000
    again.check_invariants()


def test_a_start_offset_below_the_log_is_raised(tmp_path: Path) -> None:
    log = fill(tmp_path)
    log.set_high_watermark(log.log_end_offset)
    log.delete_records_before(log.segments[2].base_offset)
    log.delete_old_segments(START_MS)
    start = log.log_start_offset
    log = reopen(log, tmp_path, clean=True, log_start_offset=3)
    assert log.log_start_offset == start
    assert not list((tmp_path / str(TP)).glob("*.deleted"))


def test_an_empty_log_reopens_empty(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for clean in (True, False):
        log = reopen(log, tmp_path, clean=clean)
        assert (log.log_start_offset, log.log_end_offset) == (0, 0)
        log.check_invariants()


def test_leftovers_are_cleared_away(tmp_path: Path) -> None:
    log = fill(tmp_path)
    records = read_all(log)
    log.close()
    directory = tmp_path / str(TP)
    stem = f"{log.segments[1].base_offset:020d}"
    for name in (
        f"{0:020d}.log.deleted",
        f"{stem}.index.cleaned",
        f"{stem}.log.cleaned",
        f"{stem}.log.swap",
        "leader-epoch-checkpoint.tmp",
        f"{4711:020d}.index",
        f"{4711:020d}.timeindex",
    ):
        (directory / name).write_bytes(b"left over")
    (directory / "notes.txt").write_bytes(b"not ours")
    again = open_log(tmp_path, config=CONFIG, clean=True)
    assert read_all(again) == records
    assert (directory / "notes.txt").exists()
    expected = {f"{segment.base_offset:020d}" for segment in again.segments}
    assert {path.name[:20] for path in directory.glob("0*") if path.suffix != ".snapshot"} == expected


def test_a_finished_swap_takes_its_place(tmp_path: Path) -> None:
    log = fill(tmp_path)
    log.close()
    directory = tmp_path / str(TP)
    merged = b"".join(Path(segment.path).read_bytes() for segment in log.segments[1:3])
    records = read_all(open_log(tmp_path, config=CONFIG, clean=True))
    stem = f"{log.segments[1].base_offset:020d}"
    (directory / f"{stem}.log.swap").write_bytes(merged)
    again = open_log(tmp_path, config=CONFIG, clean=True)
    assert [segment.base_offset for segment in again.segments] == [
        segment.base_offset for number, segment in enumerate(log.segments) if number != 2
    ]
    assert read_all(again) == records
    again.check_invariants()


def test_old_message_formats_are_refused_and_not_cut_off(tmp_path: Path) -> None:
    body = struct.pack(">bbqi", 1, 0, START_MS, -1) + struct.pack(">i", 40) + b"v" * 40
    message = struct.pack(">I", zlib.crc32(body)) + body
    content = struct.pack(">qi", 0, len(message)) + message
    directory = tmp_path / str(TP)
    directory.mkdir()
    path = directory / f"{0:020d}.log"
    path.write_bytes(content)
    with pytest.raises(KafkaError) as caught:
        open_log(tmp_path)
    assert caught.value.code is ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT
    assert path.read_bytes() == content


def test_a_large_batch_is_verified_in_pieces(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, random.Random(1).randbytes(3_000_000))
    append(log, b"small")
    log = reopen(log, tmp_path, clean=False)
    assert log.log_end_offset == 2
    with open(log.segments[0].path, "r+b") as file:
        file.seek(2_500_000)
        file.write(b"damage")
    log = reopen(log, tmp_path, clean=False)
    assert log.log_end_offset == 0
