"""The feeder: polls one consumer in the background and fills the streams' queues, each only as far as it has room.

A stream whose queue is full has its partitions paused until it is half empty; the consumer polls on for the others, and
for the membership in its group. Offsets are committed behind the records that were taken and finished.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Collection, Mapping
from typing import TYPE_CHECKING, Final

from penstock.base.errors import KafkaError
from penstock.base.types import TopicPartition
from penstock.client.config import ClientConfig, ClientKind, consumer_keys
from penstock.client.consumer.arguments import Topics, as_topics
from penstock.client.consumer.consumer import AsyncConsumer
from penstock.client.consumer.streams.buffer import StreamBuffer
from penstock.client.consumer.streams.routing import StreamRouting
from penstock.client.core.types import OffsetAndMetadata
from penstock.client.errors import ClientError, KafkaTimeout
from penstock.records.record import ConsumerRecord

if TYPE_CHECKING:
    from typing import Unpack

    from penstock.client.config.options import ConsumerOptions

log = logging.getLogger(__name__)

_POLL_MS: Final = 100.0


class AsyncMessageStream:
    """One of the streams: `async for record in stream`. One task takes from it at a time."""

    def __init__(self, number: int, buffer: StreamBuffer) -> None:
        self.number = number
        self._buffer = buffer
        self._changed = asyncio.Event()
        buffer.wake_with(self._changed.set)

    def __aiter__(self) -> AsyncIterator[ConsumerRecord]:
        return self

    async def __anext__(self) -> ConsumerRecord:
        try:
            return await self.get()
        except EOFError:
            raise StopAsyncIteration from None

    async def get(self, timeout_ms: float | None = None) -> ConsumerRecord:
        """The next record; the one before it counts as finished. `KafkaTimeout` when none comes in time."""
        while True:
            self._changed.clear()
            record = self._buffer.take()
            if record is not None:
                return record
            try:
                await asyncio.wait_for(self._changed.wait(), None if timeout_ms is None else timeout_ms / 1000)
            except TimeoutError:
                raise no_record(self.number, timeout_ms) from None


class AsyncMessageStreams:
    """`topics` opened as `streams` queues of at most `queue_max` records each, in one member of a group.

    Options are those of a consumer. With `enable.auto.commit` (the default) finished records are committed every
    `auto.commit.interval.ms`, when partitions go, and on close.
    """

    def __init__(
        self,
        config: Mapping[str, object] | None = None,
        /,
        *,
        topics: Topics,
        streams: int = 1,
        queue_max: int = 1_000,
        **options: Unpack[ConsumerOptions],
    ) -> None:
        if streams < 1 or queue_max < 1:
            raise ValueError("streams and queue_max must be at least 1")
        wanted = ClientConfig(ClientKind.CONSUMER, config, options)
        self._topics = as_topics(topics)
        self._commits = wanted[consumer_keys.ENABLE_AUTO_COMMIT]
        self._interval_s = wanted[consumer_keys.AUTO_COMMIT_INTERVAL_MS] / 1000
        self._poll_max = wanted[consumer_keys.MAX_POLL_RECORDS]
        options["enable_auto_commit"] = False
        self._consumer = AsyncConsumer(config, **options)
        self.buffers = tuple(StreamBuffer(queue_max, self._low) for _ in range(streams))
        self._routing = StreamRouting(streams)
        self._committed: dict[TopicPartition, int] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._feeder: asyncio.Task[None] | None = None
        self._streams: tuple[AsyncMessageStream, ...] = ()
        self._stopping = False

    # For the user.

    async def start(self) -> None:
        """Begin to fill the queues."""
        if self._feeder is not None:
            return
        self._loop = asyncio.get_running_loop()
        await self._consumer.start()
        self._consumer.subscribe(self._topics, listener=_Listener(self))
        self._feeder = self._loop.create_task(self._feed(), name="message streams")

    async def __aenter__(self) -> AsyncMessageStreams:
        await self.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    @property
    def streams(self) -> tuple[AsyncMessageStream, ...]:
        """All of them, in the order of their numbers."""
        if not self._streams:
            self._streams = tuple(AsyncMessageStream(number, each) for number, each in enumerate(self.buffers))
        return self._streams

    def __getitem__(self, number: int) -> AsyncMessageStream:
        return self.streams[number]

    def __len__(self) -> int:
        return len(self.buffers)

    async def commit(self) -> None:
        """Commit behind every record that was given out so far, the last ones included."""
        await self._commit(self._finished(with_current=True))

    async def close(self) -> None:
        """End the streams, commit what is finished, leave the group."""
        self._stopping = True
        try:
            if self._feeder is not None:
                await asyncio.wait({self._feeder})
            if self._commits:
                await self._commit_quietly(self._finished())
        finally:
            for buffer in self.buffers:
                buffer.close()
            await self._consumer.close()

    @property
    def consumer(self) -> AsyncConsumer:
        """The consumer below, for questions (positions, lag, assignment)."""
        return self._consumer

    # The feeder.

    async def _feed(self) -> None:
        assert self._loop is not None
        next_commit = self._loop.time() + self._interval_s
        try:
            while not self._stopping:
                self._regulate()
                records = await self._consumer.poll(timeout_ms=_POLL_MS, max_records=self._room())
                for partition, part in records.by_partition().items():
                    self.buffers[self._routing.stream_of(partition)].put(part)
                if self._commits and self._loop.time() >= next_commit:
                    await self._commit_quietly(self._finished())
                    next_commit = self._loop.time() + self._interval_s
        except Exception as error:  # deserializers and interceptors of the user's run here: the streams raise it
            if not isinstance(error, KafkaError):
                log.exception("the streams of %s ended", self._topics)
            for buffer in self.buffers:
                buffer.close(error)

    def _room(self) -> int:
        """How many records may come at most, whichever streams they are for; a full one may be resumed meanwhile."""
        rooms = [buffer.room_when_low if buffer.is_full else buffer.room for buffer in self.buffers]
        return max(1, min([self._poll_max, *rooms]))

    def _regulate(self) -> None:
        """Pause the partitions of full streams; resume those of the others."""
        assigned, paused = self._consumer.assignment(), self._consumer.paused()
        for number, buffer in enumerate(self.buffers):
            # Not only at the very end: the least room bounds what a poll may bring for any stream.
            if buffer.room < max(1, buffer.size_max // 4):
                buffer.is_full = True
            partitions = self._routing.partitions_of(number) & assigned
            if buffer.is_full and partitions - paused:
                self._consumer.pause(partitions - paused)
            elif not buffer.is_full and partitions & paused:
                self._consumer.resume(partitions & paused)

    def _low(self) -> None:
        """Called by takers, in any thread."""
        if self._loop is not None and not self._stopping:
            self._loop.call_soon_threadsafe(self._regulate_if_open)

    def _regulate_if_open(self) -> None:
        if not self._stopping:
            self._regulate()

    # Partitions and offsets.

    def assigned(self, partitions: Collection[TopicPartition]) -> None:
        """For the listener: these partitions came."""
        self._routing.assigned(partitions)

    async def revoked(self, partitions: Collection[TopicPartition]) -> None:
        """For the listener: these partitions go; what was taken of them is committed."""
        if self._commits:
            finished = self._finished()
            await self._commit_quietly({each: finished[each] for each in partitions if each in finished})
        self.lost(partitions)

    def lost(self, partitions: Collection[TopicPartition]) -> None:
        """For the listener: these partitions are gone."""
        for buffer in self.buffers:
            buffer.drop(set(partitions))
        self._routing.revoked(partitions)
        for partition in partitions:
            self._committed.pop(partition, None)

    def _finished(self, *, with_current: bool = False) -> dict[TopicPartition, int]:
        return {
            partition: offset
            for buffer in self.buffers
            for partition, offset in buffer.finished(with_current=with_current).items()
        }

    async def _commit_quietly(self, finished: Mapping[TopicPartition, int]) -> None:
        try:
            await self._commit(finished)
        except ClientError as error:
            # They are committed next time, or read again by another member.
            log.warning("offsets of %s could not be committed now: %s", self._topics, error.message)

    async def _commit(self, finished: Mapping[TopicPartition, int]) -> None:
        news = {each: offset for each, offset in finished.items() if self._committed.get(each) != offset}
        if news:
            await self._consumer.commit({each: OffsetAndMetadata(offset) for each, offset in news.items()})
            self._committed.update(news)


class _Listener:
    def __init__(self, streams: AsyncMessageStreams) -> None:
        self._streams = streams

    async def on_assigned(self, consumer: object, partitions: Collection[TopicPartition]) -> None:
        self._streams.assigned(partitions)

    async def on_revoked(self, consumer: object, partitions: Collection[TopicPartition]) -> None:
        await self._streams.revoked(partitions)

    async def on_lost(self, consumer: object, partitions: Collection[TopicPartition]) -> None:
        self._streams.lost(partitions)


def no_record(number: int, timeout_ms: float | None) -> KafkaTimeout:
    return KafkaTimeout(f"stream {number}: no record came within {timeout_ms:.0f} ms; ask again, or give it more time")
