"""kafka-producer-perf-test: how fast records can be written, and how long each takes."""

from __future__ import annotations

import random
import sys
import time
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from penstock.cli.failures import Failed
from penstock.cli.kafka.connecting import connect, settings
from penstock.cli.kafka.missing_topics import told_if_missing
from penstock.cli.kafka.parsing import Option, Parsed, Takes, UsageError, flag, key_values
from penstock.cli.kafka.perf_numbers import Latencies, metric_lines
from penstock.cli.kafka.tool import BOOTSTRAP, COMMAND_CONFIG, Tool, run_tool

if TYPE_CHECKING:
    from penstock.client.producer.blocking import Producer

_PAYLOADS = ("record-size", "payload-file", "payload-monotonic")
_DEFAULT_TRANSACTION_MS = 3000


def _run(options: Parsed) -> int:
    for name in ("topic", "num-records", "throughput"):
        if not options.has(name):
            raise UsageError(f"argument --{name} is required")
    options.one_of(_PAYLOADS, "Exactly one of --record-size, --payload-file and --payload-monotonic is required")
    count, throughput = _number(options, "num-records"), _number(options, "throughput")
    warm_up = _number(options, "warmup-records")
    if warm_up >= count:
        raise UsageError("The value for --warmup-records must be strictly fewer than the number of records in the test")
    interval_s = _number(options, "reporting-interval") / 1000
    if interval_s <= 0:
        raise UsageError("--reporting-interval should be greater than zero")
    payload = _payloads(options)
    config = _producer_settings(options)
    duration_s = _transaction_seconds(options, config)
    if duration_s:
        config.setdefault("transactional.id", options.get("transactional-id") or f"performance-producer-{uuid.uuid4()}")
    if warm_up:
        print(f"Warmup first {warm_up} records. Steady state results will print after the complete test summary.")
    connection, topic = connect(config), options.text("topic")
    with connection.producer() as producer:
        run = _Test(producer, topic, payload, warm_up=warm_up, interval_s=interval_s)
        run.send(count, throughput, duration_s, lambda: told_if_missing(connection, topic))
        run.summary()
        if options.has("print-metrics"):
            print("\n".join(metric_lines(producer.metrics(), "producer", str(config["client.id"]))))
    for each in sorted(run.failures):
        print(f"{run.failures[each]} records were not written: {each}", file=sys.stderr)
    return 1 if run.failures else 0


def _number(options: Parsed, name: str) -> int:
    found = options.number(name)
    assert found is not None
    return found


class _Test:
    """The records on their way and what became of them."""

    def __init__(
        self, producer: Producer, topic: str, payload: Callable[[int], bytes], *, warm_up: int, interval_s: float
    ) -> None:
        self._producer, self._topic, self._payload = producer, topic, payload
        self._warm_up = warm_up
        self.failures: dict[str, int] = {}
        self._all = Latencies(time.monotonic())
        self._steady: Latencies | None = None
        self._window = Latencies(time.monotonic())
        self._interval_s = interval_s

    def send(
        self, count: int, throughput: int, transaction_s: float, watch: Callable[[], AbstractContextManager[None]]
    ) -> None:
        """`watch` is put around the first record, which has to wait for the topic."""
        producer, begun = self._producer, 0.0
        if transaction_s:
            producer.init_transactions()
        is_open = False
        started = time.monotonic()
        for number in range(count):
            if transaction_s and not is_open:
                producer.begin_transaction()
                is_open, begun = True, time.monotonic()
            if number == self._warm_up and self._warm_up:
                self._steady = Latencies(time.monotonic())
            value = self._payload(number)
            delivered = self._delivered(len(value), is_steady=number >= self._warm_up)
            with watch() if number == 0 else nullcontext():
                producer.send(self._topic, value, on_delivery=delivered)
            now = time.monotonic()
            if is_open and now - begun >= transaction_s:
                producer.commit_transaction()
                is_open = False
            if now - self._window.started >= self._interval_s:
                self._report(now)
            if throughput > 0 and (ahead := (number + 1) / throughput - (now - started)) > 0:
                time.sleep(ahead)
        if is_open:
            producer.commit_transaction()
        producer.flush()

    def _delivered(self, size: int, *, is_steady: bool) -> Callable[[object, BaseException | None], None]:
        started = time.monotonic()

        def done(_: object, error: BaseException | None) -> None:
            if error is not None:
                self.failures[str(error)] = self.failures.get(str(error), 0) + 1
                return
            latency_ms = int((time.monotonic() - started) * 1000)
            self._all.add(latency_ms, size)
            self._window.add(latency_ms, size)
            if is_steady and self._steady is not None:
                self._steady.add(latency_ms, size)

        return done

    def _report(self, now: float) -> None:
        window, self._window = self._window, Latencies(now)
        print(window.interval_line(now), flush=True)

    def summary(self) -> None:
        now = time.monotonic()
        print(self._all.summary_line(now, "records"))
        if self._steady is not None:
            print(self._steady.summary_line(now, "steady state records"))


