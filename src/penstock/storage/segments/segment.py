"""One segment of a log: the batches from its base offset on in a `.log` file, and the indexes over them.

The last segment of a log is active: it takes the appends and keeps its file open. The others only serve reads; their
file and the maps of their indexes are opened when they are first needed and may be closed at any time.

An index entry is due for a batch when more than `index.interval.bytes` were written since the last one. The segment
remembers the thresholds after which it has to be rolled (`roll_*`), so that an append checks them by comparison.
"""

from __future__ import annotations

from penstock.base.ports import Files
from penstock.records.batch import HEADER_SIZE, NO_TIMESTAMP, read_header
from penstock.storage.config import LogConfig
from penstock.storage.segments.index import OffsetIndex, TimeIndex
from penstock.storage.segments.scan import find_offset, iter_headers
from penstock.storage.segments.slices import FileHandle, FileSlice
from penstock.storage.segments.transaction_index import TransactionIndex

LOG_SUFFIX = ".log"
INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
TRANSACTION_INDEX_SUFFIX = ".txnindex"
DELETED_SUFFIX = ".deleted"

NEVER = (1 << 63) - 1
RELATIVE_OFFSET_MAX = (1 << 31) - 1
NEAR_END_BYTES = 16 * 1024 * 1024
"""How far behind the end of the log freshly written bytes are still taken to be in the page cache."""


