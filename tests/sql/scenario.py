"""Scenarios: statements, inputs and expected results as text, run on a real broker and a real Spark.

A file begins with a sentence that says what it shows, then sections:

    === run                          statements, all of which must succeed
    === send TOPIC                   records, one per line: KEY [@TIME] [#HEADER=VALUE ...] | VALUE
    === topic TOPIC                  all records the topic holds in the end; the order of each key counts
    === table TOPIC                  the last value of every key; deleted keys do not appear
    === ask STATEMENT                rows of a pull query, each a JSON array; order does not matter
    === push STATEMENT               the first rows of a push query that ends by LIMIT, sent nothing meanwhile
    === print TOPIC ...              what PRINT shows, its last words; it must end by LIMIT
    === refuse STATEMENT             a part of the error message
    === log                          parts of messages of the processing log, one per line

KEY is JSON (`null`, `1`, `"a"`), in expectations followed by the window `[start, end]` where there is one. VALUE is the
rest of the line as it is; `null` alone is a record without a value. Expected values are compared as JSON when they are.
TIME is milliseconds; in expectations it is compared only where given. Expectations are waited for in their order.
"""

from __future__ import annotations

import json
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

import penstock
from penstock.base.types import TopicPartition
from penstock.sql.catalog.catalog import Source
from penstock.sql.errors import SqlError
from penstock.sql.formats.decoding import RowDecoder
from penstock.sql.formats.encoding import RowEncoder
from penstock.sql.formats.rows import python_rows
from penstock.sql.plan.nodes import Sink
from penstock.sql.processing_log import topic_name
from penstock.sql.schema import WINDOW_COLUMNS
from penstock.sql.server.parts import Parts

WAIT_S = 180.0
_PAUSE_S = 0.1
_WITHOUT_KEY = ("null", None)
_SECTION = re.compile(r"^=== (\w+)\s*(.*)$")
_RECORD = re.compile(r"^(?P<key>.+?)(?:\s+@(?P<time>-?\d+))?(?P<headers>(?:\s+#\S+=\S*)*)\s+\|\s?(?P<value>.*)$")
_WINDOW = re.compile(r"^(?P<key>.+?)\s+\[(?P<start>-?\d+),\s*(?P<end>-?\d+)\]$")


@dataclass(frozen=True, slots=True)
class Section:
    kind: str
    argument: str
    lines: tuple[str, ...]
    number: int

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


@dataclass(frozen=True, slots=True)
class Record:
    key: Any
    window: tuple[int, int] | None
    time_ms: int | None
    value: Any
    headers: tuple[tuple[str, bytes], ...] = ()

    @property
    def identity(self) -> Hashable:
        return json.dumps(self.key, default=str), self.window


def read_sections(path: Path) -> list[Section]:
    sections: list[Section] = []
    kind, argument, started, lines = "title", "", 1, []
    for number, line in enumerate([*path.read_text().splitlines(), "=== end"], 1):
        found = _SECTION.match(line)
        if found is None:
            lines.append(line)
            continue
        kept = tuple(each for each in lines if each.strip() and not each.startswith("#"))
        sections.append(Section(kind, argument, kept, started))
        kind, argument, started, lines = found.group(1), found.group(2), number, []
    return sections[1:]


