"""kafka-dump-log: what is in the files of a partition: segments, indexes, producer snapshots.

The files are read as they are, without a broker; a broker that writes to them meanwhile does no harm.
"""

from __future__ import annotations

import importlib
import itertools
import mmap
import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

from penstock.cli.failures import Failed
from penstock.cli.kafka.parsing import Option, Parsed, Takes, UsageError, flag
from penstock.cli.kafka.tool import Tool, run_tool

if TYPE_CHECKING:
    from penstock.records.batch import BatchHeader

Decoder = Callable[[int, "bytes | None", "bytes | None"], tuple["str | None", "str | None"]]
"""From a record's offset, key and value to what is shown of both."""

_OFFSET_ENTRY: Final = struct.Struct(">ii")
_TIME_ENTRY: Final = struct.Struct(">qi")
_ABORTED_ENTRY: Final = struct.Struct(">hqqqq")
_DECODERS = ("StringDecoder", "DefaultDecoder")
_INTERNAL = {
    "offsets-decoder": ("internal_records", "decode_offsets_record"),
    "transaction-log-decoder": ("internal_records", "decode_transaction_record"),
    "cluster-metadata-decoder": ("metadata_records", "decode_cluster_metadata_record"),
    "remote-log-metadata-decoder": ("metadata_records", "decode_remote_log_metadata_record"),
    "share-group-state-decoder": ("internal_records", "decode_share_record"),
}
"""The options for Kafka's own topics, and the function that shows their records. Of several, the first here counts."""


def _run(options: Parsed) -> int:
    options.require("files")
    for name in ("key-decoder-class", "value-decoder-class"):
        chosen = options.get(name)
        if chosen is not None and chosen.rpartition(".")[2] not in _DECODERS:
            raise UsageError(f"--{name} {chosen} is a Java class, which cannot be run here; keys and values are text")
    code = 0
    for name in options.text("files").split(","):
        path = Path(name.strip())
        print(f"Dumping {path}")
        show = _SHOWN.get(path.suffix)
        if show is None:
            print(f"Ignoring unknown file {path}", file=sys.stderr)
            continue
        code = show(path, options) or code
    return code


def _base_offset(path: Path) -> int:
    if not path.stem.isdecimal():
        raise Failed(f"{path}: the name of a segment's file is its first offset, such as 00000000000000000000")
    return int(path.stem)


def _log_start(path: Path) -> str:
    return f"Log starting offset: {_base_offset(path)}"


def _checkpoint_start(path: Path) -> str:
    """What a snapshot of the controllers' log says of itself by its name."""
    if path.name == "bootstrap.checkpoint":
        return "KRaft bootstrap snapshot"
    offset, _, epoch = path.stem.partition("-")
    if not (offset.isdecimal() and epoch.isdecimal()):
        raise Failed(f"{path}: the name of a snapshot is an offset and an epoch, such as {0:020}-{0:010}.checkpoint")
    return f"Snapshot end offset: {int(offset)}, epoch: {int(epoch)}"


def _log(path: Path, options: Parsed) -> int:
    show_data = _data_shown(options)
    deep = show_data is not None or options.has("deep-iteration")
    with_metadata = not options.has("skip-record-metadata")
    print(_checkpoint_start(path) if path.suffix == ".checkpoint" else _log_start(path))
    limit = options.number("max-bytes")
    assert limit is not None
    with _mapped(path) as data:
        end = 0
        try:
            for position, header in _batches(data):
                if position + header.size_in_bytes > limit:
                    return 0
                print(_batch_line(data, position, header))
                end = position + header.size_in_bytes
                if deep:
                    for line in _record_lines(data, position, header, show_data, with_metadata):
                        print(line)
        except Failed as error:
            print(error, file=sys.stderr)
            return 1
        if end < len(data):
            print(f"Found {len(data) - end} invalid bytes at the end of {path.name}")
    return 0


def _data_shown(options: Parsed) -> Decoder | None:
    """How keys and values are shown, if they are."""
    for option, (module, function) in _INTERNAL.items():
        if options.has(option):
            decoder: Decoder = getattr(importlib.import_module(f"penstock.cli.kafka.{module}"), function)
            return decoder
    if any(options.has(each) for each in ("print-data-log", "key-decoder-class", "value-decoder-class")):
        return _as_text
    return None


def _as_text(_offset: int, key: bytes | None, value: bytes | None) -> tuple[str | None, str | None]:
    return (
        None if key is None else key.decode(errors="replace"),
        None if value is None else value.decode(errors="replace"),
    )


