"""What people write on the command line of `penstock`."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click
import pytest

from penstock.cli import parsing
from penstock.cli.connection_options import connection_from
from penstock.cli.output import show_time
from penstock.cli.record_format import compile_format
from penstock.cli.record_json import BadRecord, parse_record, record_document
from penstock.records.record import ConsumerRecord

NOW = datetime(2026, 11, 16, 22, 0, tzinfo=UTC)
NOW_MS = 1794866400000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1790000000000", 1790000000000),
        ("@1790000000.5", 1790000000500),
        ("now", NOW_MS),
        ("-15m", NOW_MS - 900_000),
        ("-1.5h", NOW_MS - 5_400_000),
        ("-500ms", NOW_MS - 500),
        ("2026-11-16T22:00:00Z", NOW_MS),
        ("2026-11-16T22:00:00", NOW_MS),
        ("2026-11-16T23:00:00+01:00", NOW_MS),
        ("2026-11-16", NOW_MS - 22 * 3_600_000),
    ],
)
def test_times(text: str, expected: int) -> None:
    assert parsing.timestamp_ms(text, NOW) == expected


@pytest.mark.parametrize("text", ["", "yesterday", "-15", "@", "@x", "2026-13-01", "-1y", "@1e400"])
def test_no_times(text: str) -> None:
    with pytest.raises(click.UsageError, match=r"is no (time|duration)"):
        parsing.timestamp_ms(text, NOW)


def test_numbers_and_partitions() -> None:
    assert parsing.numbers("0,3-5, 3", "partitions") == [0, 3, 4, 5]
    assert tuple(parsing.partition("a.b-c:12")) == ("a.b-c", 12)
    for text in ("", "a", "1-", "-1", "1,,2", "0-99999999"):
        with pytest.raises(click.UsageError):
            parsing.numbers(text, "partitions")
    for text in ("", "topic", "topic:", ":1", "topic:x", "topic:-1"):
        with pytest.raises(click.UsageError, match="TOPIC:NUMBER"):
            parsing.partition(text)


def test_pairs() -> None:
    assert parsing.pairs(["a=1", "b = x=y ", "c="], "-c") == {"a": "1", "b": "x=y", "c": ""}
    with pytest.raises(click.UsageError, match="KEY=VALUE"):
        parsing.pairs(["lonely"], "-c")


def record(key: bytes | None, value: bytes | None) -> ConsumerRecord:
    return ConsumerRecord("t", 1, 2, 3, 0, key, value, (("h", b"\xff"), ("n", None)))


def test_a_record_as_json_and_back() -> None:
    import json

    for key, value in ((b"k", b"v"), (None, b"\xff\x00"), (b"", None)):
        back = parse_record(json.dumps(record_document(record(key, value))))
        assert (back.key, back.value, back.partition, back.timestamp_ms) == (key, value, 1, 3)
        assert back.headers == (("h", b"\xff"), ("n", None))


@pytest.mark.parametrize(
    "line",
    [
        "", "1", "{", "{}", '{"key": "k"}', '{"value": "v", "partition": -1}', '{"value": "v", "timestamp": "x"}',
        '{"value_base64": "*"}', '{"value_base64": 5}', '{"value": 1, "headers": 3}', '{"value": 1, "headers": [{}]}',
        '{"value": 1, "partition": true}',
    ],
)  # fmt: skip
def test_lines_that_are_no_records(line: str) -> None:
    with pytest.raises(BadRecord):
        parse_record(line)


def test_formats() -> None:
    assert compile_format(r"%t-%p@%o\t%k=%s\n")(record(b"k", b"\xff")) == b"t-1@2\tk=\xff\n"
    assert compile_format(r"%K %S %T \x41\\ \q%")(record(None, b"abc")) == b"-1 3 3 A\\ \\q%"
    with pytest.raises(click.UsageError, match="%z"):
        compile_format("%z")


def test_times_for_people() -> None:
    assert show_time(-1) == "-"
    assert show_time(10**18) == str(10**18)


def test_profiles_are_flattened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    file = tmp_path / "penstock" / "profiles.toml"
    file.parent.mkdir()
    file.write_text('[p]\nbootstrap.servers = ["a:1", "b:2"]\n"linger.ms" = 5\nenable.idempotence = true\n')
    found = connection_from({"profile": "p"}, {}).settings
    assert found == {"bootstrap.servers": "a:1,b:2", "linger.ms": "5", "enable.idempotence": "true"}
    assert connection_from({"profile": "p", "bootstrap_server": "c"}, {}).servers == "c"
    assert connection_from({}, {}).servers == "localhost:9092"
