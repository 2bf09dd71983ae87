"""PRINT: the records of a topic as text, whatever they are made of.

The format is guessed per record, as a person would: eight or four bytes that are no text are a number, braces are
JSON, text is text, and the rest is shown in hexadecimal.
"""

from __future__ import annotations

import asyncio
import datetime
import struct
from typing import Any

import msgspec

from penstock import aio
from penstock.base.types import TopicPartition
from penstock.client.core.loop_thread import LoopThread
from penstock.client.errors import KafkaError
from penstock.sql.engine.rows import Row, RowQueue
from penstock.sql.errors import EngineError
from penstock.sql.kafka import KafkaAccess
from penstock.sql.statements import PrintTopic

_POLL_MS = 500
_FULL_PAUSE_S = 0.05


class TopicPrinter:
    def __init__(self, statement: PrintTopic, queue: RowQueue, kafka: KafkaAccess) -> None:
        self._statement = statement
        self._queue = queue
        self._kafka = kafka
        self._seen = 0

    def start(self, thread: LoopThread, timeout_s: float) -> None:
        thread.run(self._begin(), timeout_s)

    async def _begin(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        try:
            await self._follow()
        except KafkaError as error:
            self._queue.end(EngineError(f"The topic {self._statement.topic} cannot be read: {error}"))

    async def _follow(self) -> None:
        reset = "earliest" if self._statement.from_beginning else "latest"
        settings = {"isolation.level": "read_committed", "auto.offset.reset": reset, "enable.auto.commit": False}
        async with aio.Consumer(self._kafka.config("print", settings)) as consumer:
            infos = await consumer.partitions_for(self._statement.topic)
            consumer.assign([TopicPartition(self._statement.topic, info.partition) for info in infos])
            while not self._queue.ended:
                if self._queue.full:
                    await asyncio.sleep(_FULL_PAUSE_S)
                    continue
                self._queue.put([Row([line_of(record)]) for record in await consumer.poll(_POLL_MS) if self._wanted()])

    def _wanted(self) -> bool:
        """INTERVAL n shows one record of n."""
        self._seen += 1
        return (self._seen - 1) % max(1, self._statement.interval) == 0


def line_of(record: Any) -> str:
    time = datetime.datetime.fromtimestamp(record.timestamp / 1_000, datetime.UTC)
    stamp = time.strftime("%Y/%m/%d %H:%M:%S.") + f"{time.microsecond // 1_000:03d} Z"
    key, value = text_of(record.key), text_of(record.value)
    return f"rowtime: {stamp}, key: {key}, value: {value}, partition: {record.partition}"


def text_of(data: bytes | None) -> str:
    if data is None:
        return "<null>"
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return _number(data) or data.hex()
    if text[:1] in "{[":
        return _json(data) or text
    return text if text.isprintable() else _number(data) or repr(text)[1:-1]


def _json(data: bytes) -> str | None:
    try:
        return msgspec.json.encode(msgspec.json.decode(data)).decode()
    except msgspec.DecodeError:
        return None


def _number(data: bytes) -> str | None:
    form = {4: ">i", 8: ">q"}.get(len(data))
    return None if form is None else str(struct.unpack(form, data)[0])
