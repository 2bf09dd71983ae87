"""`penstock log`: what is in the files of a partition, without a broker.

Segments (`.log`) are shown batch by batch or record by record, and checked: checksums, sizes, offsets in order. Offset
and time indexes are shown as they are. The files may be Apache Kafka's; the format is the same.
"""

from __future__ import annotations

import mmap
import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import click

from penstock.cli.failures import fail
from penstock.cli.nouns import HELP, Noun
from penstock.cli.output import Output, Row, output_option, to_json
from penstock.cli.record_json import named_bytes

_OFFSET_ENTRY: Final = struct.Struct(">ii")
_TIME_ENTRY: Final = struct.Struct(">qi")


@click.group("log", cls=Noun, context_settings=HELP)
def command() -> None:
    """Look into the files of a broker's log."""


@command.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("-r", "--records", is_flag=True, help="Every record, not only the batches.")
@output_option
def dump(output: Output, *, paths: tuple[Path, ...], records: bool) -> None:
    """Show and check segments and indexes: files, or directories of partitions.

    Ends with 1 if something is wrong in a file.
    """
    problems = 0
    for file in _files(paths):
        for row in _READERS[file.suffix](file, records):
            problems += "problem" in row
            line = _sentence(row) if output.is_table else to_json({"file": str(file), **row})
            sys.stdout.write((f"{file.name}: {line}" if output.is_table else line) + "\n")
    if problems:
        fail(f"{problems} problems were found: a broker that starts on these files repairs the end of the last segment")


def _files(paths: tuple[Path, ...]) -> Iterator[Path]:
    for path in paths:
        found = [path] if path.is_file() else sorted(each for each in path.iterdir() if each.suffix in _READERS)
        if not found:
            fail(f"{path} has no segments: name the directory of a partition, such as /tmp/kafka-logs/orders-0")
        for each in found:
            if each.suffix not in _READERS:
                fail(f"{each} is none of {', '.join(_READERS)}")
            yield each


def _segment(file: Path, records: bool) -> Iterator[Row]:
    if not file.stat().st_size:
        return
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        # A slice of a map is a copy; of a view it is none, but views must be gone before the map is closed.
        view = memoryview(mapped)
        try:
            yield from _batches(view, records)
        finally:
            view.release()


def _batches(view: memoryview, records: bool) -> Iterator[Row]:
    from penstock.base.errors import KafkaError
    from penstock.records.batch import HEADER_SIZE, MAGIC, crc_is_valid, read_header
    from penstock.records.builder import read_records

    position, expected = 0, -1
    while position < len(view):
        left = len(view) - position
        if left < HEADER_SIZE:
            yield {"position": position, "problem": f"{left} bytes at the end are no batch"}
            return
        header = read_header(view, position)
        size = header.size_in_bytes
        if header.magic != MAGIC or size < HEADER_SIZE or size > left:
            yield {"position": position, "problem": f"no valid batch of format {MAGIC} in the last {left} bytes"}
            return
        row: dict[str, Any] = _batch(position, header)
        if not crc_is_valid(view, position, size):
            row["problem"] = "the checksum does not match"
        elif header.base_offset < expected:
            row["problem"] = f"offset {header.base_offset} comes after {expected - 1}"
        yield row
        expected = header.next_offset
        if records and "problem" not in row:
            try:
                yield from map(_record, read_records(view, position, header))
            except KafkaError as error:
                yield {"position": position, "problem": error.message}
        position += size


def _batch(position: int, header: Any) -> dict[str, Any]:
    return {
        "position": position,
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "count": header.count,
        "size": header.size_in_bytes,
        "codec": header.codec.config_name,
        "timestamp_type": str(header.timestamp_type),
        "max_timestamp": header.max_timestamp,
        "leader_epoch": header.leader_epoch,
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
        "transactional": header.is_transactional,
        "control": header.is_control,
    }


def _record(record: Any) -> Row:
    return {
        "offset": record.offset,
        "timestamp": record.timestamp,
        **named_bytes("key", record.key),
        **named_bytes("value", record.value),
        "headers": [{"name": name, **named_bytes("value", value)} for name, value in record.headers],
    }


def _offset_index(file: Path, _: bool) -> Iterator[Row]:
    base = int(file.stem) if file.stem.isdecimal() else 0
    for number, (offset, position) in enumerate(_entries(file, _OFFSET_ENTRY)):
        # An index is made larger than it is full; what was never written is zero.
        if number and not position:
            return
        yield {"offset": base + offset, "position": position}


def _time_index(file: Path, _: bool) -> Iterator[Row]:
    base = int(file.stem) if file.stem.isdecimal() else 0
    for timestamp, offset in _entries(file, _TIME_ENTRY):
        if not timestamp:
            return
        yield {"timestamp": timestamp, "offset": base + offset}


def _entries(file: Path, entry: struct.Struct) -> Iterator[tuple[int, ...]]:
    data = file.read_bytes()
    return entry.iter_unpack(data[: len(data) - len(data) % entry.size])


_READERS: Final[dict[str, Callable[[Path, bool], Iterator[Row]]]] = {
    ".log": _segment,
    ".index": _offset_index,
    ".timeindex": _time_index,
}


def _sentence(row: Row) -> str:
    return " ".join(f"{key}={value}" for key, value in row.items())
