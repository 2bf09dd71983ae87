"""kafka-consumer-perf-test: how fast records can be read."""

from __future__ import annotations

import random
import re
import time
from datetime import datetime
from typing import NoReturn

from penstock.cli.kafka.connecting import connect, settings
from penstock.cli.kafka.missing_topics import partitions_of
from penstock.cli.kafka.parsing import Option, Parsed, Takes, UsageError, flag, key_values
from penstock.cli.kafka.perf_numbers import metric_lines
from penstock.cli.kafka.tool import BOOTSTRAP, COMMAND_CONFIG, Tool, run_tool

_MEGABYTE = 1024 * 1024
_COLUMNS = (
    "data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, fetch.time.ms, fetch.MB.sec, "
    "fetch.nMsg.sec"
)
_JAVA_DATES = (
    ("yyyy", "%Y"), ("yy", "%y"), ("MM", "%m"), ("dd", "%d"), ("HH", "%H"), ("hh", "%I"), ("mm", "%M"), ("ss", "%S"),
)  # fmt: skip


def _run(options: Parsed) -> None:
    options.exclude("num-records", "messages")
    wanted = options.number("num-records")
    if options.has("messages"):
        print("Warning: --messages is deprecated. Use --num-records instead.")
        wanted = options.number("messages")
    if wanted is None:
        raise UsageError('Missing required argument "[num-records]"')
    options.one_of(("topic", "include"), "Exactly one of the following arguments is required: [topic], [include]")
    detailed = options.has("show-detailed-stats")
    if not options.has("hide-header"):
        print(f"{'time, threadId' if detailed else 'start.time, end.time'}, {_COLUMNS}")
    run = _Test(options, wanted, detailed=detailed)
    found = _consumer_settings(options)
    with connect(found).consumer() as consumer:
        pattern = options.get("include")
        topics = [options.text("topic")] if pattern is None else re.compile(pattern)
        consumer.subscribe(topics, on_assign=run.assigned)
        if pattern is None:
            partitions_of(consumer, options.text("topic"))
        while run.count < wanted:
            before = run.count
            for record in consumer.poll(min(1000.0, run.timeout_ms), min(wanted - run.count, 5000)):
                run.add(record.key, record.value)
            if not run.goes_on(run.count - before):
                print(
                    "WARNING: Exiting before consuming the expected number of records: timeout "
                    f"({run.timeout_ms} ms) exceeded. You can use the --timeout option to increase the timeout."
                )
                break
        metrics = consumer.metrics() if options.has("print-metrics") else {}
    if not detailed:
        print(run.summary())
    if options.has("print-metrics"):
        print("\n".join(metric_lines(metrics, "consumer", str(found["client.id"]))))


class _Test:
    def __init__(self, options: Parsed, wanted: int, *, detailed: bool) -> None:
        self.count = self._size = 0
        self._detailed = detailed
        self.timeout_ms = options.number("timeout") or 10_000
        self._interval_s = (options.number("reporting-interval") or 5000) / 1000
        self._format = options.text("date-format")
        self._began = datetime.now()
        self._started = self._last_record = self._reported = time.monotonic()
        self._joined: float | None = None
        self._at_report = (0, 0)

    def assigned(self, *_: object) -> None:
        if self._joined is None:
            self._joined = time.monotonic()

    def add(self, key: bytes | None, value: bytes | None) -> None:
        self.count += 1
        self._size += len(key or b"") + len(value or b"")

    def goes_on(self, read: int) -> bool:
        """Tells how it goes when it is time to; False when no record has come for too long."""
        now = time.monotonic()
        if read:
            self._last_record = now
        if self._detailed and now - self._reported >= self._interval_s:
            count, size = self.count - self._at_report[0], self._size - self._at_report[1]
            numbers = self._numbers(now - self._reported, count, size)
            print(f"{java_date(datetime.now(), self._format)}, 0, {numbers}", flush=True)
            self._reported, self._at_report = now, (self.count, self._size)
        return now - self._last_record <= self.timeout_ms / 1000

    def summary(self) -> str:
        numbers = self._numbers(time.monotonic() - self._started, self.count, self._size)
        return f"{java_date(self._began, self._format)}, {java_date(datetime.now(), self._format)}, {numbers}"

    def _numbers(self, elapsed_s: float, count: int, size: int) -> str:
        elapsed_s = max(elapsed_s, 1e-3)
        joining_s = min((self._joined or self._started) - self._started, elapsed_s)
        fetching_s = max(elapsed_s - joining_s, 1e-3)
        megabytes = size / _MEGABYTE
        return (
            f"{self._size / _MEGABYTE:.4f}, {megabytes / elapsed_s:.4f}, {self.count}, {count / elapsed_s:.4f}, "
            f"{int(joining_s * 1000)}, {int(fetching_s * 1000)}, {megabytes / fetching_s:.4f}, {count / fetching_s:.4f}"
        )


