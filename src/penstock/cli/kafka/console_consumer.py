"""kafka-console-consumer: records become lines of standard output."""

from __future__ import annotations

import random
import re
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from penstock.cli.connection import read_properties
from penstock.cli.failures import Failed, warn
from penstock.cli.kafka.connecting import connect, settings
from penstock.cli.kafka.internal_formatters import FORMATTERS, UnreadableError, format_record
from penstock.cli.kafka.lines import FORMATTER_KEYS, LineError, LineFormatter, unknown_keys
from penstock.cli.kafka.missing_topics import partitions_of
from penstock.cli.kafka.parsing import Option, Parsed, UsageError, flag, key_values
from penstock.cli.kafka.tool import BOOTSTRAP, COMMAND_CONFIG, ZOOKEEPER, Tool, run_tool

if TYPE_CHECKING:
    from penstock.client.consumer.blocking import Consumer

_POLL_RECORDS_MAX = 500
_POLL_MS = 1000.0


def _run(options: Parsed) -> None:
    _check(options)
    show = _formatter(options)
    connection = connect(_consumer_settings(options))
    reading = _Reading(options, show)
    with connection.consumer() as consumer:
        _choose(consumer, options)
        try:
            _check_place(consumer, options)
            reading.run(consumer)
        finally:
            # Also after Ctrl-C, which is how one ends a consumer that waits for more.
            print(f"Processed a total of {reading.count} messages", file=sys.stderr)


class _Reading:
    """The loop, and how many records it has shown."""

    def __init__(self, options: Parsed, show: Callable[[Any], bytes]) -> None:
        self.count = 0
        self._show = show
        wanted = options.number("max-messages")
        # Kafka's -1 is no limit.
        self._max = None if wanted is None or wanted < 0 else wanted
        self._idle_ms = options.number("timeout-ms")
        self._skips_errors = options.has("skip-message-on-error")

    def run(self, consumer: Consumer) -> None:
        last = time.monotonic()
        while self._max is None or self.count < self._max:
            left_ms = _POLL_MS
            if self._idle_ms is not None and self._idle_ms >= 0:
                left_ms = min(left_ms, self._idle_ms - (time.monotonic() - last) * 1000)
                if left_ms <= 0:
                    return
            # No more than will be shown: what is polled counts as read when the offsets are committed.
            wanted = _POLL_RECORDS_MAX if self._max is None else min(_POLL_RECORDS_MAX, self._max - self.count)
            records = consumer.poll(left_ms, wanted)
            for record in records:
                self._write(record)
            if records:
                sys.stdout.buffer.flush()
                last = time.monotonic()

    def _write(self, record: Any) -> None:
        self.count += 1
        try:
            line = self._show(record)
        except LineError as error:
            where = f"{record.topic}-{record.partition} at offset {record.offset}"
            if not self._skips_errors:
                raise Failed(f"The record of {where} cannot be shown: {error}") from None
            print(f"Error processing message of {where}, skipping it: {error}", file=sys.stderr)
            return
        sys.stdout.buffer.write(line)


def _check(options: Parsed) -> None:
    chosen = [each for each in ("topic", "include", "whitelist") if options.has(each)]
    if len(chosen) != 1:
        raise UsageError("Exactly one of the following arguments is required: [topic], [include]")
    if options.has("partition") and not options.has("topic"):
        raise UsageError("The topic is required when partition is specified.")
    if options.has("offset"):
        if not options.has("partition"):
            raise UsageError("The partition is required when offset is specified.")
        if options.has("from-beginning"):
            raise UsageError("The --from-beginning and --offset options cannot be specified together.")
        offset_of(options.text("offset"))
    if options.has("group") and options.has("partition"):
        raise UsageError("Options group and partition cannot be specified together.")


def offset_of(text: str) -> int:
    """The offset to begin at; -1 for the end, -2 for the beginning."""
    words = {"earliest": -2, "latest": -1}
    if text.lower() in words:
        return words[text.lower()]
    if not text.isdecimal():
        raise UsageError(
            f"The provided offset value '{text}' is incorrect. Valid values are 'earliest', 'latest', or a "
            "non-negative long."
        )
    return int(text)


