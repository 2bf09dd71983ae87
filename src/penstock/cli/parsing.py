"""What people write on a command line: partitions, key=value pairs, times, durations."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

import click

from penstock.base.types import TopicPartition

_UNITS: Final = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def partition(text: str) -> TopicPartition:
    """`topic:0`; the topic's name may have no colon, so the last one counts."""
    topic, separator, number = text.rpartition(":")
    if not separator or not topic or not number.isascii() or not number.isdecimal():
        raise click.UsageError(f"{text!r} is no partition: write TOPIC:NUMBER, such as orders:0")
    return TopicPartition(topic, int(number))


def numbers(text: str, what: str) -> list[int]:
    """`0,3-5`: numbers and ranges."""
    found: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", part.strip(), re.ASCII)
        if match is None:
            raise click.UsageError(f"{text!r} does not name {what}: write numbers and ranges, such as 0,3-5")
        first, last = int(match[1]), int(match[2] or match[1])
        if last - first > 1_000_000:
            raise click.UsageError(f"{part!r} is too large a range of {what}")
        found += range(first, last + 1)
    return list(dict.fromkeys(found))


def pairs(values: Iterable[str], option: str) -> dict[str, str]:
    """`key=value`, several times."""
    found: dict[str, str] = {}
    for value in values:
        key, separator, text = value.partition("=")
        if not separator or not key.strip():
            raise click.UsageError(f"{option} {value}: not of the form KEY=VALUE")
        found[key.strip()] = text.strip()
    return found


def duration_s(text: str) -> float:
    """`90s`, `15m`, `2h`, `1.5d`, `500ms`."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|w)", text.strip(), re.ASCII)
    if match is None:
        raise click.UsageError(f"{text!r} is no duration: write a number and ms, s, m, h, d or w, such as 15m")
    return float(match[1]) * _UNITS[match[2]]


def timestamp_ms(text: str, now: datetime) -> int:
    """A moment: milliseconds since 1970, `@seconds`, ISO 8601 (UTC where no zone is given), `now`, or `-15m` (ago)."""
    wanted = text.strip()
    if wanted.isascii() and wanted.isdecimal():
        return int(wanted)
    if wanted == "now":
        return int(now.timestamp() * 1000)
    if wanted.startswith("@"):
        try:
            return int(float(wanted[1:]) * 1000)
        except (ValueError, OverflowError):
            raise click.UsageError(f"{text!r} is no time: seconds follow the @") from None
    if wanted.startswith("-"):
        return int((now - timedelta(seconds=duration_s(wanted[1:]))).timestamp() * 1000)
    try:
        when = datetime.fromisoformat(wanted)
    except ValueError:
        raise click.UsageError(
            f"{text!r} is no time: write 2026-11-16T22:00:00Z, milliseconds, @seconds, now, or -15m for 15 minutes ago"
        ) from None
    return int((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() * 1000)


def now() -> datetime:
    return datetime.now(tz=UTC)