class ScenarioRunner:
    """Runs one scenario against a SQL server."""

    def __init__(self, parts: Parts, properties: dict[str, Any] | None = None) -> None:
        self._service = parts
        self._bootstrap_servers = parts.kafka.bootstrap_servers
        self._properties = properties or {"auto.offset.reset": "earliest"}
        self._steps: dict[str, Callable[[Section], None]] = {
            "run": self._run,
            "send": self._send,
            "topic": self._topic,
            "table": self._table,
            "ask": self._ask,
            "push": self._push,
            "print": self._print,
            "refuse": self._refuse,
            "log": self._log,
        }

    def __call__(self, path: Path) -> None:
        sections = read_sections(path)
        for section in sections:
            try:
                self._steps[section.kind](section)
            except Exception as error:
                error.add_note(f"in {path.name}, line {section.number}: === {section.kind} {section.argument}")
                raise
        self._check_nothing_came_later(path, sections)

    def _check_nothing_came_later(self, path: Path, sections: list[Section]) -> None:
        last_input = max((index for index, each in enumerate(sections) if each.kind == "send"), default=0)
        for section in sections[last_input:]:
            if section.kind == "topic":
                self._compare(section, self._records(section.argument), whole=True)

    def _run(self, section: Section) -> None:
        self._service.engine.execute(section.text, self._properties, {})

    def _send(self, section: Section) -> None:
        source = self._source(section.argument)
        with penstock.Producer(bootstrap_servers=self._bootstrap_servers) as producer:
            for line in section.lines:
                record = _parse(line)
                value = None if record.value == "null" else record.value.encode()
                producer.send(
                    section.argument,
                    value,
                    _key_bytes(source, record.key),
                    timestamp_ms=record.time_ms,
                    headers=record.headers,
                )

    def _topic(self, section: Section) -> None:
        _until(lambda: self._compare(section, self._records(section.argument), whole=True))

    def _table(self, section: Section) -> None:
        _until(lambda: self._compare(section, _last(self._records(section.argument)), whole=True))

    def _compare(self, section: Section, found: list[Record], *, whole: bool) -> None:
        expected = [_parse(line, windowed=True) for line in section.lines]
        times = {(each.identity, index): each.time_ms for index, each in enumerate(expected)}
        assert _by_key(found, times) == _by_key(expected, times), f"found: {found}"

    def _ask(self, section: Section) -> None:
        expected = Counter(_canonical(json.loads(line)) for line in section.lines)
        _until(lambda: _same(self._rows(section.argument), expected))

    def _push(self, section: Section) -> None:
        assert self._rows(section.argument) == Counter(_canonical(json.loads(line)) for line in section.lines)

    def _print(self, section: Section) -> None:
        shown = [str(line) for (line,) in self._answer(f"PRINT {section.argument};")]
        assert len(shown) == len(section.lines), shown
        assert all(map(str.endswith, shown, section.lines)), shown

    def _rows(self, statement: str) -> Counter[str]:
        return Counter(map(_canonical, self._answer(statement)))

    def _answer(self, statement: str) -> list[list[Any]]:
        (parsed,) = self._service.engine.parse(statement, {})
        query = self._service.queries.open(parsed, self._properties)
        rows: list[list[Any]] = []
        try:
            deadline = time.monotonic() + WAIT_S
            while (taken := query.take(1_000, 1.0)) is not None:
                rows += [row.columns for row in taken]
                assert time.monotonic() < deadline, f"the query does not end; so far: {rows}"
        finally:
            query.close()
        return rows

    def _refuse(self, section: Section) -> None:
        with pytest.raises(SqlError) as refused:
            self._service.engine.execute(section.argument, self._properties, {})
        for line in section.lines:
            assert line in str(refused.value), str(refused.value)

    def _log(self, section: Section) -> None:
        topic = topic_name(self._service.kafka.service_id)

        def told() -> None:
            texts = [record.value.decode() for record in _read_all(self._bootstrap_servers, topic)]
            for line in section.lines:
                assert any(line in text for text in texts), texts

        _until(told)

    def _records(self, topic: str) -> list[Record]:
        source = self._source(topic)
        return [_found(source, record) for record in _read_all(self._bootstrap_servers, topic)]

    def _source(self, topic: str) -> Source:
        sources = [each for each in self._service.engine.catalog.sources.values() if each.topic == topic]
        assert sources, f"no stream or table is over the topic {topic}"
        return sources[0]


def _until(check: Callable[[], None]) -> None:
    deadline = time.monotonic() + WAIT_S
    while True:
        try:
            check()
        except AssertionError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE_S)
        else:
            return


def _same(found: Counter[str], expected: Counter[str]) -> None:
    assert found == expected


