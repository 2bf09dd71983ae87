"""What a partition remembers of its idempotent and transactional producers.

Every producer id maps to its epoch and its last five batches. A client's batch is checked against that before it is
written (`check`): the next sequence is accepted, an exact repeat of a remembered batch is answered with the offset
it already has, anything else is refused. A producer without state may start anywhere: its records may have been
deleted by retention. After the write the state follows (`update`, `update_control`).

Transactions: the first batch of one opens it under its offset; its marker (a control batch) completes it. A
completed transaction stays unstable until the high watermark has passed its marker, since only then it cannot be
lost; `first_unstable_offset` is the lowest offset of the open and of those, and readers of committed records stop
there.

State is rebuilt from the newest `.snapshot` file plus the log after it: `truncate_and_reload` loads, the caller
replays every batch from `map_end_offset` on. Snapshots are taken at roll and at a clean stop, under the offset they
describe.

Single threaded, except that `take_snapshot(sync=True)` blocks on the disk.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from penstock.base.ports import Clock, Files
from penstock.base.types import TopicPartition
from penstock.records.batch import TRANSACTIONAL_MASK, BatchHeader
from penstock.storage.producers.checks import (
    BatchMetadata,
    Place,
    check_epoch,
    check_marker,
    check_sequence,
    check_transactional,
    find_duplicate,
    not_transactional,
    stale_epoch,
)
from penstock.storage.producers.snapshot import (
    NO_TRANSACTION,
    SEQUENCE_MODULUS,
    SNAPSHOT_SUFFIX,
    CorruptSnapshotError,
    ProducerStateEntry,
    decode_snapshot,
    encode_snapshot,
)

log = logging.getLogger(__name__)

DEFAULT_EXPIRATION_MS = 86_400_000
_DELETED_SUFFIX = ".deleted"
_OFFSET_DIGITS = 20


class CompletedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool


class ProducerStateManager:
    __slots__ = (
        "_expiration_ms",
        "_files",
        "_last_snapshot_offset",
        "_ongoing",
        "_producers",
        "_snapshots",
        "_topic_partition",
        "_unreplicated",
        "directory",
        "map_end_offset",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        directory: str,
        files: Files,
        clock: Clock,
        *,
        expiration_ms: int = DEFAULT_EXPIRATION_MS,
    ) -> None:
        del clock  # Every rule that depends on time takes `now_ms`, so that a replay is repeatable.
        self._topic_partition = topic_partition
        self._files = files
        self._expiration_ms = expiration_ms
        self.directory = directory
        self._producers: dict[int, ProducerStateEntry] = {}
        # First offset of each open transaction -> producer id. Offsets only grow, so insertion order is offset order.
        self._ongoing: dict[int, int] = {}
        # First offset -> offset of the marker, of transactions whose marker the high watermark has not passed.
        self._unreplicated: dict[int, int] = {}
        self._snapshots: set[int] = set()
        self._last_snapshot_offset = 0
        self.map_end_offset = 0
        self.reload_snapshots()

    # -- Appends ---------------------------------------------------------------------------------------------------

    def check(self, header: BatchHeader, now_ms: int = 0) -> BatchMetadata | None:
        """A client's batch before it is written: its earlier self when it is a duplicate, KafkaError when refused."""
        entry = self._producers.get(header.producer_id)
        if entry is None:
            return None
        if header.producer_epoch == entry.producer_epoch and header.base_sequence == entry.next_sequence:
            if entry.current_txn_first_offset >= 0 and not header.attributes & TRANSACTIONAL_MASK:
                raise not_transactional(self._place(), header)
            return None
        return self._check_unusual(entry, header)

    def _check_unusual(self, entry: ProducerStateEntry, header: BatchHeader) -> BatchMetadata | None:
        if (duplicate := find_duplicate(entry, header)) is not None:
            return duplicate
        check_epoch(self._place(), entry, header)
        check_sequence(self._place(), entry, header)
        check_transactional(self._place(), entry, header)
        return None

    def _place(self) -> Place:
        return Place(self._topic_partition, self.map_end_offset)

    def check_coordinator(self, header: BatchHeader) -> None:
        """A coordinator's transactional batch (offset commits carry no sequence): only its epoch is checked."""
        entry = self._producers.get(header.producer_id)
        if entry is not None:
            check_epoch(self._place(), entry, header)
            check_transactional(self._place(), entry, header)

    def check_control(self, header: BatchHeader, coordinator_epoch: int, *, transaction_version: int = 0) -> None:
        """An end-of-transaction marker before it is written: fences older producers and older coordinators."""
        entry = self._producers.get(header.producer_id)
        if entry is not None:
            check_marker(self._place(), entry, header, coordinator_epoch, transaction_version)

    def update(
        self, header: BatchHeader, first_offset: int, last_offset: int, timestamp: int, *, replay: bool = False
    ) -> None:
        """Follow a data batch that is in the log now. `replay` marks batches that were not checked here before."""
        epoch = header.producer_epoch
        entry = self._producers.get(header.producer_id)
        if entry is None:
            entry = self._producers[header.producer_id] = ProducerStateEntry(header.producer_id, epoch)
        elif epoch != entry.producer_epoch:
            if replay and epoch < entry.producer_epoch:
                log.warning("%s", stale_epoch(self._place(), entry, header).message)
            entry.set_epoch(epoch)
        sequence = header.base_sequence
        delta = last_offset - first_offset
        if sequence >= 0:
            sequence = (sequence + delta) % SEQUENCE_MODULUS
        entry.batches.append((sequence, last_offset, delta, timestamp))
        entry.next_sequence = (sequence + 1) % SEQUENCE_MODULUS
        entry.last_timestamp = timestamp
        if header.attributes & TRANSACTIONAL_MASK and entry.current_txn_first_offset < 0:
            entry.current_txn_first_offset = first_offset
            self._ongoing[first_offset] = header.producer_id
        self.map_end_offset = last_offset + 1

    def update_control(
        self,
        header: BatchHeader,
        offset: int,
        timestamp: int,
        *,
        coordinator_epoch: int,
        is_aborted: bool,
        replay: bool = False,
    ) -> CompletedTransaction | None:
        """Follow a marker that is in the log now.

        The transaction it ends, if there was data in one, is returned but not complete yet: first the transaction
        index gets its entry (with `last_stable_offset`), then `complete` is called. An empty control batch (its
        transaction was compacted away) must not be passed.
        """
        entry = self._producers.get(header.producer_id)
        if entry is None:
            entry = self._producers[header.producer_id] = ProducerStateEntry(header.producer_id, header.producer_epoch)
        if replay and header.producer_epoch < entry.producer_epoch:
            log.warning("%s", stale_epoch(self._place(), entry, header).message)
        first_offset = entry.current_txn_first_offset
        entry.set_epoch(header.producer_epoch)
        entry.coordinator_epoch = coordinator_epoch
        entry.last_timestamp = timestamp
        entry.current_txn_first_offset = NO_TRANSACTION
        self.map_end_offset = offset + 1
        if first_offset < 0:
            return None
        return CompletedTransaction(header.producer_id, first_offset, offset, is_aborted)

    # -- Transactions ----------------------------------------------------------------------------------------------

    @property
    def first_unstable_offset(self) -> int | None:
        """The lowest offset whose transaction is open, or whose marker is not below the high watermark."""
        if not self._ongoing:
            return min(self._unreplicated) if self._unreplicated else None
        first_ongoing = next(iter(self._ongoing))
        return min(first_ongoing, min(self._unreplicated)) if self._unreplicated else first_ongoing

    @property
    def first_undecided_offset(self) -> int | None:
        """The lowest offset of an open transaction, whatever is replicated."""
        return next(iter(self._ongoing)) if self._ongoing else None

    def last_stable_offset(self, completed: CompletedTransaction) -> int:
        """The last stable offset as it will be once `completed` is, for the transaction index."""
        for first_offset, producer_id in self._ongoing.items():
            if producer_id != completed.producer_id:
                return first_offset
        return completed.last_offset + 1

    def complete(self, completed: CompletedTransaction) -> None:
        if self._ongoing.pop(completed.first_offset, None) is None:
            raise ValueError(f"{completed} was never started in {self._topic_partition}")
        self._unreplicated[completed.first_offset] = completed.last_offset

    def on_high_watermark_updated(self, high_watermark: int) -> None:
        if self._unreplicated:
            self._remove_unreplicated(high_watermark)

    def _remove_unreplicated(self, offset: int) -> None:
        self._unreplicated = {first: last for first, last in self._unreplicated.items() if last >= offset}

    def on_log_start_offset_incremented(self, log_start_offset: int) -> None:
        self._remove_unreplicated(log_start_offset)
        self.map_end_offset = max(self.map_end_offset, log_start_offset)
        latest = self.latest_snapshot_offset
        self._last_snapshot_offset = log_start_offset if latest is None else latest

    # -- The whole map ---------------------------------------------------------------------------------------------

    @property
    def producers(self) -> Mapping[int, ProducerStateEntry]:
        return MappingProxyType(self._producers)

    @property
    def is_empty(self) -> bool:
        return not self._producers and not self._unreplicated

    def _is_expired(self, entry: ProducerStateEntry, now_ms: int) -> bool:
        return entry.current_txn_first_offset < 0 and now_ms - entry.last_timestamp >= self._expiration_ms

    def set_expiration_ms(self, expiration_ms: int) -> None:
        self._expiration_ms = expiration_ms

    def remove_expired(self, now_ms: int) -> int:
        """Forget producers idle for too long (never one with an open transaction); how many."""
        expired = [entry.producer_id for entry in self._producers.values() if self._is_expired(entry, now_ms)]
        for producer_id in expired:
            del self._producers[producer_id]
        return len(expired)

    def truncate_and_reload(self, log_start_offset: int, log_end_offset: int, now_ms: int) -> None:
        """Fit state and snapshots into the log's range; the caller then replays from `map_end_offset` to the end.

        The log end is taken to be at or below the high watermark, so no completed transaction is undone by it.
        """
        for offset in sorted(self._snapshots):
            if offset > log_end_offset or offset <= log_start_offset:
                self._delete_snapshot(offset)
        if log_end_offset == self.map_end_offset:
            self.on_log_start_offset_incremented(log_start_offset)
            return
        self._clear()
        self._load_newest_snapshot(log_start_offset, now_ms)

    load = truncate_and_reload

    def truncate_fully_and_start_at(self, offset: int) -> None:
        self._clear()
        for snapshot in sorted(self._snapshots):
            self._delete_snapshot(snapshot)
        self._last_snapshot_offset = 0
        self.map_end_offset = offset

    def _clear(self) -> None:
        self._producers.clear()
        self._ongoing.clear()
        self._unreplicated.clear()

    def _load_newest_snapshot(self, log_start_offset: int, now_ms: int) -> None:
        while (offset := self.latest_snapshot_offset) is not None:
            path = self.snapshot_path(offset)
            try:
                entries = decode_snapshot(self._files.read(path))
            except (CorruptSnapshotError, FileNotFoundError) as error:
                log.warning("producer snapshot %s is unusable and is removed: %s", path, error)
                self._delete_snapshot(offset)
                continue
            self._load_entries(entries, now_ms)
            self._last_snapshot_offset = self.map_end_offset = offset
            return
        self._last_snapshot_offset = self.map_end_offset = log_start_offset

    def _load_entries(self, entries: Iterable[ProducerStateEntry], now_ms: int) -> None:
        for entry in entries:
            if not self._is_expired(entry, now_ms):
                self._producers[entry.producer_id] = entry
        with_transaction = (entry for entry in self._producers.values() if entry.current_txn_first_offset >= 0)
        for entry in sorted(with_transaction, key=lambda entry: entry.current_txn_first_offset):
            self._ongoing[entry.current_txn_first_offset] = entry.producer_id

    # -- Snapshots -------------------------------------------------------------------------------------------------

    def snapshot_path(self, offset: int) -> str:
        return f"{self.directory}/{offset:020d}{SNAPSHOT_SUFFIX}"

    @property
    def snapshot_offsets(self) -> list[int]:
        return sorted(self._snapshots)

    @property
    def latest_snapshot_offset(self) -> int | None:
        return max(self._snapshots, default=None)

    def reload_snapshots(self) -> None:
        """Look again which snapshot files are there."""
        names = self._files.list_directory(self.directory) if self._files.is_directory(self.directory) else []
        self._snapshots = {offset for name in names if (offset := snapshot_offset(name)) is not None}

    def take_snapshot(self, offset: int | None = None, *, sync: bool = True) -> str | None:
        """Write the state at `offset` (by default at the end of the map); the path, or None when nothing is new.

        With `sync=False` the file is written but not made durable, which is fit for the loop: a torn one fails its
        CRC and is rebuilt from the log. Sync it together with the segment it belongs to.
        """
        if offset is not None:
            self.map_end_offset = offset
        if self.map_end_offset <= self._last_snapshot_offset:
            return None
        path = self.snapshot_path(self.map_end_offset)
        data = encode_snapshot(self._producers.values())
        if sync:
            self._files.write_atomically(path, data)
        else:
            self._write_without_sync(path, data)
        self._snapshots.add(self.map_end_offset)
        self._last_snapshot_offset = self.map_end_offset
        return path

    def _write_without_sync(self, path: str, data: bytes) -> None:
        file = self._files.open(path)
        try:
            file.truncate(0)
            file.append(data)
        finally:
            file.close()

    def remove_stray_snapshots(self, segment_base_offsets: Iterable[int]) -> None:
        """Delete snapshots that belong to no segment, except one above all of them: a clean stop left it."""
        self.reload_snapshots()
        base_offsets = set(segment_base_offsets)
        strays = sorted(self._snapshots - base_offsets)
        if strays and (not base_offsets or strays[-1] >= max(base_offsets)):
            strays.pop()
        for offset in strays:
            self._delete_snapshot(offset)

    def rename_snapshot_for_deletion(self, offset: int) -> str | None:
        """Rename the snapshot of a segment that is being deleted to `.deleted`; its new path, None without one."""
        if offset not in self._snapshots:
            return None
        self._snapshots.discard(offset)
        path = self.snapshot_path(offset)
        try:
            self._files.rename(path, path + _DELETED_SUFFIX)
        except FileNotFoundError:
            return None
        return path + _DELETED_SUFFIX

    def _delete_snapshot(self, offset: int) -> None:
        self._snapshots.discard(offset)
        try:
            self._files.remove(self.snapshot_path(offset))
        except FileNotFoundError:
            pass


def snapshot_offset(name: str) -> int | None:
    """The offset in the name of a snapshot file, or None when it is another file."""
    digits = name[: -len(SNAPSHOT_SUFFIX)]
    if name.endswith(SNAPSHOT_SUFFIX) and len(digits) == _OFFSET_DIGITS and digits.isascii() and digits.isdigit():
        return int(digits)
    return None