def java_date(when: datetime, pattern: str) -> str:
    """A time by the letters of java.text.SimpleDateFormat that are in use: years to milliseconds."""
    text = pattern.replace("%", "%%").replace("SSS", f"{when.microsecond // 1000:03d}")
    for letters, directive in _JAVA_DATES:
        text = text.replace(letters, directive)
    return when.strftime(text)


def _consumer_settings(options: Parsed) -> dict[str, object]:
    properties = key_values(options.values("command-property"), "command-property")
    found = settings(options, files=("consumer.config", "command-config"), overrides=properties)
    found["group.id"] = options.get("group") or found.get("group.id") or f"perf-consumer-{random.randrange(100_000)}"
    found["auto.offset.reset"] = "latest" if options.has("from-latest") else "earliest"
    found["receive.buffer.bytes"] = options.text("socket-buffer-size")
    found["max.partition.fetch.bytes"] = options.text("fetch-size")
    found["check.crcs"] = "false"
    found.setdefault("client.id", "perf-consumer-client")
    return found


TOOL = Tool(
    name="kafka-consumer-perf-test",
    about="This tool is used to verify the consumer performance.",
    run=_run,
    options=(
        BOOTSTRAP,
        Option("broker-list", "Older name of --bootstrap-server.", metavar="server"),
        COMMAND_CONFIG,
        Option("consumer.config", "Older name of --command-config.", metavar="file"),
        Option("command-property", "A setting of the consumer; repeatable.", metavar="key=value", repeatable=True),
        Option("topic", "The topic to read.", metavar="topic"),
        Option("include", "A regular expression of the topics to read.", metavar="pattern"),
        Option("num-records", "How many records to read.", metavar="number"),
        Option("messages", "Older name of --num-records.", metavar="number"),
        Option("group", "The group to read as.", metavar="group"),
        flag("from-latest", "Without an offset of the group, begin at the end."),
        Option("fetch-size", "How much of a partition is fetched at a time.", metavar="bytes", default="1048576"),
        Option("socket-buffer-size", "The size of the socket's buffer.", metavar="bytes", default="2097152"),
        Option("timeout", "End when no record has come for so long.", metavar="ms", takes=Takes.MAYBE,
               default="10000"),
        Option("reporting-interval", "How often to tell how it goes.", metavar="ms", default="5000"),
        flag("show-detailed-stats", "Tell how it goes at each interval, instead of at the end."),
        flag("hide-header", "Without the line of column names."),
        Option("date-format", "How times are written, as in java.text.SimpleDateFormat.", metavar="format",
               default="yyyy-MM-dd HH:mm:ss:SSS"),
        flag("print-metrics", "Print the consumer's metrics at the end."),
        Option("threads", "Of older command lines; there is one.", metavar="number"),
        Option("num-fetch-threads", "Of older command lines; there is one.", metavar="number"),
    ),
)  # fmt: skip


def main() -> NoReturn:
    run_tool(TOOL)


if __name__ == "__main__":
    main()