class _mapped:  # noqa: N801 - a context manager that reads like a function
    """The bytes of a file, without reading all of it; an empty file cannot be mapped."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._map: mmap.mmap | None = None

    def __enter__(self) -> mmap.mmap | bytes:
        with self._path.open("rb") as file:
            if self._path.stat().st_size == 0:
                return b""
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return self._map

    def __exit__(self, *_: object) -> None:
        # Views of the batch that was looked at last may still be alive; the file is closed with the process.
        self._map = None


def _batches(data: mmap.mmap | bytes) -> Iterator[tuple[int, BatchHeader]]:
    from penstock.base.errors import KafkaError
    from penstock.records.batch import iter_batches

    try:
        yield from iter_batches(data)  # type: ignore[arg-type]
    except KafkaError as error:
        raise Failed(error.message) from None


def _batch_line(data: mmap.mmap | bytes, position: int, header: BatchHeader) -> str:
    from penstock.records.batch import crc_is_valid

    valid = crc_is_valid(data, position, header.size_in_bytes)  # type: ignore[arg-type]
    horizon = header.delete_horizon_ms
    return (
        f"baseOffset: {header.base_offset} lastOffset: {header.last_offset} count: {header.count} "
        f"baseSequence: {header.base_sequence} lastSequence: {header.last_sequence} "
        f"producerId: {header.producer_id} producerEpoch: {header.producer_epoch} "
        f"partitionLeaderEpoch: {header.leader_epoch} isTransactional: {_bool(header.is_transactional)} "
        f"isControl: {_bool(header.is_control)} "
        f"deleteHorizonMs: {'OptionalLong.empty' if horizon is None else f'OptionalLong[{horizon}]'} "
        f"position: {position} {header.timestamp_type.value}: {header.max_timestamp} size: {header.size_in_bytes} "
        f"magic: {header.magic} compresscodec: {header.codec.name.lower()} crc: {header.crc & 0xFFFFFFFF} "
        f"isvalid: {_bool(valid)}"
    )


def _bool(value: bool) -> str:
    return "true" if value else "false"


def _record_lines(
    data: mmap.mmap | bytes, position: int, header: BatchHeader, show_data: Decoder | None, with_metadata: bool
) -> Iterator[str]:
    from penstock.base.errors import KafkaError
    from penstock.cli.kafka.control_records import show_control_record
    from penstock.records.batch import increment_sequence
    from penstock.records.builder import read_records

    if header.is_control and not with_metadata:
        # Kafka leaves an empty line for each of these.
        yield from [""] * header.count
        return
    try:
        records = read_records(data, position, header)  # type: ignore[arg-type]
    except KafkaError as error:
        raise Failed(error.message) from None
    for record in records:
        parts = ["|"]
        if with_metadata:
            sequence = header.base_sequence
            if sequence >= 0:
                sequence = increment_sequence(sequence, record.offset - header.base_offset)
            keys = ",".join(name for name, _ in record.headers)
            parts.append(
                f"offset: {record.offset} {header.timestamp_type.value}: {record.timestamp} "
                f"keySize: {_size(record.key)} valueSize: {_size(record.value)} sequence: {sequence} "
                f"headerKeys: [{keys}]"
            )
        if header.is_control:
            parts.append(show_control_record(record.offset, record.key or b"", record.value or b""))
        elif show_data is not None:
            key, value = show_data(record.offset, record.key, record.value)
            parts += [f"key: {key}"] if key is not None else []
            parts += [f"payload: {value}"] if value is not None else []
        yield " ".join(parts)


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)


def _offset_index(path: Path, options: Parsed) -> int:
    base = _base_offset(path)
    entries = _entries(path, _OFFSET_ENTRY)
    if entries is None:
        return 1
    if path.stat().st_size == 0:
        print(f"{path} is empty.")
        return 0
    code = 0
    if not options.has("index-sanity-check"):
        code = _verify(path, [(base + offset, position) for offset, position in entries])
    shown = entries or [(0, 0)]
    return code or _show_entries(path, options, [f"offset: {base + each[0]} position: {each[1]}" for each in shown])


def _time_index(path: Path, options: Parsed) -> int:
    base = _base_offset(path)
    entries = _entries(path, _TIME_ENTRY)
    if entries is None:
        return 1
    shown = entries or ([(0, 0)] if path.stat().st_size else [])
    return _show_entries(path, options, [f"timestamp: {each[0]} offset: {base + each[1]}" for each in shown])


def _entries(path: Path, entry: struct.Struct) -> list[tuple[int, ...]] | None:
    """An index's entries; what a broker keeps free for more of them is all zero. None if they cannot be right.

    Of a file that has nothing but such room Kafka shows the first zeros, so that is what the tables show, too.
    """
    data = path.read_bytes()
    found = [each for each in entry.iter_unpack(data[: len(data) // entry.size * entry.size]) if any(each)]
    grows = all(before < after for before, after in itertools.pairwise(found))
    if len(data) % entry.size == 0 and grows:
        return found
    print(
        f"{path} is no sane index: its entries must grow, and fill the file. Delete it while the broker is stopped: it "
        "makes a new one.",
        file=sys.stderr,
    )
    return None


def _verify(path: Path, entries: list[tuple[int, int]]) -> int:
    """Whether the batches that the index points at are there and hold its offsets, if the log lies beside it."""
    log = path.with_suffix(".log")
    if not log.exists():
        return 0
    with _mapped(log) as data:
        wanted = {position: offset for offset, position in entries}
        for position, header in _batches(data):
            offset = wanted.get(position)
            if offset is not None and header.base_offset <= offset <= header.last_offset:
                del wanted[position]
    for position, offset in wanted.items():
        print(f"Mismatch in {path}: offset {offset} is not in a batch at position {position} of the log",
              file=sys.stderr)  # fmt: skip
    return 1 if wanted else 0


def _show_entries(path: Path, options: Parsed, lines: list[str]) -> int:
    if options.has("index-sanity-check"):
        print(f"{path} passed sanity check.")
    elif not options.has("verify-index-only"):
        for line in lines:
            print(line)
    return 0


def _aborted(path: Path, options: Parsed) -> int:
    data = path.read_bytes()
    size = _ABORTED_ENTRY.size
    for version, producer, first, last, stable in _ABORTED_ENTRY.iter_unpack(data[: len(data) // size * size]):
        print(
            f"version: {version} producerId: {producer} firstOffset: {first} lastOffset: {last} "
            f"lastStableOffset: {stable}"
        )
    return 0


def _snapshot(path: Path, options: Parsed) -> int:
    from penstock.storage.producers.snapshot import CorruptSnapshotError, decode_snapshot

    try:
        entries = decode_snapshot(path.read_bytes())
    except CorruptSnapshotError as error:
        raise Failed(f"{path} is no producer snapshot: {error}") from None
    for each in entries:
        first = each.current_txn_first_offset
        line = (
            f"producerId: {each.producer_id} producerEpoch: {each.producer_epoch} "
            f"coordinatorEpoch: {each.coordinator_epoch} "
            f"currentTxnFirstOffset: {'OptionalLong.empty' if first < 0 else f'OptionalLong[{first}]'} "
            f"lastTimestamp: {each.last_timestamp}"
        )
        if each.batches:
            sequence, offset, delta, timestamp = each.batches[-1][:4]
            line += (
                f" firstSequence: {sequence - delta} lastSequence: {sequence} lastOffset: {offset} "
                f"offsetDelta: {delta} timestamp: {timestamp}"
            )
        print(line)
    return 0


_SHOWN: Final[dict[str, Callable[[Path, Parsed], int]]] = {
    ".log": _log,
    ".checkpoint": _log,
    ".index": _offset_index,
    ".timeindex": _time_index,
    ".txnindex": _aborted,
    ".snapshot": _snapshot,
}

TOOL = Tool(
    name="kafka-dump-log",
    about=(
        "This tool helps to parse a log file and dump its contents to the console, useful for debugging a seemingly "
        "corrupt log segment."
    ),
    run=_run,
    options=(
        Option("files", "The files, with commas between them.", metavar="files"),
        flag("print-data-log", "Show the keys and values of records."),
        flag("deep-iteration", "Show each record, not only the batches."),
        flag("skip-record-metadata", "Show records without their offsets and so on."),
        flag("index-sanity-check", "Check indexes as a broker does at its start, and show nothing of them."),
        flag("verify-index-only", "Check indexes and show nothing of them."),
        Option("max-bytes", "How much of a log to show.", metavar="bytes", default="2147483647"),
        Option("max-message-size", "Of older command lines; batches of any size are shown.", metavar="bytes",
               default="5242880"),
        Option("key-decoder-class", "The class that shows keys; there is only text.", metavar="class",
               takes=Takes.MAYBE),
        Option("value-decoder-class", "The class that shows values; there is only text.", metavar="class",
               takes=Takes.MAYBE),
        flag("offsets-decoder", "Show the records of __consumer_offsets as JSON."),
        flag("transaction-log-decoder", "Show the records of __transaction_state as JSON."),
        flag("cluster-metadata-decoder", "Show the records of __cluster_metadata (KRaft), log or snapshots, as JSON."),
        flag("remote-log-metadata-decoder", "Show the records of __remote_log_metadata."),
        flag("share-group-state-decoder", "Show the records of __share_group_state as JSON."),
    ),
)  # fmt: skip


def main() -> NoReturn:
    run_tool(TOOL)


if __name__ == "__main__":
    main()