def _parse(line: str, *, windowed: bool = False) -> Record:
    found = _RECORD.match(line)
    assert found is not None, f"not KEY [@TIME] | VALUE: {line}"
    key, window = found["key"], None
    if windowed and (within := _WINDOW.match(key)):
        key, window = within["key"], (int(within["start"]), int(within["end"]))
    time_ms = int(found["time"]) if found["time"] is not None else None
    value = _value(found["value"]) if windowed else found["value"]
    headers = tuple(_header(text) for text in found["headers"].split())
    return Record(json.loads(key), window, time_ms, value, headers)


def _header(text: str) -> tuple[str, bytes]:
    name, _, value = text[1:].partition("=")
    return name, value.encode()


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _found(source: Source, record: Any) -> Record:
    key, window = _key_of(source, record)
    value = None if record.value is None else _value(record.value.decode("utf-8", "replace"))
    return Record(key, window, record.timestamp, value)


def _key_of(source: Source, record: Any) -> tuple[Any, tuple[int, int] | None]:
    """The key as the source's format reads it: a scalar for one column, a list for several."""
    if record.key is None:
        return None, None
    import pyarrow as pa

    raw = pa.record_batch(
        {
            "topic": pa.array([record.topic]),
            "partition": pa.array([record.partition], pa.int32()),
            "offset": pa.array([record.offset], pa.int64()),
            "timestamp": pa.array([record.timestamp], pa.int64()),
            "key": pa.array([record.key], pa.binary()),
            "value": pa.array([None], pa.binary()),
        }
    )
    batch = RowDecoder(msgspec.structs.replace(source.node(), keeps_empty=True)).decode(raw).batch
    (key,) = python_rows(batch, {column.name: column.type for column in source.schema.key})
    window = python_rows(batch, WINDOW_COLUMNS)[0] if source.windowed else None
    return (key[0] if len(key) == 1 else list(key)), window


def _key_bytes(source: Source, key: Any) -> bytes | None:
    if key is None:
        return None
    sink = Sink(
        name=source.name,
        kind=source.kind,
        topic=source.topic,
        schema=source.schema,
        key_format=source.key_format,
        value_format=source.value_format,
    )
    names = [column.name for column in source.schema.key]
    values = key if len(names) > 1 else [key]
    encoded, _ = RowEncoder(sink).encode_row(dict(zip(names, values, strict=True)), None)
    return encoded


def _last(records: list[Record]) -> list[Record]:
    last = {record.identity: record for record in records}
    return [record for record in last.values() if record.value is not None]


def _by_key(records: list[Record], times: dict[tuple[Hashable, int], int | None]) -> dict[Hashable, list[str]]:
    """The values of each key in order. A record's time is among them where the expectation gives it."""
    timed = {identity for (identity, _), time_ms in times.items() if time_ms is not None}
    values: dict[Hashable, list[str]] = defaultdict(list)
    for record in records:
        time_ms = record.time_ms if record.identity in timed else None
        values[record.identity].append(json.dumps([time_ms, record.value], sort_keys=True, default=str))
    values[_WITHOUT_KEY].sort()  # such records are spread over partitions, in no order
    return dict(values)


def _canonical(row: Any) -> str:
    return json.dumps(row, sort_keys=True, default=str)


def _read_all(bootstrap_servers: str, topic: str) -> list[Any]:
    return sorted(_committed(bootstrap_servers, topic), key=lambda record: (record.partition, record.offset))


def _committed(bootstrap_servers: str, topic: str) -> Iterator[Any]:
    with penstock.Consumer(
        bootstrap_servers=bootstrap_servers,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
        enable_auto_commit=False,
    ) as consumer:
        partitions = [TopicPartition(topic, info.partition) for info in consumer.partitions_for(topic)]
        consumer.assign(partitions)
        ends = consumer.end_offsets(partitions)
        while any(consumer.position(partition) < end for partition, end in ends.items()):
            yield from consumer.poll(200)
