"""`penstock consume`: records of topics, from where to where one likes, in any form.

Without a group, partitions are read from explicit offsets, which are looked up once; so are the ends, if there are any.
With a group, the command is a member like any other, and commits what it has printed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import click

from penstock.base.types import TopicPartition
from penstock.cli import parsing
from penstock.cli.completion import complete_groups, complete_topics
from penstock.cli.connection import Connection
from penstock.cli.connection_options import connection_options
from penstock.cli.failures import coloured, fail
from penstock.cli.nouns import HELP
from penstock.cli.output import show_time, to_json
from penstock.cli.progress import Progress

_POLL_MS: Final = 250
_LOOK_BACK_WAIT_MS: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class _Span:
    """What to read of each partition, as it was asked for."""

    beginning: bool
    end: bool
    from_offset: int | None
    to_offset: int | None
    from_time: str | None
    to_time: str | None
    tail: int | None
    exits: bool

    def starts(self) -> int:
        return sum(
            (self.beginning, self.end, self.from_offset is not None, self.from_time is not None, self.tail is not None)
        )


@click.command("consume", context_settings=HELP)
@click.argument("topics", nargs=-1, required=True, shell_complete=complete_topics)
@click.option("-p", "--partitions", metavar="0,2-5", help="Only these partitions.")
@click.option("--from-beginning", "beginning", is_flag=True, help="From the first record. So it is by default.")
@click.option("--from-end", "end", is_flag=True, help="Only records that are written from now on.")
@click.option("--from-offset", type=click.IntRange(min=0), metavar="N", help="From this offset of each partition.")
@click.option(
    "--to-offset", type=click.IntRange(min=0), metavar="N", help="Up to, not including, this offset, or the end."
)
@click.option("--from-time", metavar="TIME", help="From records of this time: 2026-11-16T22:00:00Z, ms, -15m.")
@click.option("--to-time", metavar="TIME", help="Up to, not including, records of this time.")
@click.option("--tail", type=click.IntRange(min=1), metavar="N", help="The last N records of each partition.")
@click.option("-n", "--max-records", type=click.IntRange(min=1), metavar="N", help="No more than N records.")
@click.option("-e", "--exit", "exits", is_flag=True, help="Stop at the end instead of waiting for more.")
@click.option("--idle-timeout", metavar="DURATION", help="Stop when nothing came for so long, such as 10s.")
@click.option("-g", "--group", shell_complete=complete_groups, help="Read as a member of this group, and commit.")
@click.option(
    "--isolation",
    type=click.Choice(["read_uncommitted", "read_committed"]),
    default="read_uncommitted",
    show_default=True,
    help="Whether records of open and aborted transactions are shown.",
)
@click.option("-f", "--format", "template", metavar="TEXT", help=r"Such as '%t-%p@%o %k: %s\n'; see below.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), help="Text on a terminal, else lines of JSON.")
@connection_options
def command(
    connection: Connection,
    *,
    topics: tuple[str, ...],
    partitions: str | None,
    max_records: int | None,
    idle_timeout: str | None,
    group: str | None,
    isolation: str,
    template: str | None,
    output: str | None,
    **span_options: Any,
) -> None:
    r"""Read records of topics.

    Letters of --format: %t topic, %p partition, %o offset, %T timestamp in ms, %d time, %k key, %K its size, %s value,
    %S its size, %h headers; \n, \t and the like.
    """
    span = _Span(**span_options)
    if span.starts() > 1:
        raise click.UsageError(
            "say one place to begin: --from-beginning, --from-end, --from-offset, --from-time or --tail"
        )
    if template is not None and output is not None:
        raise click.UsageError("give --format or --output, not both")
    idle_s = None if idle_timeout is None else parsing.duration_s(idle_timeout)
    printer = _Printer(_writer(template, output), max_records)
    overrides: dict[str, object] = {"isolation_level": isolation}
    if group is None:
        chosen = None if partitions is None else parsing.numbers(partitions, "partitions")
        firsts, starts, ends = _bounds(connection, list(dict.fromkeys(topics)), chosen, span, isolation)
        overrides |= {"enable_auto_commit": "false", "auto_offset_reset": "earliest"}
        if span.tail is not None:
            # It looks back only, so no fetch waits for more, and what it leaves unread is not in the way of the other.
            with connection.consumer(**overrides, fetch_max_wait_ms=_LOOK_BACK_WAIT_MS) as scout:
                starts = _tail_starts(scout, starts, firsts, span.tail)
        with connection.consumer(**overrides) as consumer:
            _read_partitions(consumer, starts, ends, printer, idle_s)
        return
    _check_group_options(span, partitions)
    reset = "latest" if span.end else "earliest"
    _check_topics(connection, topics)
    with connection.consumer(**overrides, group_id=group, auto_offset_reset=reset) as consumer:
        consumer.subscribe(list(dict.fromkeys(topics)))
        _read_group(consumer, printer, idle_s, exits=span.exits)


def _check_group_options(span: _Span, partitions: str | None) -> None:
    bounds = (span.from_offset, span.to_offset, span.from_time, span.to_time, span.tail, partitions)
    if any(each is not None for each in bounds):
        raise click.UsageError(
            "a group decides which partitions and offsets are read: leave the bounds out, or read without --group"
        )


def _check_topics(connection: Connection, topics: Iterable[str]) -> None:
    with connection.admin() as admin:
        admin.describe_topics(list(dict.fromkeys(topics)))


# Bounds.


def _bounds(
    connection: Connection, topics: list[str], numbers: list[int] | None, span: _Span, isolation: str
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int], dict[TopicPartition, int]]:
    """The first offset of each partition, the one to begin at and, for those that have one, the end."""
    from penstock import IsolationLevel, OffsetSpec

    level = IsolationLevel[isolation.upper()]
    with connection.admin() as admin:
        found = admin.describe_topics(topics)
        chosen = _chosen(found.values(), numbers)

        def offsets(spec: OffsetSpec) -> dict[TopicPartition, int]:
            listed = admin.list_offsets(dict.fromkeys(chosen, spec), isolation_level=level)
            return {tp: each.offset for tp, each in listed.items()}

        first, last = offsets(OffsetSpec.EARLIEST), offsets(OffsetSpec.LATEST)
        now = parsing.now()

        def at(text: str) -> dict[TopicPartition, int]:
            return offsets(OffsetSpec.at(parsing.timestamp_ms(text, now)))

        from_time = at(span.from_time) if span.from_time is not None else {}
        to_time = at(span.to_time) if span.to_time is not None else {}
    starts = {tp: _start(tp, span, first[tp], last[tp], from_time) for tp in chosen}
    # When the time is over already, nothing that is still to come can belong before it.
    over = span.to_time is not None and parsing.timestamp_ms(span.to_time, now) <= now.timestamp() * 1000
    ends = {tp: end for tp in chosen if (end := _end(tp, span, last[tp], to_time, over=over)) is not None}
    return first, starts, ends


def _chosen(topics: Iterable[Any], numbers: list[int] | None) -> list[TopicPartition]:
    chosen = []
    for topic in topics:
        existing = [each.partition for each in topic.partitions]
        for number in existing if numbers is None else numbers:
            if number not in existing:
                fail(f"topic {topic.name} has no partition {number}: it has {len(existing)}, from 0")
            chosen.append(TopicPartition(topic.name, number))
    return chosen


def _start(tp: TopicPartition, span: _Span, first: int, last: int, from_time: Mapping[TopicPartition, int]) -> int:
    if span.end:
        return last
    if span.from_offset is not None:
        # An offset outside the log would begin somewhere that nobody asked for.
        return min(max(span.from_offset, first), last)
    if span.tail is not None:
        return last
    if span.from_time is not None:
        return from_time[tp] if from_time[tp] >= 0 else last
    return first


def _end(
    tp: TopicPartition, span: _Span, last: int, to_time: Mapping[TopicPartition, int], *, over: bool
) -> int | None:
    ends = [last] if span.exits or over else []
    if span.to_offset is not None:
        # A partition that is shorter would be waited for without a word. From the end on, waiting is the purpose.
        ends.append(span.to_offset if span.end else min(span.to_offset, last))
    if span.to_time is not None and to_time[tp] >= 0:
        ends.append(to_time[tp])
    return min(ends, default=None)


# Reading.


def _tail_starts(
    consumer: Any, ends: Mapping[TopicPartition, int], firsts: Mapping[TopicPartition, int], count: int
) -> dict[TopicPartition, int]:
    """Where the last `count` records before each end begin.

    Not every offset has a record: there are the markers of transactions, and what compaction left out. So steps back
    are taken, each twice as long as the one before, until there are enough, or the log begins.
    """
    found: dict[TopicPartition, list[int]] = {tp: [] for tp in ends}
    looked, step = dict(ends), count
    while short := {tp for tp in ends if len(found[tp]) < count and looked[tp] > firsts[tp]}:
        begins = {tp: max(firsts[tp], looked[tp] - step) for tp in short}
        earlier = _offsets_between(consumer, begins, {tp: looked[tp] for tp in short})
        for tp in short:
            found[tp] = [*earlier[tp], *found[tp]][-count:]
        looked |= begins
        step *= 2
    return {tp: offsets[0] if offsets else ends[tp] for tp, offsets in found.items()}


def _offsets_between(
    consumer: Any, begins: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
) -> dict[TopicPartition, list[int]]:
    """The offsets that have records."""
    found: dict[TopicPartition, list[int]] = {tp: [] for tp in begins}
    reading = set(begins)
    consumer.assign(reading)
    for tp, offset in begins.items():
        consumer.seek(tp, offset)
    while reading:
        for each in consumer.poll(_POLL_MS):
            tp = TopicPartition(each.topic, each.partition)
            if each.offset < ends[tp]:
                found[tp].append(each.offset)
        done = {tp for tp in reading if consumer.position(tp) >= ends[tp]}
        reading -= done
        consumer.pause(done)
    consumer.unsubscribe()
    return found


def _read_partitions(
    consumer: Any,
    starts: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
    printer: _Printer,
    idle_s: float | None,
) -> None:
    reading = {tp for tp, start in starts.items() if tp not in ends or start < ends[tp]}
    if not reading:
        return
    consumer.assign(reading)
    for tp in reading:
        consumer.seek(tp, starts[tp])
    heard = time.monotonic()
    with _progress(starts, ends, printer.room) as progress:
        while reading:
            records = consumer.poll(_POLL_MS)
            wanted = [
                each for each in records if each.offset < ends.get(TopicPartition(each.topic, each.partition), 2**63)
            ]
            progress.advance(len(wanted))
            if printer.print(wanted):
                return
            done = {tp for tp in reading if tp in ends and consumer.position(tp) >= ends[tp]}
            if done:
                reading -= done
                consumer.pause(done)
            now = time.monotonic()
            heard = now if records else heard
            if idle_s is not None and now - heard >= idle_s:
                return


def _progress(
    starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int], records_max: int | None
) -> Progress:
    """For those who write to a file and wait: how far it is, where the end is known. On a terminal, records show that.

    Offsets without a record (of compacted topics, and markers of transactions) make the total a little too high.
    """
    known = len(ends) == len(starts)
    total = sum(max(0, ends[tp] - start) for tp, start in starts.items()) if known else 0
    total = total if records_max is None else min(total, records_max)
    return Progress("Reading", total=total, enabled=known and not sys.stdout.isatty())


def _read_group(consumer: Any, printer: _Printer, idle_s: float | None, *, exits: bool) -> None:
    """Never takes more than it prints, so that what is committed at the end has been seen."""
    heard = time.monotonic()
    while True:
        records = consumer.poll(_POLL_MS, max_records=printer.room)
        if printer.print(records):
            return
        now = time.monotonic()
        heard = now if records else heard
        if idle_s is not None and now - heard >= idle_s:
            return
        if exits and not records and _is_at_end(consumer):
            return


def _is_at_end(consumer: Any) -> bool:
    assigned = consumer.assignment()
    if not assigned:
        return False
    ends = consumer.end_offsets(assigned)
    return all(consumer.position(tp) >= end for tp, end in ends.items())


# Printing.

Write = Callable[[Any], bytes]


class _Printer:
    """Writes records until there are enough."""

    def __init__(self, write: Write, max_records: int | None) -> None:
        self._write = write
        self._left = max_records

    @property
    def room(self) -> int | None:
        return self._left

    def print(self, records: list[Any]) -> bool:
        """Whether that was all that was wanted."""
        chosen = records if self._left is None else records[: self._left]
        if chosen:
            write, out = self._write, sys.stdout.buffer
            out.write(b"".join([write(each) for each in chosen]))
            out.flush()
        if self._left is not None:
            self._left -= len(chosen)
        return self._left == 0


def _writer(template: str | None, output: str | None) -> Write:
    if template is not None:
        from penstock.cli.record_format import compile_format

        return compile_format(template)
    if (output or ("text" if sys.stdout.isatty() else "json")) == "json":
        from penstock.cli.record_json import record_document

        return lambda record: to_json(record_document(record)).encode() + b"\n"
    return _colour_line if coloured(sys.stdout) else _line


def _line(record: Any) -> bytes:
    where = f"{record.topic}:{record.partition}:{record.offset} {show_time(record.timestamp)} "
    return where.encode() + _content(record)


def _colour_line(record: Any) -> bytes:
    where = click.style(f"{record.topic}:{record.partition}:{record.offset} {show_time(record.timestamp)} ", dim=True)
    return where.encode() + _content(record)


def _content(record: Any) -> bytes:
    """Key and value as people can read them: signs that would upset a terminal are shown, not sent."""
    value = "(null)" if record.value is None else _readable(record.value)
    text = value if record.key is None else f"{_readable(record.key)} = {value}"
    if record.headers:
        text += "  " + " ".join(f"{name}={_readable(value or b'')}" for name, value in record.headers)
    return text.encode() + b"\n"


def _readable(data: bytes) -> str:
    text = data.decode(errors="backslashreplace")
    return "".join(sign if sign.isprintable() or sign == "\t" else repr(sign)[1:-1] for sign in text)
