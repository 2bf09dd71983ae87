"""kafka-console-producer: lines of standard input become records."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NoReturn

from penstock.cli.connection import read_properties
from penstock.cli.failures import Failed, warn
from penstock.cli.kafka.connecting import connect, settings
from penstock.cli.kafka.lines import READER_KEYS, Line, LineError, LineReader, unknown_keys
from penstock.cli.kafka.missing_topics import told_if_missing
from penstock.cli.kafka.parsing import Option, Parsed, Takes, UsageError, flag, key_values
from penstock.cli.kafka.tool import BOOTSTRAP, COMMAND_CONFIG, Tool, run_tool

if TYPE_CHECKING:
    from penstock.client.producer.blocking import Producer

_READERS = ("LineMessageReader", "ConsoleProducer$LineMessageReader")
_FAILURES_SHOWN_MAX = 10


def _run(options: Parsed) -> int:
    topic = options.text("topic")
    if options.text("line-reader").rpartition(".")[2] not in _READERS:
        raise UsageError(f"--line-reader {options.get('line-reader')} is a Java class, which cannot be run here")
    reader = LineReader(_reader_properties(options))
    connection = connect(producer_settings(options))
    failures: list[str] = []
    with connection.producer() as producer:
        try:
            records = _records(reader, _lines(sys.stdin.isatty()))
            # The first record has to wait for the topic, and for nothing else.
            if (first := next(records, None)) is not None:
                with told_if_missing(connection, topic):
                    _send(producer, topic, (first,), failures, wait=options.has("sync"))
            _send(producer, topic, records, failures, wait=options.has("sync"))
        except LineError as error:
            # What came before is sent all the same, as Kafka's producer does when it closes.
            producer.flush()
            raise Failed(str(error)) from None
        producer.flush()
    if failures:
        more = len(failures) - _FAILURES_SHOWN_MAX
        for each in failures[:_FAILURES_SHOWN_MAX]:
            print(each, file=sys.stderr)
        if more > 0:
            print(f"and {more} more records were not written", file=sys.stderr)
        return 1
    return 0


def _lines(prompt: bool) -> Iterable[bytes]:
    while True:
        if prompt:
            sys.stdout.write(">")
            sys.stdout.flush()
        line = sys.stdin.buffer.readline()
        if not line:
            return
        yield line


def _records(reader: LineReader, lines: Iterable[bytes]) -> Iterator[Line]:
    for number, line in enumerate(lines, start=1):
        yield reader.read(line, number)


def _send(producer: Producer, topic: str, records: Iterable[Line], failures: list[str], *, wait: bool) -> None:
    from penstock.base.errors import KafkaError

    def delivered(_: object, error: BaseException | None) -> None:
        if error is not None:
            failures.append(f"Error when sending a record to topic {topic}: {error}")

    for record in records:
        if not wait:
            producer.send(topic, record.value, record.key, headers=record.headers or None, on_delivery=delivered)
            continue
        try:
            producer.send(topic, record.value, record.key, headers=record.headers or None).result()
        except KafkaError as error:
            delivered(None, error)


def _reader_properties(options: Parsed) -> dict[str, str]:
    found: dict[str, str] = {}
    if options.has("reader-config"):
        found |= read_properties(options.text("reader-config"))
    for name in ("property", "reader-property"):
        found |= key_values(options.values(name), name)
    for each in unknown_keys(found, READER_KEYS, "reader"):
        warn(each)
    return found


_BY_OPTION = {
    "request-required-acks": "acks",
    "message-send-max-retries": "retries",
    "retry-backoff-ms": "retry.backoff.ms",
    "request-timeout-ms": "request.timeout.ms",
    "timeout": "linger.ms",
    "max-block-ms": "max.block.ms",
    "max-memory-bytes": "buffer.memory",
    "metadata-expiry-ms": "metadata.max.age.ms",
    "socket-buffer-size": "send.buffer.bytes",
    "batch-size": "batch.size",
    "max-partition-memory-bytes": "batch.size",
}


def producer_settings(options: Parsed) -> dict[str, object]:
    """The producer's settings: an option that is given wins over the files and properties, these over its default."""
    properties: dict[str, str] = {}
    for name in ("producer-property", "command-property"):
        properties |= key_values(options.values(name), name)
    found = settings(options, files=("producer.config", "command-config"), overrides=properties)
    if options.has("compression-codec"):
        found["compression.type"] = options.get("compression-codec") or "gzip"
    for option, key in _BY_OPTION.items():
        value = options.get(option)
        if value is not None and (options.has(option) or key not in found):
            found[key] = value
    found.setdefault("client.id", "console-producer")
    return found


TOOL = Tool(
    name="kafka-console-producer",
    about="This tool helps to read data from standard input and publish it to Kafka.",
    run=_run,
    options=(
        BOOTSTRAP,
        Option("broker-list", "Of older command lines: as --bootstrap-server.", metavar="server"),
        COMMAND_CONFIG,
        Option("producer.config", "Older name of --command-config.", metavar="file"),
        Option("command-property", "A setting of the producer; repeatable.", metavar="key=value", repeatable=True),
        Option("producer-property", "Older name of --command-property.", metavar="key=value", repeatable=True),
        Option("topic", "The topic to write to.", metavar="topic"),
        flag("sync", "Wait for every record before the next is sent."),
        Option(
            "compression-codec", "none, gzip, snappy, lz4 or zstd; gzip without a value.",
            metavar="codec", takes=Takes.MAYBE,
        ),
        Option("batch-size", "How many bytes of a partition are sent together.", metavar="bytes", default="16384"),
        Option("max-partition-memory-bytes", "Older name of --batch-size.", metavar="bytes"),
        Option("message-send-max-retries", "How often a record is sent again.", metavar="number", default="3"),
        Option("retry-backoff-ms", "How long to wait before that.", metavar="ms", default="100"),
        Option("timeout", "How long records wait for others to go with (linger.ms).", metavar="ms", default="1000"),
        Option("request-required-acks", "Who must have a record: all (-1), 1 or 0.", metavar="acks", default="-1"),
        Option("request-timeout-ms", "How long a request may take.", metavar="ms", default="1500"),
        Option("metadata-expiry-ms", "The age at which metadata are fetched again.", metavar="ms", default="300000"),
        Option("max-block-ms", "How long a send may wait for memory or metadata.", metavar="ms", default="60000"),
        Option("max-memory-bytes", "Memory for records that wait.", metavar="bytes", default="33554432"),
        Option("socket-buffer-size", "The size of the socket's buffer.", metavar="bytes", default="102400"),
        Option(
            "line-reader", "The class that reads lines; there is only the default here.", metavar="class",
            default="org.apache.kafka.tools.LineMessageReader",
        ),
        Option(
            "reader-property",
            "How lines are read: parse.key, parse.headers, key.separator, headers.delimiter, headers.separator, "
            "headers.key.separator, ignore.error, null.marker; repeatable.",
            metavar="key=value", repeatable=True,
        ),
        Option("property", "Older name of --reader-property.", metavar="key=value", repeatable=True),
        Option("reader-config", "Properties file with reader properties.", metavar="file"),
    ),
)  # fmt: skip


def main() -> NoReturn:
    run_tool(TOOL)


if __name__ == "__main__":
    main()
