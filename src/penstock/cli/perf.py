"""`penstock perf`: how fast records are written and read, as our clients see it."""

from __future__ import annotations

import random
import time
from typing import Any

import click

from penstock.cli.completion import complete_topics
from penstock.cli.connection import Connection
from penstock.cli.connection_options import connection_options
from penstock.cli.failures import fail
from penstock.cli.nouns import HELP, Noun
from penstock.cli.output import Output, Row, output_option
from penstock.cli.progress import Progress

_TOPIC = click.argument("topic", shell_complete=complete_topics)
_COUNT = click.option(
    "-n", "--records", "count", type=click.IntRange(min=1), default=100_000, show_default=True, help="How many."
)
_PACING_S = 0.01


@click.group("perf", cls=Noun, context_settings=HELP)
def command() -> None:
    """Measure how fast records are written and read."""


@command.command()
@_TOPIC
@_COUNT
@click.option("-s", "--size", type=click.IntRange(min=1), default=1000, show_default=True, help="Bytes of a value.")
@click.option("--rate", type=click.IntRange(min=1), help="Records in a second; by default as many as possible.")
@click.option("-z", "--compression", type=click.Choice(["none", "gzip", "snappy", "lz4", "zstd"]))
@click.option("--acks", type=click.Choice(["all", "1", "0"]))
@output_option
@connection_options
def produce(
    connection: Connection,
    output: Output,
    *,
    topic: str,
    count: int,
    size: int,
    rate: int | None,
    compression: str | None,
    acks: str | None,
) -> None:
    """Write records of random letters, and show the rate and the latency."""
    letters = random.Random(1).choices(b"abcdefghijklmnopqrstuvwxyz", k=size)
    value = bytes(letters)
    latencies: list[float] = []
    failures: list[Any] = []
    with connection.producer(compression_type=compression, acks=acks) as producer:
        producer.partitions_for(topic)
        started = time.perf_counter()
        with Progress(f"Writing to {topic}", total=count) as progress:
            for number in range(count):
                if rate is not None:
                    _pace(started + number / rate)
                producer.send(topic, value, on_delivery=_timed(latencies, failures))
                progress.advance()
                if failures:
                    break
            producer.flush()
        seconds = time.perf_counter() - started
    if failures:
        fail(f"{failures[0].message.rstrip('.')} ({len(latencies)} of {count} records were written)")
    output.pairs({**_rates(count, count * size, seconds), **_percentiles(latencies)})


def _timed(latencies: list[float], failures: list[Any]) -> Any:
    sent = time.perf_counter()

    def delivered(_: Any, error: Any) -> None:
        if error is not None:
            failures.append(error)
        else:
            latencies.append((time.perf_counter() - sent) * 1000)

    return delivered


def _pace(due: float) -> None:
    ahead = due - time.perf_counter()
    if ahead > _PACING_S:
        time.sleep(ahead)


def _percentiles(latencies: list[float]) -> Row:
    ordered = sorted(latencies)
    if not ordered:
        return {}
    found = {f"latency_ms_p{each}": _share(ordered, each / 100) for each in (50, 95, 99)}
    return {**found, "latency_ms_max": round(ordered[-1], 2)}


def _share(ordered: list[float], share: float) -> float:
    return round(ordered[min(int(len(ordered) * share), len(ordered) - 1)], 2)


def _rates(count: int, size: int, seconds: float) -> Row:
    return {
        "records": count,
        "bytes": size,
        "seconds": round(seconds, 3),
        "records_per_s": round(count / max(seconds, 1e-9)),
        "mb_per_s": round(size / max(seconds, 1e-9) / 1e6, 2),
    }


@command.command()
@_TOPIC
@_COUNT
@click.option("--idle-timeout", type=click.FloatRange(min=0.1), default=5.0, show_default=True, metavar="SECONDS")
@output_option
@connection_options
def consume(connection: Connection, output: Output, *, topic: str, count: int, idle_timeout: float) -> None:
    """Read a topic from its beginning, and show the rate; the time to connect is told apart."""
    from penstock import TopicPartition

    with connection.admin() as admin:
        found = admin.describe_topics([topic])[topic]
    partitions = [TopicPartition(topic, each.partition) for each in found.partitions]
    begun = time.perf_counter()
    with connection.consumer(auto_offset_reset="earliest", enable_auto_commit="false") as consumer:
        begins = consumer.beginning_offsets(partitions)
        # Records come from here on, also while nobody polls: the clock has to run before the first poll.
        started = last = time.perf_counter()
        consumer.assign(partitions)
        for tp, offset in begins.items():
            consumer.seek(tp, offset)
        done, size = 0, 0
        with Progress(f"Reading {topic}", total=count) as progress:
            while done < count and time.perf_counter() - last < idle_timeout:
                records = consumer.poll(100, max_records=min(count - done, 10_000))
                if not records:
                    continue
                last = time.perf_counter()
                done += len(records)
                size += sum(len(each.value or b"") + len(each.key or b"") for each in records)
                progress.advance(len(records))
    if not done:
        fail(f"topic {topic} gave no records within {idle_timeout:g} s: write some, such as by `penstock perf produce`")
    output.pairs({**_rates(done, size, last - started), "connecting_seconds": round(started - begun, 3)})