def _choose(consumer: Consumer, options: Parsed) -> None:
    """What is read, and where it begins."""
    from penstock.base.types import TopicPartition

    partition = options.number("partition")
    if partition is None:
        pattern = options.get("include") or options.get("whitelist")
        try:
            consumer.subscribe([options.text("topic")] if pattern is None else re.compile(pattern))
        except re.error as error:
            raise UsageError(f"--include {pattern} is no regular expression: {error}") from None
        return
    place = TopicPartition(options.text("topic"), partition)
    consumer.assign([place])
    offset = offset_of(options.get("offset") or ("earliest" if options.has("from-beginning") else "latest"))
    if offset == -2:
        consumer.seek_to_beginning([place])
    elif offset == -1:
        consumer.seek_to_end([place])
    else:
        consumer.seek(place, offset)


def _check_place(consumer: Consumer, options: Parsed) -> None:
    """A topic that does not exist is waited for, which is told; a partition of one that does will not come."""
    if not options.has("topic"):
        return
    topic, partition = options.text("topic"), options.number("partition")
    there = partitions_of(consumer, topic)
    if partition is not None and there and partition not in there:
        raise Failed(
            f"Partition {topic}-{partition} does not exist: the topic has {len(there)} partition(s), from 0 to "
            f"{max(there)}"
        )


def _formatter(options: Parsed) -> Callable[[Any], bytes]:
    properties: dict[str, str] = {}
    if options.has("formatter-config"):
        properties |= read_properties(options.text("formatter-config"))
    for name in ("property", "formatter-property"):
        properties |= key_values(options.values(name), name)
    for name in ("key-deserializer", "value-deserializer"):
        if options.has(name):
            properties[name.replace("-", ".")] = options.text(name)
    shown = LineFormatter(properties)
    # Before Kafka 4, those of internal topics were classes inside of others: `GroupMetadataManager$Offsets...`.
    name = options.text("formatter").rpartition(".")[2].rpartition("$")[2]
    if name == "DefaultMessageFormatter":
        for each in unknown_keys(properties, FORMATTER_KEYS, "formatter"):
            warn(each)
        return shown.line
    if name in FORMATTERS:
        return lambda record: _as_json(record, name)
    if name == "NoOpMessageFormatter":
        return lambda record: b""
    if name == "LoggingMessageFormatter":
        return lambda record: _logged(record, shown)
    raise UsageError(
        f"--formatter {options.get('formatter')} is a Java class that cannot be run here; there are "
        f"DefaultMessageFormatter, LoggingMessageFormatter, NoOpMessageFormatter and, for Kafka's own topics, "
        f"{', '.join(FORMATTERS)}"
    )


def _as_json(record: Any, formatter: str) -> bytes:
    """A record of one of Kafka's own topics; nothing of those kinds that are not the formatter's."""
    try:
        line = format_record(formatter, record.key, record.value)
    except UnreadableError as error:
        raise LineError(str(error)) from None
    return b"" if line is None else f"{line}\n".encode()


def _logged(record: Any, shown: LineFormatter) -> bytes:
    kind = {0: "CreateTime", 1: "LogAppendTime"}.get(int(record.timestamp_type), "NoTimestampType")
    key, value = (_text(each) for each in (record.key, record.value))
    line = f"{kind}:{record.timestamp}, key:{key}, value:{value}\n".encode()
    return shown.line(record) + line


def _text(data: bytes | None) -> str:
    return "null" if data is None else data.decode(errors="replace")


def _consumer_settings(options: Parsed) -> dict[str, object]:
    properties: dict[str, str] = {}
    for name in ("consumer-property", "command-property"):
        properties |= key_values(options.values(name), name)
    found = settings(options, files=("consumer.config", "command-config"), overrides=properties)
    # What shows the records is the formatter's; the consumer gives bytes.
    for key in ("key.deserializer", "value.deserializer"):
        found.pop(key, None)
    _choose_reset(options, found)
    _choose_group(options, found)
    if options.has("isolation-level"):
        found["isolation.level"] = options.text("isolation-level")
    found.setdefault("client.id", "console-consumer")
    return found


