"""Push queries over a stream or table that exists: its topic is followed, and every change goes out.

Nothing is computed twice: the rows a persistent query made are in its topic, whoever wants to watch them reads there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock import aio
from penstock.client.core.loop_thread import LoopThread
from penstock.sql.engine.chains import Chain
from penstock.sql.engine.properties import is_read_from_beginning
from penstock.sql.engine.pull import rows_of
from penstock.sql.engine.reading import remedy
from penstock.sql.engine.rows import Row, RowQueue
from penstock.sql.engine.topic_follower import TopicFollower
from penstock.sql.formats.decoding import DELETED, Decoded, RowDecoder
from penstock.sql.kafka import KafkaAccess

_POLL_MS = 500


class PushReader:
    """Follows the topic of one chain into a queue, on an event loop it shares with the other push queries."""

    def __init__(self, chain: Chain, queue: RowQueue, kafka: KafkaAccess, properties: Mapping[str, Any]) -> None:
        self._chain = chain
        self._queue = queue
        self._decoder = RowDecoder(chain.source)
        self._follower = TopicFollower(
            topic=chain.source.topic,
            queue=queue,
            kafka=kafka,
            role="push",
            from_beginning=is_read_from_beginning(chain.source, properties),
            read=self._read,
            remedy=remedy(chain.source),
        )

    def start(self, thread: LoopThread, timeout_s: float) -> None:
        """Begin; when this returns, every record that comes later will be seen."""
        self._follower.start(thread, timeout_s)

    async def _read(self, consumer: aio.Consumer) -> None:
        batch = await consumer.consume_arrow(_POLL_MS, headers=bool(self._chain.source.schema.headers))
        if batch.num_rows:
            self._queue.put(self._rows(self._decoder.decode(batch)))

    def _rows(self, decoded: Decoded) -> list[Row]:
        """A table's row that does not match is of no interest; a deletion always is."""
        rows = []
        for row in rows_of(decoded.batch, self._chain.source):
            deleted = bool(row.get(DELETED))
            if deleted or self._chain.matches(row):
                rows.append(Row(self._chain.project(row), deleted))
        return rows