class Segment:
    __slots__ = (
        "_config",
        "_files",
        "_handle",
        "_path_stem",
        "base_offset",
        "bytes_since_index_entry",
        "created_ms",
        "first_timestamp",
        "hot_from",
        "index_is_full",
        "jitter_ms",
        "max_timestamp",
        "offset_index",
        "offset_of_max_timestamp",
        "roll_after_ms",
        "roll_after_offset",
        "roll_after_timestamp",
        "size",
        "snapshot_path",
        "suffix",
        "time_index",
        "transaction_index",
    )

    def __init__(self, directory: str, base_offset: int, config: LogConfig, files: Files, now_ms: int) -> None:
        stem = f"{directory}/{base_offset:020d}"
        index_bytes = config.segment_index_bytes
        self._config = config
        self._files = files
        self._handle: FileHandle | None = None
        self._path_stem = stem
        self.suffix = ""
        self.base_offset = base_offset
        self.size = 0
        self.offset_index = OffsetIndex(stem + INDEX_SUFFIX, base_offset, index_bytes, files)
        self.time_index = TimeIndex(stem + TIME_INDEX_SUFFIX, base_offset, index_bytes, files)
        self.transaction_index = TransactionIndex(stem + TRANSACTION_INDEX_SUFFIX, base_offset, files, exists=False)
        self.snapshot_path: str | None = None
        """Of a deleted segment: the producer snapshot that goes with it."""
        self.max_timestamp = NO_TIMESTAMP
        self.offset_of_max_timestamp = base_offset
        self.bytes_since_index_entry = 0
        self.created_ms = now_ms
        self.hot_from = 0
        """Bytes before this position were not written by this process, or so long ago that they may be cold."""
        self.jitter_ms = config.jitter_for(directory, base_offset)
        self.index_is_full = False
        self.roll_after_offset = base_offset + RELATIVE_OFFSET_MAX
        self.first_timestamp: int | None = None
        self._set_first_timestamp(None)

    @classmethod
    def create(cls, directory: str, base_offset: int, config: LogConfig, files: Files, now_ms: int) -> Segment:
        """A new, empty segment with its files, open for appends. OSError leaves no file behind."""
        segment = cls(directory, base_offset, config, files, now_ms)
        try:
            segment._create_files()
        except OSError:
            # The log goes on in the segment before; the next start would take an empty one here for its end.
            segment.close_files()
            segment.remove_files()
            raise
        return segment

    def _create_files(self) -> None:
        handle = self.open_file()
        if handle.file.size():
            # Left behind by a deletion that a crash undid; the log does not know of it.
            handle.file.truncate(0)
        self.offset_index.create()
        self.time_index.create()

    @classmethod
    def open(
        cls,
        directory: str,
        base_offset: int,
        config: LogConfig,
        files: Files,
        now_ms: int,
        *,
        has_transaction_index: bool,
    ) -> Segment:
        """A segment that is on disk. Its indexes are not looked at yet."""
        segment = cls(directory, base_offset, config, files, now_ms)
        segment.size = segment.hot_from = files.size(segment.path)
        segment.transaction_index.exists = has_transaction_index
        return segment

    def __repr__(self) -> str:
        return f"Segment({self.path}, size={self.size})"

    @property
    def index_interval_bytes(self) -> int:
        return self._config.index_interval_bytes

    # -- Files -----------------------------------------------------------------------------------------------------

    @property
    def path(self) -> str:
        return self._path_stem + LOG_SUFFIX + self.suffix

    @property
    def paths(self) -> list[str]:
        """Every file the segment has."""
        indexes = [self.offset_index.path, self.time_index.path]
        if self.transaction_index.exists:
            indexes.append(self.transaction_index.path)
        return [self.path, *indexes]

    def open_file(self) -> FileHandle:
        handle = self._handle
        if handle is None:
            handle = self._handle = FileHandle(self._files.open(self.path))
        return handle

    @property
    def is_open(self) -> bool:
        return self._handle is not None or self.offset_index.is_mapped or self.time_index.is_mapped

    def close_files(self) -> None:
        """Let go of descriptors and maps without writing anything. Slices keep the file open for themselves."""
        self.offset_index.unmap()
        self.time_index.unmap()
        self.transaction_index.forget()
        if self._handle is not None:
            self._handle.release()
            self._handle = None

    def mark_deleted(self) -> None:
        """Rename the files to `.deleted`. Slices that are out stay readable."""
        self.close_files()
        for path in self.paths:
            try:
                self._files.rename(path, path + DELETED_SUFFIX)
            except FileNotFoundError:
                # An index that went missing does not keep the rest alive.
                continue
        self.suffix = DELETED_SUFFIX
        for index in (self.offset_index, self.time_index, self.transaction_index):
            index.path += DELETED_SUFFIX

    def remove_files(self) -> None:
        """Unlink the files. Blocks, and touches nothing that the loop changes: fit for a worker."""
        for path in (*self.paths, self.snapshot_path):
            if path is not None:
                try:
                    self._files.remove(path)
                except FileNotFoundError:
                    continue

    def move_to(self, directory: str) -> None:
        """Follow a rename of the directory."""
        stem = f"{directory}/{self.base_offset:020d}"
        self._path_stem = stem
        self.offset_index.path = stem + INDEX_SUFFIX
        self.time_index.path = stem + TIME_INDEX_SUFFIX
        self.transaction_index.path = stem + TRANSACTION_INDEX_SUFFIX

    def finish(self) -> None:
        """No more appends come: force the last time index entry, by which retention goes, and trim the indexes."""
        self.time_index.maybe_append(self.max_timestamp, self.offset_of_max_timestamp)
        self.offset_index.trim()
        self.time_index.trim()
        self.hot_from = self.size

    # -- Appends ---------------------------------------------------------------------------------------------------

    def append(self, data: memoryview, last_offset: int, max_timestamp: int) -> None:
        """Write one batch at the end. OSError leaves the segment as it was, but maybe not the file (`undo_append`)."""
        position = self.size
        size = len(data)
        handle = self._handle
        if handle is None:
            handle = self.open_file()
        handle.file.append(data)
        self.note_batch(position, size, last_offset, max_timestamp)
        self.size = position + size

    def note_batch(self, position: int, size: int, last_offset: int, max_timestamp: int) -> None:
        """Index a batch that is in the file."""
        if position == 0:
            self._set_first_timestamp(max_timestamp)
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self.offset_of_max_timestamp = last_offset
        if self.bytes_since_index_entry > self._config.index_interval_bytes:
            self._add_index_entries(last_offset, position)
        self.bytes_since_index_entry += size

    def _add_index_entries(self, last_offset: int, position: int) -> None:
        self.offset_index.append(last_offset, position)
        self.time_index.maybe_append(self.max_timestamp, self.offset_of_max_timestamp)
        self.bytes_since_index_entry = 0
        self.index_is_full = self.offset_index.is_full or self.time_index.is_full

    def undo_append(self, next_offset: int) -> None:
        """Cut off what a failed write may have left after the last whole batch, in the file and in the indexes."""
        handle = self.open_file()
        if handle.file.size() > self.size:
            handle.truncate(self.size)
        self.offset_index.truncate_to(next_offset)
        self.time_index.truncate_to(next_offset)
        if self.size == 0:
            self._set_first_timestamp(None)
        self._find_max_timestamp()

    def _set_first_timestamp(self, timestamp: int | None) -> None:
        """A segment's age counts from its first batch's timestamp, or from its making when that has none."""
        self.first_timestamp = timestamp
        allowed_ms = self._config.segment_ms - self.jitter_ms
        has_timestamp = timestamp is not None and timestamp >= 0
        self.roll_after_timestamp = timestamp + allowed_ms if timestamp is not None and has_timestamp else NEVER
        self.roll_after_ms = NEVER if timestamp is None or has_timestamp else self.created_ms + allowed_ms

    def update_config(self, config: LogConfig) -> None:
        self._config = config
        self._set_first_timestamp(self.first_timestamp)

    def load_first_timestamp(self) -> None:
        head = self.open_file().file.read_at(0, HEADER_SIZE) if self.size >= HEADER_SIZE else b""
        self._set_first_timestamp(read_header(head).max_timestamp if len(head) == HEADER_SIZE else None)

    # -- Reads -----------------------------------------------------------------------------------------------------

    def locate(self, offset: int) -> tuple[int, int] | None:
        """Position and size of the first batch that ends at `offset` or later; None when all end before it."""
        position = self.offset_index.position_at_or_before(offset)
        return find_offset(self.open_file().file, position, self.size, offset)

    def slice(self, position: int, length: int) -> FileSlice:
        near_end = position >= self.hot_from and self.size - position <= NEAR_END_BYTES
        return FileSlice(self.open_file(), position, length, near_end, self.base_offset)

    def read_next_offset(self) -> int:
        """The offset after the last batch, found by a scan from the last index entry."""
        position = self.offset_index.entry(self.offset_index.entries - 1)[1] if self.offset_index.entries else 0
        next_offset = self.base_offset
        for _, header in iter_headers(self.open_file().file, position, self.size):
            next_offset = header.next_offset
        return next_offset

    @property
    def largest_timestamp(self) -> int:
        """For retention: of the records, or of the file when they have none."""
        if self.max_timestamp >= 0:
            return self.max_timestamp
        return self._files.modified_ms(self.path)

    # -- Truncation ------------------------------------------------------------------------------------------------

    def truncate_to(self, offset: int, now_ms: int) -> None:
        """Cut off the batch that holds `offset`, and everything after it."""
        found = self.locate(offset)
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        self.transaction_index.truncate_to(offset)
        self.index_is_full = self.offset_index.is_full or self.time_index.is_full
        if found is not None:
            self.truncate_file(found[0])
        if self.size == 0:
            self.created_ms = now_ms
            self._set_first_timestamp(None)
        self.bytes_since_index_entry = 0
        self._find_max_timestamp()

    def truncate_file(self, size: int) -> None:
        self.open_file().truncate(size)
        self.size = size
        self.hot_from = min(self.hot_from, size)

    def _find_max_timestamp(self) -> None:
        self.max_timestamp, self.offset_of_max_timestamp = self.time_index.last_timestamp, self.time_index.last_offset
        position = self.offset_index.position_at_or_before(self.offset_of_max_timestamp)
        for _, header in iter_headers(self.open_file().file, position, self.size):
            if header.max_timestamp > self.max_timestamp:
                self.max_timestamp, self.offset_of_max_timestamp = header.max_timestamp, header.last_offset

    def reset_indexes(self) -> None:
        """Start the indexes over, for a rebuild by `note_batch`."""
        self.offset_index.reset()
        self.time_index.reset()
        self.transaction_index.reset()
        self.index_is_full = False
        self.bytes_since_index_entry = 0
        self.max_timestamp, self.offset_of_max_timestamp = NO_TIMESTAMP, self.base_offset
        self._set_first_timestamp(None)