def _choose_reset(options: Parsed, found: dict[str, object]) -> None:
    given = found.get("auto.offset.reset")
    if options.has("from-beginning"):
        if given not in (None, "earliest"):
            raise Failed(
                f"Can't simultaneously specify --from-beginning and 'auto.offset.reset={given}', please remove one "
                "option"
            )
        found["auto.offset.reset"] = "earliest"
    elif given is None:
        found["auto.offset.reset"] = "latest"


def _choose_group(options: Parsed, found: dict[str, object]) -> None:
    """All places that name a group must name the same; without one, a group of this run's own commits nothing."""
    named = {str(each) for each in (options.get("group"), found.get("group.id")) if each is not None}
    if len(named) > 1:
        raise Failed(
            "The group ids provided in different places (directly using '--group', via '--command-property', or via "
            f"'--command-config') do not match. Detected group ids: {', '.join(sorted(repr(each) for each in named))}"
        )
    if options.has("partition"):
        found.pop("group.id", None)
        found.setdefault("enable.auto.commit", "false")
    elif named:
        found["group.id"] = named.pop()
    else:
        found["group.id"] = f"console-consumer-{random.randrange(100_000)}"
        found.setdefault("enable.auto.commit", "false")


TOOL = Tool(
    name="kafka-console-consumer",
    about="This tool helps to read data from Kafka topics and outputs it to standard output.",
    run=_run,
    options=(
        BOOTSTRAP,
        ZOOKEEPER,
        COMMAND_CONFIG,
        Option("consumer.config", "Older name of --command-config.", metavar="file"),
        Option("command-property", "A setting of the consumer; repeatable.", metavar="key=value", repeatable=True),
        Option("consumer-property", "Older name of --command-property.", metavar="key=value", repeatable=True),
        Option("topic", "The topic to read.", metavar="topic"),
        Option("include", "A regular expression of the topics to read.", metavar="pattern"),
        Option("whitelist", "Older name of --include.", metavar="pattern"),
        flag("new-consumer", "Of older command lines; there is no other consumer."),
        Option("partition", "The partition to read.", metavar="number"),
        Option("offset", "Where to begin: an offset, earliest or latest.", metavar="offset"),
        flag("from-beginning", "Begin with the first record, unless the group has an offset."),
        Option("group", "The group to read as.", metavar="group"),
        Option("max-messages", "End after so many records.", metavar="number"),
        Option("timeout-ms", "End when no record has come for so long.", metavar="ms"),
        flag("skip-message-on-error", "Go on after a record that cannot be shown."),
        Option("isolation-level", "read_committed or read_uncommitted.", metavar="level"),
        Option(
            "formatter",
            "DefaultMessageFormatter, LoggingMessageFormatter or NoOpMessageFormatter; for Kafka's own topics "
            "OffsetsMessageFormatter, GroupMetadataMessageFormatter, TransactionLogMessageFormatter or "
            "ShareGroupStateMessageFormatter.",
            metavar="class",
            default="org.apache.kafka.tools.consumer.DefaultMessageFormatter",
        ),
        Option(
            "formatter-property",
            "How records are shown: print.timestamp, print.key, print.offset, print.epoch, print.partition, "
            "print.headers, print.value (true or false), key.separator, line.separator, headers.separator, "
            "null.literal, key.deserializer, value.deserializer, headers.deserializer; repeatable.",
            metavar="key=value", repeatable=True,
        ),
        Option("property", "Older name of --formatter-property.", metavar="key=value", repeatable=True),
        Option("formatter-config", "Properties file with formatter properties.", metavar="file"),
        Option("key-deserializer", "The class that shows keys.", metavar="class"),
        Option("value-deserializer", "The class that shows values.", metavar="class"),
        flag("enable-systest-events", "", refused="the events are for the system tests of Apache Kafka only"),
    ),
)  # fmt: skip


def main() -> NoReturn:
    run_tool(TOOL)


if __name__ == "__main__":
    main()
