"""Message streams for threads: one thread per stream takes records, a thread of their own feeds them."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from penstock.client.consumer.arguments import Topics
from penstock.client.consumer.streams.buffer import StreamBuffer
from penstock.client.consumer.streams.driver import AsyncMessageStreams, no_record
from penstock.client.core.face import BlockingFace, documented_by
from penstock.records.record import ConsumerRecord

if TYPE_CHECKING:
    from typing import Unpack

    from penstock.client.config.options import ConsumerOptions


class MessageStream:
    """One of the streams: `for record in stream`. One thread takes from it at a time."""

    def __init__(self, number: int, buffer: StreamBuffer) -> None:
        self.number = number
        self._buffer = buffer

    def __iter__(self) -> Iterator[ConsumerRecord]:
        return self

    def __next__(self) -> ConsumerRecord:
        try:
            return self.get()
        except EOFError:
            raise StopIteration from None

    def get(self, timeout_ms: float | None = None) -> ConsumerRecord:
        """The next record; the one before it counts as finished. `KafkaTimeout` when none comes in time."""
        while True:
            record = self._buffer.take()
            if record is not None:
                return record
            if not self._buffer.wait(None if timeout_ms is None else timeout_ms / 1000):
                raise no_record(self.number, timeout_ms)


class MessageStreams(BlockingFace):
    """A topic opened as n streams, each a bounded queue with an iterator::

        with MessageStreams(bootstrap_servers=..., group_id="g", topics="orders", streams=4) as streams:
            for stream in streams:
                threading.Thread(target=work, args=(stream,)).start()

    Options are those of `Consumer`; `queue_max` bounds the records that wait in each stream.
    """

    _core: AsyncMessageStreams

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
        core = AsyncMessageStreams(config, topics=topics, streams=streams, queue_max=queue_max, **options)
        core.consumer._has_face = True
        self._streams = tuple(MessageStream(number, buffer) for number, buffer in enumerate(core.buffers))
        super().__init__(core, name="penstock message streams")
        try:
            self._run(core.start())
        except BaseException:
            self.close()
            raise

    def __iter__(self) -> Iterator[MessageStream]:
        return iter(self._streams)

    def __getitem__(self, number: int) -> MessageStream:
        return self._streams[number]

    def __len__(self) -> int:
        return len(self._streams)

    def _disconnect(self) -> Callable[[], Coroutine[Any, Any, object]]:
        self._core.consumer._tell_dropped()
        return self._core.consumer._core.close

    @documented_by(AsyncMessageStreams.commit)
    def commit(self) -> None:
        self._run(self._core.commit())
