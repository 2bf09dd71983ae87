"""PRINT: the records of a topic as text, whatever they are made of.

The format is guessed per record, as a person would: braces are JSON, text is text, eight or four bytes that are no text
are a number, a time behind a key is its window, and the rest is shown in hexadecimal. What is text is shown as it is:
JSON that is read and written again may not be the same number.
"""

from __future__ import annotations

import datetime
import struct
from typing import Any, Final, NamedTuple

import msgspec

from penstock import aio
from penstock.client.core.loop_thread import LoopThread
from penstock.sql.engine.reading import NoTopicError, similar_topic
from penstock.sql.engine.rows import Row, RowQueue
from penstock.sql.engine.topic_follower import TopicFollower
from penstock.sql.engine.topics import Topics
from penstock.sql.kafka import KafkaAccess
from penstock.sql.statements import PrintTopic

_POLL_MS = 500

_TEXT: Final = ("KAFKA_STRING",)
_JSON: Final = ("JSON", "KAFKA_STRING")
_NUMBERS: Final = {4: (">i", ("KAFKA_INT",)), 8: (">q", ("KAFKA_BIGINT", "KAFKA_DOUBLE"))}
_BYTES: Final = ("BYTES",)
_NOTHING: Final = r"¯\_(ツ)_/¯ - no data processed"
_TIME_MS_MAX: Final = 1 << 42
"""In the year 2109: bytes that say more are no window."""


class Printed(NamedTuple):
    """Bytes as text, and the formats that may have made them."""

    text: str
    formats: tuple[str, ...]


class TopicPrinter:
    """`queue` has no limit of its own: the lines that tell the formats are no records."""

    def __init__(self, statement: PrintTopic, queue: RowQueue, kafka: KafkaAccess) -> None:
        self._statement = statement
        self._queue = queue
        self._kafka = kafka
        self._seen = 0
        self._shown = 0
        self._follower = TopicFollower(
            topic=statement.topic,
            queue=queue,
            kafka=kafka,
            role="print",
            from_beginning=statement.from_beginning,
            read=self._read,
            remedy="",
        )

    def start(self, thread: LoopThread, timeout_s: float) -> None:
        if self._statement.limit == 0:
            self._queue.end()
            return
        try:
            self._follower.start(thread, timeout_s)
        except NoTopicError as error:
            raise NoTopicError(error.message, hint=self._similar()) from None

    def _similar(self) -> str:
        topics = Topics(self._kafka)
        try:
            return similar_topic(self._statement.topic, topics.names())
        finally:
            topics.close()

    async def _read(self, consumer: aio.Consumer) -> None:
        wanted = [record for record in await consumer.poll(_POLL_MS) if self._wanted()]
        if self._statement.limit is not None:
            wanted = wanted[: self._statement.limit - self._shown]
        self._queue.put([Row([line]) for line in (*self._heading(wanted), *map(line_of, wanted))])
        self._shown += len(wanted)
        if self._shown == self._statement.limit:
            self._queue.end()

    def _heading(self, records: list[Any]) -> list[str]:
        if self._shown or not records:
            return []
        keys = formats_of([record.key for record in records], may_be_windowed=True)
        return [f"Key format: {keys}", f"Value format: {formats_of([record.value for record in records])}"]

    def _wanted(self) -> bool:
        """INTERVAL n shows one record of n."""
        self._seen += 1
        return (self._seen - 1) % max(1, self._statement.interval) == 0


def line_of(record: Any) -> str:
    time = datetime.datetime.fromtimestamp(record.timestamp / 1_000, datetime.UTC)
    stamp = time.strftime("%Y/%m/%d %H:%M:%S.") + f"{time.microsecond // 1_000:03d} Z"
    key, value = printed(record.key, may_be_windowed=True).text, printed(record.value).text
    return f"rowtime: {stamp}, key: {key}, value: {value}, partition: {record.partition}"


def formats_of(many: list[bytes | None], *, may_be_windowed: bool = False) -> str:
    """What may have made all of these; of those that differ, each."""
    found = [printed(data, may_be_windowed=may_be_windowed).formats for data in many if data is not None]
    if not found:
        return _NOTHING
    common = [name for name in found[0] if all(name in formats for formats in found)]
    return " or ".join(common or dict.fromkeys(name for formats in found for name in formats))


def printed(data: bytes | None, *, may_be_windowed: bool = False) -> Printed:
    if data is None:
        return Printed("<null>", ())
    text = _decoded(data)
    if text is not None and (json := _json(text)) is not None:
        return Printed(json, _JSON)
    if text is not None and text.isprintable():
        return Printed(text, _TEXT)
    found = _number(data) or (_windowed(data) if may_be_windowed else None)
    if found is not None:
        return found
    return Printed(data.hex(), _BYTES) if text is None else Printed(repr(text)[1:-1], _TEXT)


def _decoded(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _json(text: str) -> str | None:
    """JSON in one line, its numbers and texts as they are written."""
    try:
        one_line = msgspec.json.format(text, indent=0)
    except msgspec.DecodeError:
        return None
    return text if text.isprintable() else one_line


def _number(data: bytes) -> Printed | None:
    if len(data) not in _NUMBERS:
        return None
    form, formats = _NUMBERS[len(data)]
    return Printed(str(struct.unpack(form, data)[0]), formats)


def _windowed(data: bytes) -> Printed | None:
    """A key with its window, as Kafka Streams writes it: only a session's tells its end."""
    if len(data) > 16:
        end, start = struct.unpack(">qq", data[-16:])
        if 0 <= start <= end < _TIME_MS_MAX:
            key = printed(data[:-16])
            return Printed(f"[{key.text}@{start}/{end}]", _within(("SESSION",), key))
    if len(data) > 8:
        (start,) = struct.unpack(">q", data[-8:])
        if 0 <= start < _TIME_MS_MAX:
            key = printed(data[:-8])
            return Printed(f"[{key.text}@{start}/-]", _within(("HOPPING", "TUMBLING"), key))
    return None


def _within(windows: tuple[str, ...], key: Printed) -> tuple[str, ...]:
    return tuple(f"{window}({name})" for window in windows for name in key.formats)
