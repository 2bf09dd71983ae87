"""`penstock produce`: records of a topic from lines, JSON lines, files or the command line."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import click

from penstock.cli import parsing
from penstock.cli.completion import complete_topics
from penstock.cli.connection import Connection
from penstock.cli.connection_options import connection_options
from penstock.cli.failures import fail
from penstock.cli.nouns import HELP
from penstock.cli.output import to_json
from penstock.cli.progress import Progress
from penstock.cli.record_json import BadRecord, InputRecord, parse_record


@click.command("produce", context_settings=HELP)
@click.argument("topic", shell_complete=complete_topics)
@click.argument("files", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "-v", "--value", "values", multiple=True, help="A record of this value; repeatable. No input is read then."
)
@click.option("--json", "as_json", is_flag=True, help="Lines are records as `consume -o json` writes them.")
@click.option("-K", "--key-separator", metavar="TEXT", help="A line is a key, this text, and a value.")
@click.option("-k", "--key", help="The key of every record that has none of its own.")
@click.option("-H", "--header", "headers", multiple=True, metavar="NAME=VALUE", help="A header of every record.")
@click.option("-p", "--partition", type=click.IntRange(min=0), help="Where every record goes.")
@click.option("-t", "--timestamp", metavar="TIME", help="Of every record: 2026-11-16T22:00:00Z, ms, now, -15m.")
@click.option("--null", "null", metavar="TEXT", help="A value (or key) of this text is none: a tombstone.")
@click.option("--whole", is_flag=True, help="Each file, or all of the input, is one record.")
@click.option("-z", "--compression", type=click.Choice(["none", "gzip", "snappy", "lz4", "zstd"]))
@click.option("--acks", type=click.Choice(["all", "1", "0"]), help="Who must have a record before it counts.")
@click.option("--report", is_flag=True, help="A line of JSON for each record: where it is now.")
@connection_options
def command(
    connection: Connection,
    *,
    topic: str,
    files: tuple[Path, ...],
    values: tuple[str, ...],
    as_json: bool,
    key_separator: str | None,
    key: str | None,
    headers: tuple[str, ...],
    partition: int | None,
    timestamp: str | None,
    null: str | None,
    whole: bool,
    compression: str | None,
    acks: str | None,
    report: bool,
) -> None:
    """Write records to a topic: the lines of FILES, or of the standard input.

    \b
    penstock produce orders --value hello --key customer-7
    penstock produce orders -K: < lines-of-key-and-value
    penstock consume orders -e | penstock produce copy --json
    """
    if as_json and (key_separator is not None or whole):
        raise click.UsageError("--json records have their own keys: leave out --key-separator and --whole")
    if values and files:
        raise click.UsageError("give --value or FILES, not both")
    if key_separator == "":
        raise click.UsageError("--key-separator: the text is empty")
    when = None if timestamp is None else parsing.timestamp_ms(timestamp, parsing.now())
    # A name may come several times, so each is read by itself.
    shared = [(name, value.encode()) for each in headers for name, value in parsing.pairs([each], "--header").items()]
    read = _reader(as_json, key_separator, null)
    source = _inputs(files, values, whole=whole)
    with connection.producer(compression_type=compression, acks=acks) as producer:
        sending = _Sending(report)
        started = time.monotonic()
        total_unknown = sys.stdin.isatty() and not files and not values
        with Progress(f"Writing to {topic}", enabled=not report and not total_unknown) as progress:
            for record in _records(source, read):
                producer.send(
                    topic,
                    record.value,
                    record.key if record.key is not None or key is None else key.encode(),
                    partition=partition if record.partition is None or partition is not None else record.partition,
                    timestamp_ms=when if record.timestamp_ms is None else record.timestamp_ms,
                    headers=[*record.headers, *shared] or None,
                    on_delivery=sending.delivered,
                )
                progress.advance()
                if sending.error is not None:
                    break
            producer.flush()
    sending.check(progress.done)
    if sys.stderr.isatty() and not report:
        click.echo(f"Wrote {progress.done:,} records to {topic} in {time.monotonic() - started:.1f} s.", err=True)


class _Sending:
    """What became of the records; the first failure ends the work."""

    def __init__(self, report: bool) -> None:
        self.error: Any = None
        self.written = 0
        self._report = report

    def delivered(self, metadata: Any, error: Any) -> None:
        if error is not None:
            self.error = self.error or error
            return
        self.written += 1
        if self._report:
            document = {
                "topic": metadata.topic,
                "partition": metadata.partition,
                "offset": metadata.offset,
                "timestamp": metadata.timestamp,
            }
            sys.stdout.write(to_json(document) + "\n")

    def check(self, sent: int) -> None:
        if self.error is None:
            return
        message = self.error.message.rstrip(".")
        fail(f"{message} ({self.written} of {sent} records were written)")


def _inputs(files: tuple[Path, ...], values: tuple[str, ...], *, whole: bool) -> Iterator[tuple[str, bytes]]:
    """(where it is from, the raw text of a record)."""
    if values:
        yield from (("--value", value.encode()) for value in values)
        return
    if not files:
        yield from _pieces("line", sys.stdin.buffer, whole=whole)
    for file in files:
        with file.open("rb") as opened:
            yield from _pieces(f"{file}, line", opened, whole=whole)


def _pieces(name: str, stream: IO[bytes], *, whole: bool) -> Iterator[tuple[str, bytes]]:
    if whole:
        yield name, stream.read()
        return
    for number, line in enumerate(stream, start=1):
        text = line[:-1] if line.endswith(b"\n") else line
        yield f"{name} {number}", text[:-1] if text.endswith(b"\r") else text


def _records(source: Iterable[tuple[str, bytes]], read: Callable[[bytes], InputRecord | None]) -> Iterator[InputRecord]:
    for where, raw in source:
        try:
            record = read(raw)
        except BadRecord as error:
            fail(f"{where}: {error}")
        if record is not None:
            yield record


def _reader(as_json: bool, separator: str | None, null: str | None) -> Callable[[bytes], InputRecord | None]:
    """How a piece of input becomes a record; None for one that is none (an empty line between records)."""
    if as_json:
        return lambda raw: parse_record(raw) if raw.strip() else None
    marker = None if null is None else null.encode()

    def plain(raw: bytes) -> bytes | None:
        return None if raw == marker else raw

    if separator is None:
        return lambda raw: InputRecord(value=plain(raw))
    between = separator.replace("\\t", "\t").encode()

    def keyed(raw: bytes) -> InputRecord:
        key, found, value = raw.partition(between)
        if not found:
            raise BadRecord(f"there is no {separator!r} between a key and a value")
        return InputRecord(value=plain(value), key=plain(key))

    return keyed