def _payloads(options: Parsed) -> Callable[[int], bytes]:
    """What the record of a number holds."""
    if options.has("payload-monotonic"):
        return lambda number: str(number).encode()
    if options.has("payload-file"):
        path = Path(options.text("payload-file"))
        delimiter = options.text("payload-delimiter").encode().decode("unicode_escape").encode()
        found = [each for each in path.read_bytes().split(delimiter) if each]
        if not found:
            raise Failed(f"File does not exist or empty file provided: {path}")
        print(f"Reading payloads from: {path.resolve()}\nNumber of records read: {len(found)}")
        chosen = random.Random(0)
        return lambda number: chosen.choice(found)
    size = _number(options, "record-size")
    if size <= 0:
        raise UsageError("--record-size should be greater than zero")
    letters = random.Random(0)
    # Kafka fills one array anew with random letters for each record; a few such arrays in turn cost less time here.
    samples = [bytes(letters.choices(range(65, 91), k=size)) for _ in range(64)]
    return lambda number: samples[number & 63]


def _producer_settings(options: Parsed) -> dict[str, object]:
    properties: dict[str, str] = {}
    for name in ("producer-props", "command-property"):
        properties |= key_values(options.values(name), name)
    found = settings(options, files=("producer.config", "command-config"), overrides=properties)
    if options.has("transactional-id"):
        found["transactional.id"] = options.text("transactional-id")
    found.setdefault("client.id", "perf-producer-client")
    return found


def _transaction_seconds(options: Parsed, config: dict[str, object]) -> float:
    """How long a transaction lasts; 0 without transactions."""
    duration_ms = options.number("transaction-duration-ms")
    if duration_ms is not None and duration_ms <= 0:
        raise UsageError("--transaction-duration-ms should be greater than zero")
    if duration_ms is None and "transactional.id" not in config:
        return 0.0
    return (duration_ms or _DEFAULT_TRANSACTION_MS) / 1000


TOOL = Tool(
    name="kafka-producer-perf-test",
    about="This tool is used to verify the producer performance.",
    run=_run,
    options=(
        BOOTSTRAP,
        COMMAND_CONFIG,
        Option("producer.config", "Older name of --command-config.", metavar="file"),
        Option("command-property", "Settings of the producer.", metavar="key=value", takes=Takes.SEVERAL,
               repeatable=True),
        Option("producer-props", "Older name of --command-property.", metavar="key=value", takes=Takes.SEVERAL,
               repeatable=True),
        Option("topic", "The topic to write to.", metavar="topic"),
        Option("num-records", "How many records to write.", metavar="number"),
        Option("throughput", "About how many records a second; -1 for as many as possible.", metavar="number"),
        Option("record-size", "The size of a record.", metavar="bytes"),
        Option("payload-file", "The file with the records to write, in any order.", metavar="file"),
        Option("payload-delimiter", "What is between the records of the file.", metavar="text", default="\\n"),
        flag("payload-monotonic", "The records are numbers from 0 on."),
        Option("transactional-id", "Write in transactions of this id.", metavar="id"),
        Option("transaction-duration-ms", "How long a transaction lasts.", metavar="ms"),
        Option("warmup-records", "So many records at the beginning are not part of the second summary.",
               metavar="number", default="0"),
        Option("reporting-interval", "How often to tell how it goes.", metavar="ms", default="5000"),
        flag("print-metrics", "Print the producer's metrics at the end."),
    ),
)  # fmt: skip


def main() -> NoReturn:
    run_tool(TOOL)


if __name__ == "__main__":
    main()
